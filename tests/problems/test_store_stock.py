import copy
import pickle

import numpy as np
import pytest
import torch

from costscape import DF2, NearestNeighbours
from costscape.checks import check_task
from costscape.models import Absolute
from costscape.problems import inventory
from costscape.problems.stock_orders.store_stock import by_item, store_inventory
from costscape.sets import Box, Budget, Polytope
from costscape.task import SeparableTask
from costscape.training import Training

D = torch.float64
PRICES = [1.0, 2.0, 0.5, 1.5, 3.0]
COUPLINGS = {
    "free": {},
    "purse": {"budget": 9.0},
    "priced": {"budget": 12.0, "price": [1.0, 2.0, 0.5]},
    "shelf": {"shelf": [3.0, 1.0]},
    "sizes": {"shelf": 2.0, "size": [1.0, 0.5, 2.0]},
    "both": {"budget": 6.0, "price": [1.0, 2.0, 0.5], "shelf": 3.0},
}


def demand(n, d, seed=0, dtype=D):
    rng = torch.Generator().manual_seed(seed)
    return 3 * torch.rand(n, d, generator=rng, dtype=D).to(dtype) ** 1.5


def by_cvxpy(task, y, w, days, *, under, over, budget=None, price=None, shelf=None):
    """min sum_s w_s f(y_s, a), written here without the task."""
    cp = pytest.importorskip("cvxpy")
    a = cp.Variable(y.shape[1])
    cost = 0
    for weight, row in zip(w, y, strict=True):
        short, spare = cp.pos(row - a), cp.pos(a - row)
        cost += weight * (under @ short + over @ spare + cp.sum_squares(a - row))
    limits = [a >= 0, a <= 3]
    if budget is not None:
        limits.append(np.repeat(price, days) @ a <= budget)
    if shelf is not None:
        limits += [cp.sum(a[t::days]) <= shelf for t in range(days)]
    problem = cp.Problem(cp.Minimize(cost), limits)
    problem.solve(solver=cp.CLARABEL)
    return a.value, problem.value


def test_the_cost_by_hand_with_penalties_per_item():
    task = store_inventory(2, days=2, under=[20.0, 10.0], over=[5.0, 1.0])
    y, a = torch.tensor([1.0, 2.0, 1.0, 2.0]), torch.tensor([2.0, 1.0, 3.0, 0.0])
    # item 0: one spare, one short; item 1: two spare, two short
    assert task.terms(y, a).tolist() == [5 + 1, 20 + 1, 2 * 1 + 4, 2 * 10 + 4]


def test_one_item_without_coupling_is_the_inventory_of_the_paper():
    y, a = demand(20, 7), demand(20, 7, seed=1)
    torch.testing.assert_close(store_inventory(1).cost(y, a), inventory().cost(y, a))
    s = 0.1 + demand(20, 7, seed=2)
    torch.testing.assert_close(
        store_inventory(1).double().normal(y, s, a), inventory().normal(y, s, a)
    )
    torch.testing.assert_close(store_inventory(1).hindsight(y), inventory().hindsight(y))


@pytest.mark.parametrize("name", COUPLINGS)
def test_every_coupling_keeps_the_contract_of_a_task(name):
    task = store_inventory(3, days=2, under=[20.0, 15.0, 30.0], **COUPLINGS[name])
    check_task(task, demand(8, 6))
    check_task(copy.deepcopy(task).double(), demand(8, 6))
    assert isinstance(task, SeparableTask)
    kind = {"free": Box, "purse": Budget}.get(name, Polytope)
    assert isinstance(task.feasible, kind)


def test_the_set_is_the_purse_and_the_shelves():
    task = store_inventory(3, days=2, budget=6.0, price=[1.0, 2.0, 0.5], shelf=3.0).double()
    a = task.feasible.sample(200, torch.Generator().manual_seed(0))
    table = by_item(a, 2)
    spent = (table * torch.tensor([1.0, 2.0, 0.5], dtype=D)[:, None]).sum((-1, -2))
    assert spent.max() <= 6 + 1e-9
    assert table.sum(-2).max() <= 3 + 1e-9
    # and no tighter: each limit can be reached
    full = torch.tensor([0.0, 1.5, 1.0, 0.5, 2.0, 1.0], dtype=D)  # 0 + 1.5 + 2 + 1 + 1 + .5 = 6
    assert task.feasible.contains(full)
    assert not task.feasible.contains(full + torch.tensor([0.1, 0, 0, 0, 0, 0], dtype=D))


def test_equal_prices_count_units():
    task = store_inventory(3, days=2, budget=9.0, price=1.5)
    assert float(task.feasible.total) == 6.0


