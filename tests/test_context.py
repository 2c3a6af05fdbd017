"""Costs that know the context: cost(y, a, x)."""

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import norm

import costscape as cs
from costscape.context import Context

COST, SPREAD = 2.0, 8.0
SHORT = cs.Training(epochs=5, progress=False)
TRAINING = cs.Training(epochs=12, progress=False)


def profit(y, a, x):
    """Minus the profit of a newsvendor who knows today's price."""
    price = x[..., 1:2]
    return COST * a - price * torch.minimum(y, a)


def days(n=300, seed=0):
    """Demand 50 + 10 z +- 8, and prices it does not depend on."""
    rng = np.random.default_rng(seed)
    X = np.stack([rng.normal(size=n), rng.uniform(3, 12, n), rng.normal(size=n)], 1)
    return X, (50 + 10 * X[:, 0] + SPREAD * rng.normal(size=n))[:, None]


def fractile(X):
    """The best order: the (p - c) / p quantile of demand."""
    return 50 + 10 * X[:, 0] + SPREAD * norm.ppf(1 - COST / X[:, 1])


def task_of(cost=profit, **facts):
    return cs.SeparableTask(cost, cs.Box(0.0, 120.0, dim=1), convex=True, **facts)


METHODS = {
    "DF2.quick": (lambda t: cs.DF2.quick(t, training=TRAINING), 3.0),
    "DF2": (lambda t: cs.DF2(t, folds=2, training=SHORT), 3.0),
    "PolicyNet": (lambda t: cs.PolicyNet(t, training=TRAINING), 4.0),
    "TwoStage": (lambda t: cs.TwoStage(t, draws=200, training=TRAINING), 5.0),
    "NearestNeighbours": (lambda t: cs.NearestNeighbours(t, k=40), 6.0),
    "RandomForest": (lambda t: cs.RandomForest(t, min_leaf=10, trees=20), 5.0),
    "DecisionForest": (lambda t: cs.DecisionForest(t, trees=10, min_leaf=20), 5.0),
    "ResidualSAA": (lambda t: cs.ResidualSAA(t, ridge=1e-4), 2.0),
    "CrossFit": (lambda t: cs.CrossFit(cs.ResidualSAA(t, ridge=1e-4), folds=3), 2.0),
    "Blend": (
        lambda t: cs.Blend(t, [cs.ResidualSAA(t, ridge=1e-4), cs.NearestNeighbours(t, k=40)]),
        4.0,
    ),
}


@pytest.mark.parametrize("name", METHODS)
def test_orders_follow_the_fractile_of_todays_price(name):
    """From price 3 to price 12 the best order rises by 8 (ppf(5 / 6) - ppf(1 / 3)) = 11.2."""
    make, near = METHODS[name]
    X, Y = days()
    new, _ = days(100, seed=1)
    new[:, 0] = new[:, 0].clip(-1.5, 1.5)
    model = make(task_of()).fit(X, Y)
    a = model.decide(new)[:, 0]
    assert np.abs(a - fractile(new)).mean() < near
    # the price alone moves the order, at one and the same demand
    dear, cheap = np.array([[0.0, 12.0, 0.0]]), np.array([[0.0, 3.0, 0.0]])
    assert model.decide(dear)[0, 0] > model.decide(cheap)[0, 0] + 5


def test_decisions_minimise_the_mean_cost_of_the_scenarios_at_the_rows_own_price():
    X, Y = days(60)
    model = cs.NearestNeighbours(task_of(), k=15).fit(X, Y)
    x = torch.tensor(X[:7], dtype=torch.float32)
    y = model.scenarios(X[:7]).values[..., 0]
    grid = torch.linspace(0, 120, 4801)
    price = x[:, 1, None, None]
    costs = (COST * grid - price * torch.minimum(y[:, :, None], grid)).mean(1)
    a = torch.tensor(model.decide(X[:7])[:, 0])
    found = (COST * a[:, None] - price[:, 0] * torch.minimum(y, a[:, None])).mean(1)
    assert torch.all(found <= costs.min(1).values + 1e-3)
    assert np.allclose(model.expected_cost(X[:7], model.decide(X[:7])), found, atol=1e-3)


