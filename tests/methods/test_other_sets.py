"""Sets that are functions of x in fit, and other sets in decide."""

import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import norm

import costscape as cs

SHORT = cs.Training(epochs=6, progress=False)
BOX = cs.Box(0.0, 120.0, dim=2)


def lost(y, a):
    return 4 * (y - a).relu() + (a - y).relu()


def days(n=240, seed=0):
    """Two demands 50 + 10 z +- 8 and, in the last two columns, the capacities of the day."""
    rng = np.random.default_rng(seed)
    z, caps = rng.normal(size=(n, 2)), rng.uniform(20, 90, (n, 2))
    return np.concatenate([z, caps], 1), 50 + 10 * z + 8 * rng.normal(size=(n, 2))


def best(X):
    """The 4 / 5 quantile of demand, or the capacity."""
    return np.minimum(50 + 10 * X[:, :2] + 8 * norm.ppf(0.8), X[:, 2:])


def by_row():
    return cs.SeparableTask(lost, lambda x: cs.Box(0.0, x[:, 2:]), convex=True)


METHODS = {
    "DF2": (lambda t: cs.DF2(t, folds=2, training=SHORT), 2.0),
    "Costs": (lambda t: cs.DF2(t, folds=1, target=cs.Costs(), training=SHORT), 4.0),
    "PolicyNet": (
        lambda t: cs.PolicyNet(
            t, partial(cs.MLP, 4), training=cs.Training(epochs=40, lr=1e-2, progress=False)
        ),
        5.0,
    ),
    "TwoStage": (lambda t: cs.TwoStage(t, draws=200, training=SHORT), 5.0),
    "NearestNeighbours": (lambda t: cs.NearestNeighbours(t, k=30), 4.0),
    "ResidualSAA": (lambda t: cs.ResidualSAA(t, ridge=1e-4), 1.5),
    "Blend": (
        lambda t: cs.Blend(t, [cs.ResidualSAA(t, ridge=1e-4), cs.NearestNeighbours(t, k=30)]),
        2.5,
    ),
}


@pytest.mark.parametrize("name", METHODS)
def test_decisions_obey_the_capacities_of_their_row_and_are_near_the_best(name, tmp_path):
    make, near = METHODS[name]
    X, Y = days()
    model = make(by_row()).fit(X, Y)
    new, _ = days(80, seed=1)
    a = model.decide(new)
    assert (a <= new[:, 2:] + 1e-3).all()
    assert np.abs(a - best(new)).mean() < near
    model.save(tmp_path / "m")
    assert np.array_equal(cs.load(tmp_path / "m", by_row()).decide(new), a)


def test_joint_costs_budgets_and_names_in_fit():
    X, Y = days()
    frame = pd.DataFrame(np.c_[X[:, :2], X[:, 2:].sum(1)], columns=["a", "b", "room"])
    task = cs.Task(
        lambda y, a: lost(y, a).sum(-1),
        lambda x: cs.Budget(total=x[:, 0], dim=2),
        convex=True,
        context="room",
    )
    model = cs.DF2(task, folds=1, training=cs.Training(epochs=2, progress=False)).fit(frame, Y)
    a = model.decide(frame.iloc[:20])
    assert (a.sum(axis=1) <= frame["room"][:20] + 1e-2).all()
    listed = cs.SeparableTask(
        lost, lambda x: cs.Budget(total=x[:, 0], dim=2, upper=60.0), convex=True, context="room"
    )
    capped = cs.NearestNeighbours(listed, k=30).fit(frame, Y).decide(frame.iloc[:20])
    assert (capped.to_numpy() <= 60.001).all()
    assert (capped.sum(axis=1) <= frame["room"][:20] + 1e-2).all()


def test_evaluate_and_compare_pay_and_regret_within_the_sets_of_the_rows():
    X, Y = days(120)
    model = cs.ResidualSAA(by_row(), ridge=1e-4).fit(X, Y)
    result = cs.evaluate(model, X, Y)
    least = lost(torch.tensor(Y), torch.tensor(np.minimum(Y, X[:, 2:]))).sum(-1).numpy()
    assert np.allclose(result.costs - result.regrets, least, atol=0.05)
    methods = {"residuals": cs.ResidualSAA(by_row()), "near": cs.NearestNeighbours(by_row(), k=9)}
    assert cs.compare(by_row(), X, Y, methods=methods, progress=False).best == "residuals"


