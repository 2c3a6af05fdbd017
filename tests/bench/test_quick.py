"""Quick runs are small, and of everything."""

from dataclasses import fields

import pytest

from costscape import Auto, CrossFit
from costscape.bench import METHODS, PROBLEMS, Run, execute, prepare
from costscape.bench.quick import COSTLY, ROWS, small
from costscape.methods import Method
from costscape.methods.blend import default_candidates, names_of
from costscape.problems.files.sources import find
from costscape.training import Training

FILES = {"wind": "wind", "scheduling": "pjm", "scheduling-measured": "pjm"}
WITHOUT_DATA = [name for name, files in FILES.items() if find(files) is None]
SIZES = ("points", "actions", "draws", "train_draws", "samples", "rounds", "trees")
NAMES = [
    *(name for name in METHODS if name != "proportional"),
    "two-stage-gmm3",
    "dfl-gmm3",
    "so-ebm-gmm3",
    "lodl-gmm3",
    "two-stage-gmm3+crossfit",
    "wsaa-forest+crossfit",
]


@pytest.mark.parametrize("name", [n for n in PROBLEMS if n not in WITHOUT_DATA])
def test_a_quick_problem_has_few_rows_next_to_the_cuts(name):
    p = PROBLEMS[name](0)
    cut = small(PROBLEMS[name](0)).data
    sizes = COSTLY if name.startswith("vaccine") else ROWS
    assert (len(cut.train), len(cut.val), len(cut.test)) == sizes
    assert (cut.train.y[-1] == p.data.train.y[-1]).all()
    assert (cut.val.y[-1] == p.data.val.y[-1]).all()
    assert (cut.test.y[0] == p.data.test.y[0]).all()


def inside(method):
    """The method and all methods that it fits."""
    yield method
    for f in fields(method):
        value = getattr(method, f.name)
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, Method):
                yield from inside(part)


@pytest.mark.parametrize("problem", ["synthetic-convex", "vaccine"])
@pytest.mark.parametrize("name", NAMES)
def test_a_quick_method_has_no_more_of_anything(problem, name):
    plain, cut = (prepare(Run(problem, name, quick=quick)).method for quick in (False, True))
    assert type(cut) is type(plain)
    for method in inside(cut):
        for f in fields(method):
            value = getattr(method, f.name)
            if f.name in SIZES:
                assert value <= 60
            if f.name == "folds":
                assert value <= 2
            if f.name == "most_scenarios":
                assert value <= 400
            if isinstance(value, Training):
                assert value.epochs <= 3
    for f in fields(cut):
        before, after = getattr(plain, f.name), getattr(cut, f.name)
        if f.name in (*SIZES, "folds", "most_scenarios"):
            assert before is None or after <= before


def test_a_quick_blend_has_the_candidates_of_a_whole_one():
    whole = prepare(Run("synthetic-convex", "blend"))
    cut = prepare(Run("synthetic-convex", "blend", quick=True)).method
    assert whole.method.methods is None
    usual = default_candidates(
        whole.method.task, whole.problem.data.train, whole.method.training, Auto(), 0
    )
    assert names_of(cut.methods) == names_of(usual)
    assert len(list(inside(cut))) == 1 + len(usual)


def test_methods_inside_a_quick_crossfit_are_small():
    made = prepare(Run("inventory", "two-stage-gmm3+crossfit", quick=True)).method
    assert isinstance(made, CrossFit)
    assert (made.folds, made.method.draws, made.method.training.epochs) == (2, 20, 3)


@pytest.mark.parametrize(
    "method",
    [
        "two-stage-gmm3+crossfit",
        *(pytest.param(name, marks=pytest.mark.long) for name in ("dfl-gmm3", "df2")),
    ],
)
def test_a_quick_simulation_completes(method):
    row = execute(Run("vaccine", method, quick=True), device="cpu").row
    assert row["error"] is row["refused"] is None


def test_a_quick_blend_runs():
    row = execute(Run("synthetic-convex", "blend", quick=True), device="cpu").row
    assert row["error"] is row["refused"] is None
    assert sum(row["chosen"]["weights"].values()) == pytest.approx(1)