def test_columns_are_picked_by_name_or_by_number_in_the_users_units():
    X, Y = days(80)
    frame = pd.DataFrame(X, columns=["z", "price", "other"])
    whole = cs.NearestNeighbours(task_of(), k=20).fit(X, Y).decide(X)

    def picked(y, a, x):
        assert x.shape[-1] == 1
        return COST * a - x * torch.minimum(y, a)

    by_name = task_of(picked, context=("price",))
    named = cs.CrossFit(cs.NearestNeighbours(by_name, k=20), folds=2).fit(frame, Y)
    assert named.decide(frame).shape == (80, 1)
    one = cs.NearestNeighbours(by_name, k=20).fit(frame, Y)
    assert np.array_equal(one.decide(frame).to_numpy(), whole)
    by_number = cs.NearestNeighbours(task_of(picked, context=-2), k=20).fit(X, Y)
    assert np.array_equal(by_number.decide(X), whole)


def test_a_cost_of_y_and_a_keeps_shared_outcomes():
    task = task_of(lambda y, a: (y - a).abs())
    X, Y = days(50)
    model = cs.RandomForest(task, min_leaf=10, trees=5).fit(X, Y)
    assert model.surface(X).shared
    assert task.bound(torch.tensor(X)) is task


def test_the_fit_evaluate_and_compare_pay_the_same_costs():
    X, Y = days(120)
    model = cs.ResidualSAA(task_of(), ridge=1e-4).fit(X[:80], Y[:80])
    result = cs.evaluate(model, X[80:], Y[80:])
    a = result.decisions[:, 0]
    paid = COST * a - X[80:, 1] * np.minimum(Y[80:, 0], a)
    assert np.allclose(result.costs, paid, atol=1e-3)
    # the hindsight optimum orders the demand itself
    assert np.allclose(result.costs - result.regrets, (COST - X[80:, 1]) * Y[80:, 0], atol=0.05)
    methods = {"residuals": cs.ResidualSAA(task_of(), ridge=1e-4), "k": cs.Constant(task_of())}
    found = cs.compare(task_of(), X, Y, methods=methods, progress=False)
    assert found.best == "residuals"


def test_a_model_with_context_is_saved_and_knows_its_cost_again(tmp_path):
    X, Y = days(80)
    frame = pd.DataFrame(X, columns=["z", "price", "other"])
    task = task_of(lambda y, a, x: COST * a - x * torch.minimum(y, a), context="price")
    model = cs.CrossFit(cs.NearestNeighbours(task, k=20), folds=2).fit(frame, Y)
    model.save(tmp_path / "m")
    loaded = cs.load(tmp_path / "m", task)
    assert np.array_equal(loaded.decide(frame), model.decide(frame))
    other = task_of(lambda y, a, x: 3 * a - x * torch.minimum(y, a), context="price")
    with pytest.raises(ValueError, match="fitted for another cost"):
        cs.load(tmp_path / "m", other)


def test_convex_programs_know_the_context():
    def cost(y, a, x):
        return (COST * a - x[..., :2] * torch.minimum(y, a)).sum(-1)

    def program(y, a, x):
        return cp.sum(COST * a - cp.multiply(x[:, :2], cp.minimum(y, a)), axis=1)

    box = cs.Box(0.0, 5.0, dim=2)
    task = cs.Task(cost, box, convex=True, cvxpy=program).bound(torch.ones(1, 3))
    x = torch.tensor([[3.0, 9.0, 0.0], [9.0, 3.0, 0.0]])
    y = torch.rand(2, 9, 2, generator=torch.Generator().manual_seed(0)) * 4
    g = cs.ExpectedCost.at(task, x, cs.Scenarios(torch.full((2, 9), 1 / 9), y))
    exact = cs.Convex().minimise(g, box, 2)
    terms = lambda y, a, x: COST * a - x[..., :2] * torch.minimum(y, a)  # noqa: E731
    apart = cs.SeparableTask(terms, box, convex=True).bound(torch.ones(1, 3))
    h = cs.ExpectedCost.at(apart, x, cs.Scenarios(torch.full((2, 9), 1 / 9), y))
    assert torch.allclose(exact.cost, cs.Separable().minimise(h, box, 2).cost, atol=1e-4)