def test_hindsight_is_feasible_and_no_sample_is_better():
    y = demand(4, 14)
    for limits in ({"budget": 5.0}, {"budget": 5.0, "price": [1.0, 2.0]}, {"shelf": 2.0}):
        task = store_inventory(2, squared=0.0, **limits).double()
        best = task.hindsight(y)
        assert task.feasible.contains(best, 1e-6).all()
        tried = task.feasible.sample(50, torch.Generator().manual_seed(0))
        assert (task.cost(y, best)[:, None] <= task.cost(y[:, None], tried) + 1e-6).all()
    torch.testing.assert_close(store_inventory(2, squared=0.0).hindsight(y), y.clamp(0, 3))


@pytest.mark.parametrize("coupling", ["budget", "both"])
def test_neighbours_decide_as_a_direct_convex_program_does(coupling):
    under, over = np.array([20.0, 10.0, 30.0, 5.0, 15.0]), np.array([5.0, 4.0, 3.0, 2.0, 1.0])
    limits = {"budget": 30.0, "price": PRICES} | ({"shelf": 4.0} if coupling == "both" else {})
    task = store_inventory(5, under=under, over=over, **limits).double()
    x, y = demand(40, 3, seed=1), demand(40, 35)
    model = NearestNeighbours(task, k=8).fit(x, y, val=(x[:4], y[:4]))
    a = model.decide(x[:3])
    s = model.scenarios(x[:3])
    for b in range(3):
        direct, value = by_cvxpy(
            task, s.values[b].numpy(), s.weights[b].numpy(), 7,
            under=under.repeat(7), over=over.repeat(7), **limits,
        )  # fmt: skip
        mean = float((s.weights[b] * task.cost(s.values[b], a[b])).sum())
        assert mean == pytest.approx(value, rel=1e-5)
        np.testing.assert_allclose(a[b], direct, atol=2e-3)
    spent = (by_item(a) * torch.tensor(PRICES, dtype=D)[:, None]).sum((-1, -2))
    assert spent.max() <= 30 + 1e-6
    assert spent.min() > 29.9  # the budget binds


def test_df2_learns_to_spend_the_purse_where_the_demand_is():
    rng = torch.Generator().manual_seed(0)
    x = torch.rand(300, 1, generator=rng)
    # where x is large the first item sells, else the second
    y = torch.cat([2 * x, 2 - 2 * x], 1).repeat_interleave(2, 1)
    task = store_inventory(2, days=2, budget=5.0, price=[1.0, 1.5])
    model = DF2(
        task,
        points=40,
        actions=30,
        folds=1,
        ema=None,
        outcomes=Absolute(),
        choose_epoch=False,
        training=Training(epochs=40, lr=0.02),
    ).fit(x[:250], y[:250], val=(x[250:], y[250:]))
    a = model.decide(torch.tensor([[0.1], [0.9]]))
    assert task.feasible.contains(a).all()
    table = by_item(a, 2)
    assert (table[1, 0] > table[0, 0] + 0.5).all()
    assert (table[0, 1] > table[1, 1] + 0.5).all()


def test_a_table_and_back():
    a = torch.arange(24.0).reshape(2, 12)
    table = by_item(a, days=4)
    assert table.shape == (2, 3, 4)
    assert table[1, 2].tolist() == [20, 21, 22, 23]
    assert torch.equal(table.flatten(-2), a)
    with pytest.raises(ValueError, match="got 12 numbers for 7 days"):
        by_item(a)


def test_a_pickled_task_costs_the_same():
    task = store_inventory(2, days=2, budget=4.0, price=[1.0, 2.0])
    twin = pickle.loads(pickle.dumps(task))
    y, a = demand(5, 4), demand(5, 4, seed=1)
    assert torch.equal(twin.cost(y, a), task.cost(y, a))
    assert torch.equal(twin.hindsight(y), task.hindsight(y))


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"items": 0}, "items to be a whole number of at least 1, but got 0"),
        ({"under": -1.0}, "under to be finite, .*at least 0, but got -1"),
        ({"price": [1.0, 0.0, 1.0]}, "price to be finite, .*positive, but got .1.0, 0.0"),
        (
            {"over": [1.0, 2.0]},
            r"over to be finite, a number, 3 numbers \(one an item\) or a table",
        ),
        ({"budget": -5.0}, "budget to be finite, one positive number, but got -5"),
        ({"shelf": [1.0, 2.0]}, "shelf to be finite, a positive number or 7 of them"),
        ({"squared": -1.0}, "finite prices >= 0, but squared is -1"),
        ({"cap": float("nan")}, "cap to be finite, .*but got nan"),
    ],
)
def test_bad_settings_get_a_sentence(wrong, sentence):
    with pytest.raises(ValueError, match=sentence):
        store_inventory(**{"items": 3} | wrong)
