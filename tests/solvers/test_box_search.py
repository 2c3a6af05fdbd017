"""The box search against brute force, scipy, and itself without a table of costs."""

from dataclasses import replace
from math import prod

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

import costscape.solvers.box_search as module
import costscape.solvers.grid_search as table
from costscape import Box, ExpectedCost, Scenarios, Separable, SeparableTask
from costscape.expectation import CACHE, SEARCH
from costscape.problems import inventory, synthetic_convex, synthetic_nonconvex, wind_bidding


class Plain:
    """The same objective, of which the solver knows nothing but its costs: it has no table."""

    def __init__(self, g):
        self.g, self.terms = g, g.terms
        self.separable, self.convex, self.shared = g.separable, g.convex, g.shared

    def __call__(self, a):
        return self.g(a)

    def rows(self, i):
        return Plain(self.g.rows(i))


def surface(task, B, S, shared, dtype=torch.float32, seed=0, sharp=2.0, spread=1.0):
    rng = torch.Generator().manual_seed(seed)
    weights = (sharp * torch.randn(B, S, generator=rng)).softmax(-1)
    values = spread * torch.randn(1 if shared else B, S, task.feasible.dim, generator=rng)
    return ExpectedCost(task.to(dtype), Scenarios(weights.to(dtype), values.to(dtype)))


def both(g, solver=None):
    """Double-precision costs of the decision with a table, and of the one without."""
    solver, C = solver or Separable(), g.task.feasible
    fast = solver.minimise(g, C, len(g))
    slow = solver.minimise(Plain(g), C, len(g))
    s = g.scenarios
    exact = ExpectedCost(g.task, Scenarios(s.weights.double(), s.values.double()))
    return fast, *(exact(found.action.double()[:, None])[:, 0] for found in (fast, slow))


TASKS = {
    "convex": synthetic_convex,
    "nonconvex": synthetic_nonconvex,
    "inventory": lambda: inventory(days=3),
    "wind": lambda: wind_bidding(hours=3),
}


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("shared", [True, False], ids=["shared", "own"])
@pytest.mark.parametrize(("dtype", "tol"), [(torch.float32, 4e-6), (torch.float64, 1e-12)])
@pytest.mark.parametrize("B", [1, 1000])
def test_the_table_does_not_change_the_cost_of_a_decision(name, shared, dtype, tol, B):
    task = TASKS[name]()
    g = surface(task, B, 40 if B > 1 else 300, shared, dtype, spread=1.5)
    found, fast, slow = both(g)
    assert ((fast - slow).abs() <= tol * (1 + slow.abs())).all()
    torch.testing.assert_close(found.cost.double(), fast, rtol=1e-5, atol=1e-5)


@given(
    seed=st.integers(0, 2**31),
    sharp=st.floats(0, 10),
    shared=st.booleans(),
    jump=st.floats(0, 5),
    wave=st.floats(0, 40),
    points=st.integers(1, 80),
)
@settings(deadline=None, max_examples=60)
def test_the_table_does_not_change_the_cost_whatever_f_is(seed, sharp, shared, jump, wave, points):
    """Kinks, jumps and waves, in one cost."""

    def terms(y, a):
        bowl = 3 * (y - a).relu() + (a - y).relu() + 0.3 * (y - a) ** 2
        return bowl + jump * (a > y) + 0.2 * (wave * a + y).sin()

    task = SeparableTask(terms, Box([-2.0, -1.0], [2.0, 3.0]))
    _, fast, slow = both(surface(task, 5, points, shared, seed=seed, sharp=sharp))
    assert (fast <= slow + 1e-5 * (1 + slow.abs())).all()


@given(
    seed=st.integers(0, 2**31),
    sharp=st.floats(0, 10),
    shared=st.booleans(),
    kink=st.floats(0, 5),
    points=st.integers(1, 40),
    dtype=st.sampled_from([torch.float32, torch.float64]),
)
@settings(deadline=None, max_examples=60)
def test_convex_costs_are_decided_as_by_scipy(seed, sharp, shared, kink, points, dtype):
    def terms(y, a):
        return (y - a) ** 2 + kink * (y - a).relu()

    task = SeparableTask(terms, Box([-2.0, -1.0], [2.0, 3.0]), convex=True)
    g = surface(task, 2, points, shared, dtype, seed=seed, sharp=sharp)
    found = Separable().minimise(g, task.feasible, 2)
    for b, i in ((0, 0), (1, 1)):
        w = g.scenarios.weights[b].double()
        y = g.scenarios.values[0 if shared else b, :, i].double()
        lower, upper = (float(end[i]) for end in task.feasible.bounds)

        def cost(a, w=w, y=y):
            return float((w * terms(y, torch.as_tensor(a))).sum())

        best = minimize_scalar(
            cost, bounds=(lower, upper), method="bounded", options={"xatol": 1e-9}
        )
        least = min(best.fun, cost(lower), cost(upper))
        a = float(found.action[b, i])
        tolerance = 2.0**-20 * (upper - lower)  # of the position
        assert cost(a) <= least + tolerance * (1 + kink) + 1e-6 * (1 + abs(least))
        if dtype == torch.float64:  # strongly convex: the position is determined
            exact = min((best.x, lower, upper), key=cost)
            assert abs(a - exact) <= 1.1 * tolerance


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("shared", [True, False], ids=["shared", "own"])
def test_no_action_of_a_dense_grid_is_better(name, shared):
    task = TASKS[name]()
    g = surface(task, 6, 80, shared, torch.float64, spread=1.5)
    found = Separable().minimise(g, task.feasible, 6)
    lower, upper = task.feasible.bounds
    t = torch.linspace(0, 1, 20_001, dtype=torch.float64)[:, None]
    least = g.terms((lower + t * (upper - lower))[None]).amin(1).sum(-1)
    assert (found.cost <= least + 1e-5 * (1 + least.abs())).all()