def test_what_if_decides_for_the_same_scenarios_without_a_new_fit():
    X, Y = days(101)
    task = cs.SeparableTask(lost, BOX, convex=True)
    model = cs.NearestNeighbours(task, k=31).fit(X, Y)
    # the 4 / 5 quantile of 31 scenarios is one of them, and costs fall up to it
    quantile = model.scenarios(X).values.sort(1).values[:, 24].numpy()
    a = model.decide(X, feasible=cs.Box(0.0, X[:, 2:]))
    assert np.allclose(a, np.minimum(quantile, X[:, 2:]), atol=0.01)
    assert np.allclose(model.decide(X, feasible=lambda x: cs.Box(0.0, x[:, 2:])), a)
    assert np.allclose(model.decide(X, feasible=cs.Box(0.0, 30.0, dim=2)), 30.0, atol=0.01)
    whole = model.decide(X, feasible=cs.Box(0.0, 120.0, dim=2, step=12.0))
    assert np.allclose(whole % 12, 0)
    # one budget for each row, against the budget alone
    totals = X[:, 2:].sum(1)
    rows = model.decide(X[:9], feasible=cs.Budget(total=totals[:9], dim=2, upper=60.0))
    for i in range(9):
        C = cs.Budget(total=float(totals[i]), dim=2, upper=60.0)
        alone = model.decide(X[i : i + 1], feasible=C)
        costs = model.expected_cost(X[[i, i]], np.stack([rows[i], alone[0]]))
        assert abs(costs[0] - costs[1]) < 1e-2


def test_wider_sets_warn_and_narrower_ones_do_not():
    X, Y = days(60)
    model = cs.NearestNeighbours(cs.SeparableTask(lost, BOX, convex=True), k=9).fit(X, Y)
    with pytest.warns(cs.OutOfRange, match="0 to 150 for a_1, but the fit has seen .* 0 to 120"):
        model.decide(X, feasible=cs.Box(0.0, [100.0, 150.0]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.decide(X, feasible=cs.Box(1.0, 119.0, dim=2))


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda m, X: m.decide(X, feasible=cs.Box(0.0, X[:5, 2:])), ValueError, "60 rows of X"),
        (lambda m, X: m.decide(X, feasible=cs.Box(0.0, 1.0, dim=3)), ValueError, "of 2 numbers"),
        (lambda m, X: m.decide(X, feasible=3.0), TypeError, "feasible needs a set"),
        (lambda m, X: m.decide(X, feasible=lambda x: x), TypeError, "returned Tensor"),
        (lambda m, X: cs.Task(lost, cs.Box(0.0, X[:, 2:])), TypeError, "sets of 60 rows"),
        (
            lambda m, X: cs.Constant(cs.SeparableTask(lost, BOX)).fit(X, X[:, :2]).decide(
                X, feasible=BOX
            ),
            cs.Refusal,
            "Constant learns actions of one set",
        ),
        (
            lambda m, X: cs.Constant(by_row()).fit(X, X[:, :2]),
            cs.Refusal,
            "Constant needs one set for all x",
        ),
        (
            lambda m, X: cs.NearestNeighbours(
                cs.SeparableTask(lost, lambda x: cs.Box(0.0, x[:5, 2:]))
            ).fit(X, X[:, :2]),
            ValueError,
            "one row for each of 60 rows of x, but returned 5",
        ),
        (
            lambda m, X: cs.Task(lost, lambda x: BOX, hindsight=lambda y: y),
            cs.Refusal,
            "hindsight= knows no set",
        ),
    ],
)  # fmt: skip
def test_wrong_sets_get_one_sentence(call, kind, words):
    X, Y = days(60)
    model = cs.NearestNeighbours(cs.SeparableTask(lost, BOX, convex=True), k=9).fit(X, Y)
    with pytest.raises(kind, match=words):
        call(model, X)
