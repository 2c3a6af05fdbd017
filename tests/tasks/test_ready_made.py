"""Ready-made tasks against their formulas, their quantiles and brute force."""

import copy
import pickle
from itertools import product

import numpy as np
import pytest
import torch

import costscape as cs
from costscape.checks import check_task

RNG = np.random.default_rng(0)
Y = torch.tensor(RNG.gamma(4, 3, size=(41, 2)), dtype=torch.float32)


def best(task, y=Y):
    weights = torch.full((1, len(y)), 1 / len(y))
    g = cs.ExpectedCost(task, cs.Scenarios(weights, y[None]))
    return cs.Auto().minimise(g, task.feasible, 1)


TASKS = {
    "stock": cs.newsvendor([4.0, 1.0], 1.0, upper=50.0),
    "shared": cs.newsvendor([4.0, 1.0], [1.0, 2.0], capacity=20.0, upper=[15.0, 9.0]),
    "packs": cs.newsvendor([4.0, 1.0], 1.0, capacity=20.0, pack=[3, 2]),
    "bids": cs.bidding([50.0, 40.0], 80.0, 20.0, capacity=30.0),
    "shares": cs.allocation([3.0, 1.0], 0.5, budget=20.0),
    "beds": cs.allocation([3.0, 1.0], 0.5, budget=20.0, unit=1.0),
}


@pytest.mark.parametrize("name", TASKS)
def test_the_contract_of_a_task_is_kept(name):
    check_task(TASKS[name], Y)
    a = TASKS[name].feasible.sample(3)
    for copied in (copy.deepcopy(TASKS[name]), pickle.loads(pickle.dumps(TASKS[name]))):
        assert torch.equal(copied.cost(Y[:3], a), TASKS[name].cost(Y[:3], a))


def test_the_best_order_is_the_quantile_of_the_prices():
    a = best(TASKS["stock"]).action[0]
    assert a.tolist() == pytest.approx(
        [float(Y[:, 0].sort().values[32]), float(Y[:, 1].median())], abs=0.02
    )


def test_a_service_level_raises_orders_to_that_quantile_of_the_demand():
    """The cheapest order is the 80 % quantile of the first product; 95 % are asked for."""
    X = np.zeros((len(Y), 1))
    X[:, 0] = np.arange(len(Y))
    task = cs.newsvendor([4.0, 99.0], 1.0, upper=50.0, service=0.95)
    model = cs.NearestNeighbours(task, k=33).fit(X, Y.numpy())
    near = Y[:33].sort(0).values  # of the first row of X, 33 neighbours
    a = model.decide(X[:1])[0]
    assert a[0] == pytest.approx(float(near[31, 0]), abs=0.02)  # 32 of 33 are at least 95 %
    assert a[1] == pytest.approx(float(near[32, 1]), abs=0.02)  # the price asks for 99 %
    with pytest.raises(ValueError, match="level between 0 and 1"):
        cs.newsvendor(4.0, 1.0, upper=50.0, service=95, dim=2)


def test_the_best_bid_is_the_quantile_of_the_prices():
    a = best(TASKS["bids"]).action[0]
    ranks = [int(np.ceil(41 * (p - 20) / 60)) - 1 for p in (50, 40)]
    wanted = [float(Y[:, i].sort().values[r]) for i, r in enumerate(ranks)]
    assert a.tolist() == pytest.approx(wanted, abs=0.02)


def test_the_revenue_of_a_bid():
    task = cs.bidding(50.0, 80.0, 20.0, capacity=8.0, dim=2)
    y, a = torch.tensor([3.0, 5.0]), torch.tensor([4.0, 2.0])
    assert float(task.cost(y, a)) == -(50 * 4 - 80 * 1) - (50 * 2 + 20 * 3)


@pytest.mark.parametrize(("name", "step"), [("packs", (3, 2)), ("beds", (1, 1))])
def test_whole_units_are_those_of_brute_force(name, step):
    task = TASKS[name]
    grid = torch.tensor([*product(*(range(0, 21, s) for s in step))], dtype=torch.float32)
    grid = grid[task.feasible.violation(grid) < 1e-5]
    costs = task.cost(Y[:, None], grid[None]).mean(0)
    assert float(best(task).cost) == pytest.approx(float(costs.min()), rel=1e-5)


@pytest.mark.parametrize("name", ["shared", "shares"])
def test_a_shared_total_is_spent_as_on_a_fine_grid(name):
    task = TASKS[name]
    first = torch.linspace(0, 20, 2001)
    upper = 9.0 if name == "shared" else 20.0
    grid = torch.stack([first, (20 - first).clamp(max=upper)], -1)
    grid = grid[task.feasible.violation(grid) < 1e-4]
    costs = task.cost(Y[:, None], grid[None]).mean(0)
    assert float(best(task).cost) <= float(costs.min()) * 1.001


@pytest.mark.parametrize("name", ["stock", "shares"])
def test_the_mean_under_a_normal_law_is_that_of_draws(name):
    task = TASKS[name]
    m, s, a = torch.tensor([8.0, 3.0]), torch.tensor([2.0, 1.0]), torch.tensor([9.0, 2.5])
    draws = m + s * torch.randn(400_000, 2, generator=torch.Generator().manual_seed(0))
    assert float(task.normal(m, s, a).sum()) == pytest.approx(
        float(task.cost(draws, a).mean()), rel=0.005
    )


def test_the_best_order_in_hindsight():
    y = torch.tensor([[-1.0, 60.0], [3.0, 4.0]])
    assert TASKS["stock"].hindsight(y).tolist() == [[0, 50], [3, 4]]
    assert TASKS["bids"].hindsight(y).tolist() == [[0, 30], [3, 4]]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: cs.newsvendor(2.0, 1.0, dim=3), "capacity=.*or upper=.*got neither"),
        (lambda: cs.newsvendor(-2.0, 1.0, upper=9.0), "newsvendor needs finite prices >= 0, .*-2"),
        (lambda: cs.newsvendor([2.0, 1.0], [1.0] * 3, upper=9.0), "vector of 3 numbers"),
        (lambda: cs.bidding(50.0, 40.0, 20.0, capacity=8.0), "sell <= price <= buy, .* buy 40"),
        (lambda: cs.allocation(float("nan"), dim=2), "finite prices"),
        (lambda: cs.allocation(1.0, dim=0), "dim"),
    ],
)
def test_arguments_that_cannot_be_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
