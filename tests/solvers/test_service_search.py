"""The cheapest action within a service level, against closed forms and brute force."""

import itertools

import numpy as np
import pytest
import torch

import costscape as cs
from costscape.risk import ServiceLimit
from costscape.solvers.service_search import minimise_within

rng = np.random.default_rng(0)
Y2 = torch.tensor(rng.gamma(4.0, 0.25, (4, 60, 2)), dtype=torch.float32)
W = torch.tensor(rng.dirichlet(np.ones(60), 4), dtype=torch.float32)
TWO = cs.Scenarios(W, Y2)
GRID = torch.tensor(list(itertools.product(np.linspace(0, 3, 101), repeat=2))).float()


def terms(y, a):
    return 2 * (y - a).relu() + (a - y).relu()


def each(y, a):
    return y - a


def together(y, a):
    return (y - a).amax(-1)


def step_quantile(values, weights, level):
    order = np.argsort(values)
    below = np.cumsum(weights[order])
    return values[order][np.searchsorted(below, level - 1e-6)]


def probability(chance, scenarios, actions):
    """P(h <= 0) of actions (K, d) for each row, by the definition."""
    h = chance.values(scenarios.values[:, None], actions[None, :, None], 3)
    return (scenarios.weights[:, None, :, None] * (h <= 0)).sum(2)


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_the_newsvendor_within_a_level_orders_the_larger_of_two_quantiles(level):
    feasible = cs.Box(0.0, 9.0, dim=2)
    task = cs.SeparableTask(terms, feasible, convex=True)
    v = ServiceLimit(cs.Chance(each, level), task, TWO)
    found = minimise_within(cs.ExpectedCost(task, TWO), v, feasible, cs.Auto())
    assert found.kept.all()
    for b, i in itertools.product(range(4), range(2)):
        y, w = Y2[b, :, i].double().numpy(), W[b].double().numpy()
        wanted = max(step_quantile(y, w, level), step_quantile(y, w, 2 / 3))
        assert float(found.action[b, i]) == pytest.approx(wanted, abs=1e-4)


def best_on_grid(g, chance, actions):
    kept = (probability(chance, TWO, actions) >= chance.level - 1e-6).all(-1)
    return g(actions[None]).masked_fill(~kept, torch.inf).amin(1)


BOX, BUDGET = cs.Box(0.0, 3.0, dim=2), cs.Budget(total=4.2, dim=2)


@pytest.mark.parametrize(
    ("feasible", "h", "risk"),
    [
        (BOX, each, None),
        (BOX, together, None),
        (BUDGET, together, None),
        (BOX, together, cs.CVaR(0.8)),
        (BUDGET, each, cs.CVaR(0.8)),
    ],
)
def test_answers_keep_the_level_and_cost_no_more_than_the_best_of_a_grid(feasible, h, risk):
    chance = cs.Chance(h, 0.85)
    task = cs.SeparableTask(terms, feasible, convex=True)
    g = cs.ExpectedCost(task, TWO) if risk is None else cs.RiskCost(task, TWO, risk)
    found = minimise_within(g, ServiceLimit(chance, task, TWO), feasible, cs.Auto())
    at = probability(chance, cs.Scenarios(W, Y2), found.action)  # (rows, actions, k)
    kept = at[torch.arange(4), torch.arange(4)]
    assert found.kept.all()
    assert (kept >= 0.85 - 1e-5).all()
    inside = GRID[feasible.contains(GRID)]
    best = best_on_grid(g, chance, inside)
    assert (g(found.action[:, None])[:, 0] <= best * 1.005).all()


@pytest.mark.parametrize(
    "feasible",
    [
        cs.Finite(GRID[::7]),
        cs.Box(0.0, 3.0, dim=2, step=0.25),
        cs.Whole(cs.Budget(total=4.2, dim=2), step=0.25),
    ],
    ids=["list", "packs", "packs of a budget"],
)
def test_lists_and_whole_units_give_the_best_of_all_points(feasible):
    chance = cs.Chance(each, 0.85)
    task = cs.SeparableTask(lambda y, a: terms(y, a) + (a > 1.3) * 0.2, feasible)
    g, v = cs.ExpectedCost(task, TWO), ServiceLimit(chance, task, TWO)
    found = minimise_within(g, v, feasible, cs.Auto())
    points = feasible.actions if isinstance(feasible, cs.Finite) else feasible.points(100_000)
    best = best_on_grid(g, chance, points)
    assert torch.allclose(g(found.action[:, None])[:, 0], best)


def test_many_whole_units_are_best_in_each_coordinate():
    feasible = cs.Box(0.0, 3.0, dim=2, step=0.005)  # 361,201 points
    task = cs.SeparableTask(lambda y, a: terms(y, a) + (a > 1.3) * 0.2, feasible)
    g, v = cs.ExpectedCost(task, TWO), ServiceLimit(cs.Chance(each, 0.85), task, TWO)
    found = minimise_within(g, v, feasible, cs.Auto())
    line = torch.arange(601)[None, :, None].expand(1, -1, 2) * 0.005
    kept = probability(cs.Chance(each, 0.85), TWO, line[0]) >= 0.85 - 1e-6
    best = g.terms(line).masked_fill(~kept, torch.inf).amin(1).sum(-1)
    assert torch.allclose(g(found.action[:, None])[:, 0], best, rtol=1e-5)


def test_large_sets_of_whole_units_are_searched_and_keep_the_level():
    feasible = cs.Box(0.0, 3.0, dim=2, step=0.005)
    chance = cs.Chance(together, 0.85)  # no coordinate by itself
    task = cs.SeparableTask(terms, feasible, convex=True)
    g, v = cs.ExpectedCost(task, TWO), ServiceLimit(chance, task, TWO)
    found = minimise_within(g, v, feasible, cs.Auto())
    assert found.kept.all()
    assert (v(found.action[:, None]) <= 0).all()
    best = best_on_grid(g, chance, GRID)
    assert (g(found.action[:, None])[:, 0] <= best * 1.02).all()


@pytest.mark.parametrize("h", [each, together])
def test_where_no_action_keeps_the_level_the_safest_is_returned(h):
    feasible = cs.Box(0.0, 1.0, dim=2)
    task = cs.SeparableTask(terms, feasible, convex=True)
    v = ServiceLimit(cs.Chance(h, 0.99), task, TWO)
    found = minimise_within(cs.ExpectedCost(task, TWO), v, feasible, cs.Auto())
    assert not found.kept.any()
    assert torch.allclose(v(found.action[:, None])[:, 0], v(torch.ones(1, 1, 2))[:, 0], atol=1e-4)
