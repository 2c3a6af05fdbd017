"""Quick runs are small, and of everything."""

from dataclasses import fields

import pytest

from costscape.experiments import METHODS, PROBLEMS, Run, execute, prepare
from costscape.experiments.quick import COSTLY, ROWS, small
from costscape.train import Training

SIZES = ("points", "actions", "draws", "train_draws", "samples", "rounds", "trees", "members")
NAMES = [
    *(name for name in METHODS if name != "proportional"),
    "two-stage-gmm3",
    "dfl-gmm3",
    "so-ebm-gmm3",
    "lodl-gmm3",
]


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_quick_problem_has_few_rows_next_to_the_cuts(name):
    p = PROBLEMS[name](0)
    cut = small(PROBLEMS[name](0)).data
    sizes = COSTLY if name.startswith("vaccine") else ROWS
    assert (len(cut.train), len(cut.val), len(cut.test)) == sizes
    assert (cut.train.y[-1] == p.data.train.y[-1]).all()
    assert (cut.val.y[-1] == p.data.val.y[-1]).all()
    assert (cut.test.y[0] == p.data.test.y[0]).all()


@pytest.mark.parametrize("problem", ["synthetic-convex", "vaccine"])
@pytest.mark.parametrize("name", NAMES)
def test_a_quick_method_has_no_more_of_anything(problem, name):
    plain, cut = (prepare(Run(problem, name, quick=quick)).method for quick in (False, True))
    assert type(cut) is type(plain)
    for f in fields(cut):
        before, after = getattr(plain, f.name), getattr(cut, f.name)
        if f.name in SIZES:
            assert after <= 60
            assert before is None or after <= before
        if isinstance(after, Training):
            assert after.epochs <= 3


def test_a_quick_simulation_takes_seconds():
    row = execute(Run("vaccine", "dfl-gmm3", quick=True), device="cpu")
    assert row["error"] is row["refused"] is None
    assert row["fit_seconds"] < 20