@pytest.mark.parametrize(("y_shape", "x_shape"), [((3,), (4,)), ((2, 3), (4,)), ((3,), (2, 5))])
def test_joined_outcomes_split_into_what_was_joined(y_shape, x_shape):
    rng = torch.Generator().manual_seed(0)
    x, y_dims = torch.rand(6, *x_shape, generator=rng), len(y_shape)
    context = Context((1, 2)).bound(x_shape, None)
    for shape in ((6,), (6, 7), (1, 7)):
        y = torch.rand(*shape, *y_shape, generator=rng)
        back, c = context.split(context.join(x, y, y_dims), y_dims)
        assert torch.equal(back, y.expand_as(back))
        picked = x[..., [1, 2]].reshape(6, *[1] * (len(shape) - 1), *context.shape)
        assert torch.equal(c, picked.expand_as(c))


@pytest.mark.parametrize(
    ("make", "kind", "words"),
    [
        (lambda X, Y: task_of().cost(torch.ones(1), torch.ones(1)), ValueError, "needs x"),
        (
            lambda X, Y: cs.Constant(task_of(context="price")).fit(X, Y),
            ValueError,
            "needs column 'price', but X has no names",
        ),
        (
            lambda X, Y: cs.Constant(task_of(context=7)).fit(X, Y),
            ValueError,
            "needs column 7, but X has 3 columns",
        ),
        (lambda X, Y: task_of(context=()), TypeError, "names or numbers of columns"),
        (lambda X, Y: task_of(normal=lambda m, s, a: a), cs.Refusal, "normal= knows no context"),
        (lambda X, Y: cs.LODL(task_of()).fit(X, Y), cs.Refusal, "LODL needs a cost of y and a"),
        (lambda X, Y: cs.SOEBM(task_of()).fit(X, Y), cs.Refusal, "SOEBM needs a cost of y and a"),
    ],
)
def test_what_cannot_be_is_said_in_one_sentence(make, kind, words):
    with pytest.raises(kind, match=words):
        make(*days(20))


def test_risk_service_and_explanations_see_the_price_of_their_row():
    X, Y = days()
    model = cs.NearestNeighbours(task_of(), k=40).fit(X, Y)
    y = model.scenarios(X[:2]).values
    y = y.expand(2, *y.shape[1:])[:, :, 0].numpy()
    w, price = model.scenarios(X[:2]).weights.numpy(), X[:2, 1:2]
    tried = np.linspace(0, 120, 2401)
    costs = COST * tried - price[..., None] * np.minimum(y[..., None], tried)  # (2, S, J)
    worst = np.where(w[..., None] > 0, costs, -np.inf).max(1)
    a = model.decide(X[:2], risk=cs.WorstCase())
    assert np.allclose(model.expected_cost(X[:2], a, risk=cs.WorstCase()), worst.min(1), rtol=1e-3)
    caps = cs.Box(0.0, [[30.0], [120.0]])
    served = model.decide(X[1:2], caps.row(1), chance=cs.Chance(lambda y, a: y - a, 0.8))
    assert (w[1] * (y[1] <= served[0, 0] + 1e-3)).sum() >= 0.8
    with pytest.raises(ValueError, match="keeps the service level"):
        model.decide(X[:2], caps, chance=cs.Chance(lambda y, a: y - a, 0.8))
    found = model.explain(X[:1])
    assert found.expected_cost == pytest.approx(
        float((w[0][:, None] * costs[0]).sum(0).min()), rel=1e-3
    )
    assert model.update(*days(30, seed=3)).updated
