"""One x alone is decided as it is among others, and the bounds that spare it the grid hold."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import costscape.solvers.box_search as module
import costscape.solvers.grids.table as table_module
from costscape import Box, ExpectedCost, Scenarios, Separable, SeparableTask
from costscape.problems import inventory, synthetic_convex, synthetic_nonconvex, wind_bidding
from costscape.solvers.grids.bends import find_bends
from costscape.solvers.grids.groups import GROUP, NEAR, lower_bounds, within
from costscape.solvers.grids.single import _valleys
from costscape.solvers.grids.table import FALL, cost_table
from costscape.solvers.grids.valleys import hopeful, local_minima

TASKS = {
    "convex": synthetic_convex,
    "nonconvex": synthetic_nonconvex,
    "inventory": lambda: inventory(days=3),
    "wind": lambda: wind_bidding(hours=12),
}


def surface(task, S, seed=0, sharp=2.0):
    rng = torch.Generator().manual_seed(seed)
    weights = (sharp * torch.randn(1, S, generator=rng)).softmax(-1)
    values = 1.5 * torch.randn(1, S, task.feasible.dim, generator=rng)
    return ExpectedCost(task, Scenarios(weights, values))


def twice(g):
    """The same x two times: no longer alone."""
    return g.on(Scenarios(g.scenarios.weights.expand(2, -1), g.scenarios.values))


def solve(g):
    return Separable().minimise(g, g.task.feasible, len(g))


def exact(g, a):
    s = g.scenarios
    double = g.on(Scenarios(s.weights.double(), s.values.double()))
    return double(a.double()[:, None])[:, 0]


def bumpy(jump, wave):
    def terms(y, a):
        bowl = 3 * (y - a).relu() + (a - y).relu() + 0.3 * (y - a) ** 2
        return bowl + jump * (a > y) + 0.2 * (wave * a + y).sin()

    return SeparableTask(terms, Box([-2.0, -1.0], [2.0, 3.0]))


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("S", [1, 7, 300])
@pytest.mark.parametrize("sharp", [0.0, 2.0, 10.0])
def test_one_x_alone_is_decided_as_among_others(name, S, sharp):
    g = surface(TASKS[name](), S, sharp=sharp)
    together = solve(twice(g))  # which makes the table
    alone = solve(g)
    one, other = exact(g, alone.action), exact(g, together.action[:1])
    torch.testing.assert_close(one, other, rtol=4e-6, atol=4e-6)
    torch.testing.assert_close(alone.cost.double(), one, rtol=1e-5, atol=1e-5)


@given(
    seed=st.integers(0, 2**31),
    sharp=st.floats(0, 10),
    jump=st.floats(0, 5),
    wave=st.floats(0, 40),
    S=st.integers(1, 80),
)
@settings(deadline=None, max_examples=60)
def test_one_x_alone_is_decided_as_among_others_whatever_the_cost(seed, sharp, jump, wave, S):
    g = surface(bumpy(jump, wave), S, seed, sharp)
    together = exact(g, solve(twice(g)).action[:1])
    alone = exact(g, solve(g).action)
    assert (alone <= together + 1e-5 * (1 + together.abs())).all()


@pytest.mark.parametrize("name", TASKS)
def test_a_known_table_is_all_that_one_x_needs(name, monkeypatch):
    g = surface(TASKS[name](), 300)
    first, want = solve(g), solve(g)
    torch.testing.assert_close(first.cost, want.cost, rtol=2e-6, atol=2e-6)

    def never(*_):
        raise AssertionError("searched among others")

    monkeypatch.setattr(module, "_on_grid", never)
    found = solve(g)
    torch.testing.assert_close(found.cost, want.cost, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("name", TASKS)
def test_outcomes_that_only_one_x_has_are_not_tabulated(name, monkeypatch):
    def never(*_):
        raise AssertionError("made a table")

    monkeypatch.setattr(module, "cost_table", never)
    task = TASKS[name]()
    for seed in range(3):
        g = surface(task, 100, seed)
        found = solve(g.on(replace(g.scenarios, own=True)))
        own = Scenarios(
            g.scenarios.weights.expand(2, -1), g.scenarios.values.expand(2, -1, -1).contiguous()
        )
        other = solve(g.on(own))  # as among others that have their own
        torch.testing.assert_close(found.cost[0], other.cost[0], rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("name", TASKS)
def test_the_first_answer_and_later_ones_are_the_same_bits(name):
    g = surface(TASKS[name](), 100)
    first = solve(g)
    for _ in range(3):
        again = solve(g)
        assert torch.equal(first.action, again.action)
        assert torch.equal(first.cost, again.cost)


def test_a_summand_that_looks_at_another_coordinate_is_no_stranger():
    def terms(y, a):
        return (y - a).abs() + 0.5 * (a - y.flip(-1)).relu()

    task = SeparableTask(terms, Box(-1.0, 1.0, dim=3))
    g = surface(task, 200)
    table = cost_table(g, torch.linspace(-1, 1, 1025)[:, None].expand(-1, 3))
    assert not table.alone
    plain = torch.linspace(-1, 1, 4001)[:, None].expand(-1, 3)
    best = g.terms(plain[None])[0].amin(0).sum()
    for found in (solve(g), solve(g), solve(g), solve(twice(g))):
        assert (found.cost <= best + 1e-5).all()


@pytest.mark.parametrize("name", TASKS)
def test_known_costs_look_at_one_coordinate_for_each_summand(name):
    task = TASKS[name]()
    lower, upper = task.feasible.bounds
    a = lower + torch.linspace(0, 1, 129)[:, None] * (upper - lower)
    assert cost_table(surface(task, 50), a).alone


def tables(seed, J, S, jumps):
    rng = torch.Generator().manual_seed(seed)
    steps = torch.randn(2, J, S, generator=rng) * (torch.rand(2, J, S, generator=rng) < jumps)
    slope = torch.linspace(-1, 1, J)[:, None] + torch.randn(2, 1, S, generator=rng)
    w = torch.randn(S, generator=rng).softmax(-1)
    return (steps.cumsum(1) / 4 + 5 * slope.square()), w


@given(
    seed=st.integers(0, 2**31),
    J=st.integers(8 * GROUP, 200),
    S=st.integers(1, 20),
    jumps=st.floats(0, 1),
)
@settings(deadline=None, max_examples=80)
def test_a_bound_is_below_what_it_bounds(seed, J, S, jumps):
    costs, w = tables(seed, J, S, jumps)
    g = costs @ w  # (2, J)
    low = lower_bounds(costs, FALL) @ w
    for c in range(low.shape[1]):
        points = g[:, GROUP * c : GROUP * (c + 1)]
        near = g[:, max(0, GROUP * c - NEAR) : GROUP * (c + 1) + NEAR]
        bound = points.amin(1) - FALL * near.diff().abs().amax(1)
        assert (low[:, c] <= bound + 1e-4).all()


@given(
    seed=st.integers(0, 2**31),
    J=st.integers(8 * GROUP, 200),
    S=st.integers(1, 20),
    jumps=st.floats(0, 1),
)
@settings(deadline=None, max_examples=80)
def test_what_is_looked_at_holds_every_hopeful_valley(seed, J, S, jumps):
    costs, w = tables(seed, J, S, jumps)
    size = costs.abs().mean(-1).amin(-1)
    part, inside, begin = within(costs, lower_bounds(costs, FALL), size, w)
    whole, part = costs @ w, torch.from_numpy(part)
    known = part.isfinite()
    torch.testing.assert_close(
        part[known], whole[:, begin : begin + part.shape[1]][known], rtol=1e-5, atol=1e-5
    )
    best, k, found = local_minima(whole[None], J)
    found &= hopeful(whole[None], best, k)
    for i in range(2):
        here = k[0, i][found[0, i]] - begin
        assert (here >= 0).all()
        assert (here < part.shape[1]).all()
        assert inside[i, here].all()


@given(
    seed=st.integers(0, 2**31),
    J=st.integers(8 * GROUP, 200),
    S=st.integers(1, 20),
    jumps=st.floats(0, 1),
    n=st.integers(1, 4),
)
@settings(deadline=None, max_examples=80)
def test_the_valleys_of_one_x_are_those_it_has_among_others(seed, J, S, jumps, n):
    costs, w = tables(seed, J, S, jumps)
    g = costs @ w
    k = _valleys(g.numpy(), np.ones(g.shape, bool), n)
    best, want, found = local_minima(g, n)
    found &= hopeful(g, best, want)
    found[:, 0] = True
    for i in range(2):
        assert set(k[:, i].tolist()) == set(want[i][found[i]].tolist())
        assert int(k[0, i]) == int(want[i, 0])


def test_bounds_of_infinite_costs_are_none():
    costs, _ = tables(0, 100, 5, 0.5)
    costs[1, 50, 2] = torch.inf
    assert lower_bounds(costs, FALL) is None


def test_the_outcomes_that_bend_are_those_with_a_kink_nearby():
    a = torch.linspace(0, 1, 101)
    y = torch.tensor([0.2031, 0.5004, 0.9013, 7.0, 8.0, 9.0, 10.0, 11.0])
    costs = (a[:, None] - y).abs()[None]
    bends = find_bends(costs, costs.mean(-1).amin(-1))
    for k in range(101):
        i, n = int(bends.start[0, k]), int(bends.count[0, k])
        centre = min(max(k, 2), 98) / 100
        want = ((y - centre).abs() < 0.02).nonzero()[:, 0]
        assert bends.fine[0, k]
        assert bends.outcomes[i : i + n].tolist() == want.tolist()


def kept(task):
    """What is kept of f between the grid points."""
    (cuts,) = table_module._kept.get(task).cuts.values()
    return cuts


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("hours", [1, 12])
def test_what_is_kept_between_grid_points_changes_no_bit(name, hours):
    task = wind_bidding(hours=hours) if name == "wind" else TASKS[name]()
    values = surface(task, 100).scenarios.values
    for seed in range(10):
        weights = surface(task, 100, seed + 1, sharp=seed).scenarios.weights
        g = ExpectedCost(task, Scenarios(weights, values))
        with_all = solve(g)
        table = table_module._kept.get(task)
        known = kept(task)
        table.cuts.clear()  # f is asked instead
        asked = solve(g)
        assert torch.equal(with_all.action, asked.action)
        assert torch.equal(with_all.cost, asked.cost)
        assert torch.equal(kept(task).numbers, known.numbers)


@pytest.mark.parametrize("name", TASKS)
def test_what_is_kept_between_grid_points_is_f_there(name):
    task = TASKS[name]()
    solve(surface(task, 60))
    table, numbers = table_module._kept.get(task), kept(task).numbers
    bends, lower = table.bends, task.feasible.lower
    width, h = task.feasible.upper - lower, 1 / 1024 / 8
    for i in range(task.feasible.dim):
        for k in range(2, 1023, 37):
            start, count = int(bends.start[i, k]), int(bends.count[i, k])
            s, got = bends.outcomes[start : start + count], numbers[start : start + count]
            t = (k / 1024 + h * torch.arange(-7, 8)).clamp(0, 1)
            a = lower + t[:, None, None] * width
            f = task.terms(table.values[0, s], a)[..., i]
            assert torch.equal(got[:, :15], f.T)
            assert torch.equal(got[:, 15:18], table.costs[i, k - 2 : k + 3 : 2, s].T)
            assert torch.equal(got[:, 18], table.values[0, s, i])


def test_a_changed_cost_leaves_nothing_kept_between_grid_points():
    factor = torch.tensor(1.0)

    def terms(y, a):
        return factor * (y - a).relu() + (a - y).relu()

    task = SeparableTask(terms, Box(-1.0, 1.0, dim=2))
    g = surface(task, 100)
    solve(g)
    before = kept(task)
    factor.fill_(3.0)
    found = solve(g)
    assert before not in table_module._kept.get(task).cuts.values()
    again = solve(g)
    assert not torch.equal(kept(task).numbers, before.numbers)
    fresh = ExpectedCost(SeparableTask(terms, Box(-1.0, 1.0, dim=2)), g.scenarios)
    for each in (found, again):
        torch.testing.assert_close(exact(g, each.action), exact(g, solve(fresh).action))


@pytest.mark.parametrize("kinks", [2, 12])
def test_what_is_kept_with_a_table_is_bounded(kinks):
    def terms(y, a):
        at = torch.linspace(-1, 1, kinks)
        return (a[..., None] - y[..., None] / 9 - at).abs().mean(-1)

    task = SeparableTask(terms, Box(-1.0, 1.0, dim=2))
    g = surface(task, 100)
    solve(g)
    table = table_module._kept.get(task)
    bends = table.bends.outcomes.nbytes
    taken = sum(cuts.numbers.nbytes for cuts in table.cuts.values()) + bends
    assert bends > 0
    assert bool(table.cuts) == (kinks == 2)
    assert taken <= table.costs.nbytes / 2
