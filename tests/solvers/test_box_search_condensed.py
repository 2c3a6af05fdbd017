"""Few outcomes stand for many within the stated bound, and only where the bound is small."""

from copy import deepcopy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import costscape.solvers.box_search as separable
import costscape.solvers.grids.condensed as module
import costscape.solvers.grids.table as table
from costscape import Box, ExpectedCost, Scenarios, Separable, SeparableTask
from costscape.problems import inventory, synthetic_convex, synthetic_nonconvex, wind_bidding
from costscape.solvers.grids.condensed import condensed, product

TASKS = {
    "convex": synthetic_convex,
    "nonconvex": synthetic_nonconvex,
    "inventory": lambda: inventory(days=3),
    "wind": lambda: wind_bidding(hours=2),
}


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """A table of 256 nodes for two coordinates is the largest allowed."""
    monkeypatch.setattr(table, "BYTES", 129 * 2 * 256 * 4)


def surface(task, B, S, sharp=0.5, seed=0):
    rng = torch.Generator().manual_seed(seed)
    weights = (sharp * torch.randn(B, S, generator=rng)).softmax(-1)
    return ExpectedCost(
        task, Scenarios(weights, torch.randn(1, S, task.feasible.dim, generator=rng))
    )


def grid(g, n=129):
    lower, upper = g.task.feasible.bounds
    return lower + torch.linspace(0, 1, n)[:, None] * (upper - lower)


def exact(g):
    s = g.scenarios
    return ExpectedCost(
        deepcopy(g.task).double(), Scenarios(s.weights.double(), s.values.double())
    )


def solve(g, prune=1e-6):
    return Separable(grid=129, prune=prune).minimise(g, g.task.feasible, len(g))


def bumpy(jump, wave):
    def terms(y, a):
        bowl = 3 * (y - a).relu() + (a - y).relu() + 0.3 * (y - a) ** 2
        return bowl + jump * (a > y) + 0.2 * (wave * a + y).sin()

    return SeparableTask(terms, Box([-2.0, -1.0], [2.0, 3.0]))


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("sharp", [0.0, 1.0, 10.0])
def test_g_at_the_nodes_is_off_by_no_more_than_the_bound(name, sharp):
    g = surface(TASKS[name](), 4, 3000, sharp)
    few = condensed(g, grid(g))
    v = few.weights(g.scenarios.weights)
    torch.testing.assert_close(v.sum(-1), torch.ones(v.shape[:2]), rtol=1e-5, atol=0)
    a = grid(g, 1001)
    terms = product(v.double(), module.fill(g.task, few.table.values, a).double())
    r = terms - exact(g).terms(a[None].double()).mT
    assert r.abs().amax() > 0
    assert (r.amax(-1) - r.amin(-1) <= few.bound(v) + 1e-6 * terms.abs().amax(-1)).all()
    assert (r.abs().amax(-1) <= few.bound(v) + 1e-6 * terms.abs().amax(-1)).all()


@given(
    seed=st.integers(0, 2**31),
    sharp=st.floats(0, 10),
    jump=st.floats(0, 5),
    wave=st.floats(0, 40),
    eps=st.sampled_from([1e-6, 1e-3, 0.03]),
)
@settings(deadline=None, max_examples=40)
def test_decisions_cost_no_more_than_stated_whatever_the_cost(seed, sharp, jump, wave, eps):
    g = surface(bumpy(jump, wave), 3, 2048, sharp, seed)
    few, whole = solve(g, eps), solve(g, 0.0)
    true = exact(g)
    one, other = (true(found.action[:, None].double())[:, 0] for found in (few, whole))
    f = g.task.terms(g.scenarios.values, grid(g)[:, None])
    spread = (f.amax(0) - f.amin(0)).amax(0).sum()
    slack = 1e-5 * (1 + other.abs())
    assert (one - other <= eps * spread + slack).all()
    assert ((few.cost - one).abs() <= eps * spread + slack).all()


@pytest.mark.parametrize(
    ("name", "sharp", "eps"),
    [("nonconvex", 0.5, 1e-4), ("nonconvex", 10.0, 1e-4), ("inventory", 0.5, 1e-3)],
)
def test_smooth_costs_are_decided_at_the_nodes_alone(name, sharp, eps, monkeypatch):
    def never(*_):
        raise AssertionError("searched all outcomes")

    g = surface(TASKS[name](), 5, 20_000, sharp)
    want = solve(g, 0.0)
    monkeypatch.setattr(Separable, "_search", never)
    found = solve(g, eps)
    true = exact(g)
    one, other = (true(each.action[:, None].double())[:, 0] for each in (found, want))
    assert (one - other <= 2e-4 * (1 + other.abs())).all()


def test_x_with_too_large_a_bound_are_searched_among_all():
    g = surface(synthetic_convex(), 6, 4000, 0.1)
    w = g.scenarios.weights.clone()
    w[::2] = 0.0
    w[::2, 17] = 1.0  # one outcome has all the weight, and a kink
    g = g.on(Scenarios(w, g.scenarios.values))
    few = condensed(g, grid(g))
    bound = few.bound(few.weights(w)) / few.spread
    eps = float(bound[1::2].amax())
    assert (bound[::2].amax(1) > eps).all()
    found, want = solve(g, eps), solve(g, 0.0)
    torch.testing.assert_close(found.cost[::2], want.cost[::2], rtol=1e-5, atol=1e-5)
    assert not torch.equal(found.cost[1::2], want.cost[1::2])


