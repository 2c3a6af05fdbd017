"""The real problems against what is known of them; with the public files where they are."""

from dataclasses import fields, replace
from functools import partial

import pytest

from costscape import (
    Constant,
    FrankWolfe,
    NearestNeighbours,
    ProjectedAdam,
    Training,
    evaluate,
)
from costscape.bench import PROBLEMS, method_of
from costscape.data import Splits
from costscape.problems.files.sources import find

public = pytest.mark.skipif(find("wind") is None, reason="TenneT's public file is not here")
pjm = pytest.mark.skipif(find("pjm") is None, reason="PJM's public files are not here")
REAL = [
    pytest.param("wind", marks=public),
    pytest.param("scheduling", marks=pjm),
    pytest.param("scheduling-measured", marks=pjm),
    *("wind-farm", "inventory", "inventory-store", "restaurant", "vaccine", "vaccine-wave"),
]


@pytest.fixture(scope="module")
def small():
    """small(name): the problem with a few rows of each part."""
    made = {}

    def make(name):
        if name not in made:
            p = PROBLEMS[name](0)
            rows = (6, 2, 1) if name.startswith("vaccine") else (40, 12, 6)
            parts = (p.data.train, p.data.val, p.data.test)
            made[name] = replace(
                p, data=Splits(*(part[:n] for part, n in zip(parts, rows, strict=True)))
            )
            if name.startswith("vaccine"):  # an epidemic takes long to simulate
                p.task.hindsight = FrankWolfe(steps=3).hindsight(p.task)
        return made[name]

    return make


def quick(method, name):
    """The same method, fitted in seconds."""
    cut = {
        "training": Training(epochs=1, batch_size=20, progress=False, device="cpu"),
        "points": 8,
        "actions": 4,
        "folds": 1,
        "draws": 4,
        "k": 5,
        "encoder": None,
    }
    if name.startswith("vaccine"):
        cut["solver"] = ProjectedAdam(steps=2, starts=1)
        cut["encoder"] = partial(method.encoder, hidden=8) if hasattr(method, "encoder") else None
    known = {f.name for f in fields(method)}
    return replace(method, **{name: value for name, value in cut.items() if name in known})


@pytest.mark.long
def test_df2_completes_on_the_wave(small):
    # over eight times as many simulated days as vaccine, for the same code
    test_methods_complete_on_every_real_problem(small, "vaccine-wave", "df2")


@pytest.mark.filterwarnings("ignore::costscape.OutOfRange")  # of a few hours of training rows
@pytest.mark.parametrize("method", ["df2", "two-stage-gmm3", "policy-net", "wsaa-knn"])
@pytest.mark.parametrize("name", [name for name in REAL if name != "vaccine-wave"])
def test_methods_complete_on_every_real_problem(small, name, method):
    p = small(name)
    train, val, test = p.data.train, p.data.val, p.data.test
    made = quick(method_of(method)(p, 0), name).fit(train.x, train.y, val=(val.x, val.y))
    assert p.task.feasible.contains(made.decide(test.x)).all()
    result = evaluate(made, test.x, test.y)
    assert result.cost == result.cost
    assert result.regret >= -1e-2 * abs(result.cost)


@public
def test_wind_has_the_known_regrets_of_a_constant_and_of_200_neighbours():
    p = PROBLEMS["wind"](0)
    train, val, test = p.data.train, p.data.val, p.data.test
    assert "known public file" in p.source
    for method, known in ((Constant(p.task), 89.0), (NearestNeighbours(p.task, k=200), 74.0)):
        method.fit(train.x, train.y, val=(val.x, val.y))
        some = test[::8]
        assert evaluate(method, some.x, some.y).regret == pytest.approx(known, abs=3.0)


@pytest.mark.parametrize("name", REAL)
def test_every_real_problem_says_which_data_it_is(small, name):
    assert len(small(name).source) > 20
