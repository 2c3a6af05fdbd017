"""Methods fit on whole units and decide in them."""

import numpy as np
import pytest
import torch

import costscape as cs
from costscape.checks import check_method, check_task

PACK = 6.0
TRAINING = cs.Training(epochs=2, progress=False, device="cpu")
SETS = {
    "box": cs.Box(0, 36, dim=2, step=PACK),
    "budget": cs.Whole(cs.Budget(total=30.0, dim=2), PACK),
}


def terms(y, a):
    return 3 * (y - a).relu() + (a - y).relu() + 2.0 * (a > 0)


def cost(y, a):
    return terms(y, a).sum(-1) + 0.05 * a.sum(-1) ** 2


def data(n=60):
    rng = np.random.default_rng(0)
    X = rng.random((n, 3))
    return X, 2 * (10 * X[:, :2] + 3 * rng.random((n, 2)))


METHODS = {
    "DF2": lambda task: cs.DF2.quick(task, training=TRAINING),
    "DF2 of costs": lambda task: cs.DF2.as_in_paper(task, training=TRAINING),
    "SOEBM": lambda task: cs.SOEBM(task, samples=16, training=TRAINING),
    "PolicyNet": lambda task: cs.PolicyNet(task, training=TRAINING),
    "PlainNetwork": lambda task: cs.PlainNetwork(task, training=TRAINING),
    "NearestNeighbours": lambda task: cs.NearestNeighbours(task, k=10),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("feasible", SETS)
def test_keeps_the_contract_on_whole_units(method, feasible):
    C = SETS[feasible]
    task = cs.Task(cost, C) if feasible == "budget" else cs.SeparableTask(terms, C)
    check_method(METHODS[method](task), *data())


def test_dfl_learns_through_the_relaxed_set_and_decides_in_packs():
    X, Y = data()
    task = cs.SeparableTask(lambda y, a: (y - a) ** 2, SETS["box"], convex=True)
    a = cs.DFL(task, training=TRAINING).fit(X, Y).decide(X)
    assert np.array_equal(a, PACK * np.round(a / PACK))
    assert isinstance(task.relaxed().feasible, cs.Box)
    assert task.relaxed().relaxed().feasible is SETS["box"].base


def test_a_blend_weighs_candidates_at_whole_units():
    X, Y = data(100)
    task = cs.SeparableTask(terms, SETS["box"])
    model = cs.Blend(task, [cs.NearestNeighbours(task, k=k) for k in (5, 20)]).fit(X, Y)
    a = torch.tensor(model.decide(X))
    assert SETS["box"].contains(a).all()


def test_regret_is_that_of_the_best_packs_in_hindsight():
    X, Y = data(20)
    for name, task in (
        ("box", cs.SeparableTask(terms, SETS["box"])),
        ("budget", cs.Task(cost, SETS["budget"])),
    ):
        y = torch.tensor(Y, dtype=torch.float32)
        check_task(task, y[:5])
        found = cs.evaluate(cs.Constant(task).fit(X, Y), X, Y)
        costs = task.cost(y[:, None], SETS[name].points(1000)[None])
        assert np.allclose(found.costs - found.regrets, costs.amin(1), atol=1e-4)


def test_a_forest_splits_by_whole_units():
    X, Y = data()
    task = cs.SeparableTask(terms, SETS["box"])
    a = cs.DecisionForest(task, trees=5).fit(X, Y).decide(X)
    assert set(np.unique(a)) <= {PACK * k for k in range(7)}