def test_outcomes_that_only_one_x_has_are_not_tabulated(monkeypatch):
    def never(*_):
        raise AssertionError("made a table")

    monkeypatch.setattr(module, "cost_table", never)
    g = surface(TASKS["nonconvex"](), 1, 100, True)
    alone = g.on(replace(g.scenarios, own=True))
    found = Separable().minimise(alone, g.task.feasible, 1)
    w, y = g.scenarios.weights, g.scenarios.values
    pair = g.on(Scenarios(w.expand(2, -1), y.expand(2, -1, -1).contiguous()))
    other = Separable().minimise(pair, g.task.feasible, 2)
    torch.testing.assert_close(found.cost[0], other.cost[0], rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("name", TASKS)
def test_batch_mates_do_not_change_the_cost_of_a_decision(name):
    g = surface(TASKS[name](), 30, 100, True)
    together = Separable().minimise(g, g.task.feasible, 30)
    for i in (0, 7, 29):
        alone = Separable().minimise(g.rows(slice(i, i + 1)), g.task.feasible, 1)
        torch.testing.assert_close(alone.cost[0], together.cost[i], rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("edge", [-1.0, 1.0])
@pytest.mark.parametrize("convex", [True, False])
def test_the_ends_of_the_interval_are_reached(edge, convex):
    task = SeparableTask(
        lambda y, a: (a - 3 * edge - y) ** 2, Box(-1.0, 1.0, dim=2), convex=convex
    )
    g = surface(task, 4, 20, True, spread=0.1)
    found = Separable().minimise(g, task.feasible, 4)
    assert (found.action == edge).all()


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("shared", [True, False], ids=["shared", "own"])
@pytest.mark.parametrize("eps", [1e-6, 1e-2])
def test_light_outcomes_are_left_out_within_the_bound(name, shared, eps, monkeypatch):
    monkeypatch.setattr(module, "fits", lambda g, points: False)
    task, B, S = TASKS[name](), 3, 3000
    g = surface(task, B, S, shared, torch.float64, sharp=12.0)
    kept = g.scenarios.pruned(eps).weights
    assert kept.shape[1] < S / 4
    assert (kept.sum(1) < 1 - eps / 100).all()  # something is left out
    few = Separable(prune=eps).minimise(g, task.feasible, B)
    whole = Separable(prune=0.0).minimise(g, task.feasible, B)
    lower, upper = task.feasible.bounds
    y = g.scenarios.values
    a = lower + torch.linspace(0, 1, 65)[:, None] * (upper - lower)
    f = torch.cat([task.terms(part[:, None], a) for part in y.flatten(0, 1).split(500)])
    spread = (f.amax(1) - f.amin(1)).amax(0).sum()  # the most a move within C can change f
    assert (few.cost - whole.cost <= eps * spread).all()
    assert (few.cost >= whole.cost - 1e-9 * whole.cost.abs()).all()
    # the cost told is that of all outcomes
    torch.testing.assert_close(few.cost, g(few.action[:, None])[:, 0], rtol=1e-12, atol=0)


@pytest.mark.parametrize("shared", [True, False], ids=["shared", "own"])
@pytest.mark.parametrize("sharp", [0.1, 20.0], ids=["flat", "peaked"])
def test_a_hundred_thousand_points_stay_within_the_memory_allowed(shared, sharp, monkeypatch):
    monkeypatch.setattr(table, "TABLE_BYTES", 0)  # or a short grid would be tabulated
    most = 0

    def terms(y, a):
        nonlocal most
        most = max(most, prod(torch.broadcast_shapes(y.shape, a.shape)))
        return (y - a).abs()

    task = SeparableTask(terms, Box(-1.0, 1.0, dim=1), convex=True)
    g = surface(task, 2, 100_000, shared, sharp=sharp)
    Separable(grid=17).minimise(g, task.feasible, 2)
    assert most * 4 * 4 <= (CACHE if shared else SEARCH * torch.get_num_threads())


@pytest.mark.parametrize("prune", [-1e-9, 1.0])
def test_prune_must_be_a_share(prune):
    with pytest.raises(ValueError, match="needs prune to be a number of at least 0 and below 1"):
        Separable(prune=prune)