@pytest.mark.parametrize("name", TASKS)
def test_an_x_is_decided_alone_as_among_others_and_again(name):
    g = surface(TASKS[name](), 30, 4000, 1.0)
    eps = 1e-2
    together, again = solve(g, eps), solve(g, eps)
    assert torch.equal(together.action, again.action)
    for i in (0, 13, 29):
        alone = solve(g.rows(slice(i, i + 1)), eps)
        torch.testing.assert_close(alone.cost[0], together.cost[i], rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("name", TASKS)
def test_a_rough_look_at_the_bound_lets_the_same_x_pass(name):
    g = surface(TASKS[name](), 40, 3000, 4.0)
    few = condensed(g, grid(g))
    v = few.weights(g.scenarios.weights)
    share = (few.bound(v) / few.spread).amax(-1)
    for eps in (0.5 * share.amin(), share.median() * 1.0001, 2 * share.amax()):
        assert torch.equal(few.within(v, float(eps)), share <= eps)


class Priced(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("price", torch.tensor(2.0))
        self.asked = 0

    def forward(self, y, a):
        cost = self.price * (y - a) ** 2
        self.asked += cost.numel()
        return cost


def change_values(g):
    g.scenarios.values[0, 17, 1] += 1e-3


def change_price(g):
    g.task.f_terms.price.fill_(5.0)


def change_bounds(g):
    g.task.feasible.upper.fill_(2.0)


@pytest.mark.parametrize("change", [change_values, change_price, change_bounds])
def test_they_are_condensed_once_and_anew_after_any_change(change):
    task = SeparableTask(Priced(), Box(-1.0, 1.0, dim=2))
    g = surface(task, 2, 4000)
    first = condensed(g, grid(g))
    made, task.f_terms.asked = task.f_terms.asked, 0
    assert condensed(g, grid(g).clone()) is first
    assert task.f_terms.asked < made / 10
    change(g)
    new = condensed(g, grid(g))
    assert new is not first
    fresh = condensed(ExpectedCost(deepcopy(task), g.scenarios), grid(g))
    assert torch.equal(new.table.costs, fresh.table.costs)
    assert torch.equal(new.over, fresh.over)


def test_other_precision_is_not_condensed(monkeypatch):
    def never(*_):
        raise AssertionError("condensed")

    monkeypatch.setattr(separable, "condensed", never)
    g = exact(surface(synthetic_convex(), 2, 4000))
    solve(g)


def test_a_summand_of_more_than_one_coordinate_is_left_alone():
    def terms(y, a):
        return (y - a).abs() + 0.5 * (a - y.flip(-1)).relu()

    g = surface(SeparableTask(terms, Box(-1.0, 1.0, dim=2)), 2, 4000)
    assert condensed(g, grid(g)) is None
    torch.testing.assert_close(solve(g, 1e-2).cost, solve(g, 0.0).cost, rtol=1e-3, atol=0)


def test_a_cost_that_is_not_finite_is_left_alone():
    task = SeparableTask(lambda y, a: torch.where(a > y, torch.inf, y - a), Box(-9.0, 9.0, dim=2))
    g = surface(task, 2, 4000)
    assert condensed(g, grid(g)) is None


@pytest.mark.parametrize("values", ["equal", "two", "outlier"])
def test_outcomes_of_any_spacing_have_nodes(values):
    task = synthetic_nonconvex()
    g = surface(task, 3, 4000)
    y = g.scenarios.values.clone()
    if values == "equal":
        y[:] = 0.5
    elif values == "two":
        y[:] = (y > 0).float()
    else:
        y[0, 5] = 1e4
    g = g.on(Scenarios(g.scenarios.weights, y))
    few = condensed(g, grid(g))
    v = few.weights(g.scenarios.weights)
    torch.testing.assert_close(v.sum(-1), torch.ones(3, 2), rtol=1e-5, atol=0)
    a = grid(g)[::8]
    off = (product(v, few.table.costs[:, ::8]) - g.terms(a[None]).mT).abs().amax(-1)
    assert (off <= few.bound(v) + 1e-5 * few.table.costs.abs().amax((1, 2))).all()
    if values != "outlier":
        assert (off <= 1e-3).all()


def test_what_is_kept_takes_no_more_than_is_allowed(monkeypatch):
    alive = [surface(synthetic_convex(), 1, 2048, seed=i) for i in range(4)]
    condensed(alive[0], grid(alive[0]))
    one = module._bytes(module._kept.get(alive[0].task))
    monkeypatch.setattr(table, "KEPT", 2 * one)
    for g in alive[1:]:
        condensed(g, grid(g))
        assert module._kept.taken() <= 2 * one
    assert module._kept.get(alive[0].task) is None
    assert module._kept.get(alive[-1].task) is not None
