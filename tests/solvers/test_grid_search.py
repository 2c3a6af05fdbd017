"""A cached table of costs is equal to a new one, or is not used."""

import gc
from copy import deepcopy

import pytest
import torch
from torch import nn

import costscape.solvers.grid_search as module
from costscape import Box, ExpectedCost, Scenarios, Separable, SeparableTask
from costscape.solvers.grid_search import cost_table


class Priced(nn.Module):
    """A cost with a tensor of its own, which counts how many numbers it computes."""

    def __init__(self):
        super().__init__()
        self.register_buffer("price", torch.tensor(2.0))
        self.asked = 0

    def forward(self, y, a):
        cost = self.price * (y - a).relu() + (a - y).relu() + 0.1 * (a - y) ** 2
        self.asked += cost.numel()
        return cost


def problem(S=50, B=4, seed=0, dtype=torch.float32):
    rng = torch.Generator().manual_seed(seed)
    task = SeparableTask(Priced(), Box(-1.0, 1.0, dim=2), convex=True).to(dtype)
    weights = torch.randn(B, S, generator=rng).softmax(-1).to(dtype)
    return ExpectedCost(task, Scenarios(weights, torch.randn(1, S, 2, generator=rng).to(dtype)))


def grid(g, n=33):
    lower, upper = g.task.feasible.bounds
    return lower + torch.linspace(0, 1, n).to(lower)[:, None] * (upper - lower)


def right(table, g, a):
    fresh = g.task.terms(g.scenarios.values, a[:, None]).permute(2, 0, 1)
    return torch.allclose(table.costs, fresh, rtol=1e-5, atol=1e-6)


def solve(g):
    return Separable().minimise(g, g.task.feasible, len(g))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_table_is_f_and_is_made_once(dtype):
    g = problem(dtype=dtype)
    a = grid(g)
    table = cost_table(g, a)
    assert right(table, g, a)
    # other tensors of the same numbers, as a model makes at each call
    same = ExpectedCost(g.task, Scenarios(g.scenarios.weights[:1], g.scenarios.values.clone()))
    assert cost_table(same, a.clone()) is table


def test_a_second_call_evaluates_f_little_and_decides_the_same():
    g = problem()
    f = g.task.f_terms
    first = solve(g)
    made, f.asked = f.asked, 0
    second = solve(g)
    assert torch.equal(first.action, second.action)
    assert f.asked < made / 5


def change_values(g):
    with torch.no_grad():
        g.scenarios.values.add_(0.3)


def change_one_value(g):
    with torch.no_grad():
        g.scenarios.values[0, 17, 1] += 1e-3


def change_price(g):
    g.task.f_terms.price.fill_(5.0)


def change_bounds(g):
    g.task.feasible.upper.fill_(2.0)


def change_precision(g):
    g.task.double()
    s = g.scenarios
    object.__setattr__(g, "scenarios", Scenarios(s.weights.double(), s.values.double()))


@pytest.mark.parametrize("B", [1, 4])
@pytest.mark.parametrize(
    "change", [change_values, change_one_value, change_price, change_bounds, change_precision]
)
def test_no_change_in_place_is_missed(change, B):
    g = problem(B=B)
    before = cost_table(g, grid(g))
    solve(g)
    change(g)
    assert right(cost_table(g, grid(g)), g, grid(g))
    found = solve(g)
    fresh = solve(ExpectedCost(deepcopy(g.task), g.scenarios))
    assert torch.equal(found.action, fresh.action)
    assert cost_table(g, grid(g)) is not before


def test_a_copy_of_the_task_has_a_table_of_its_own():
    g = problem()
    table = cost_table(g, grid(g))
    other = ExpectedCost(deepcopy(g.task), g.scenarios)
    change_price(other)
    assert right(cost_table(other, grid(other)), other, grid(other))
    assert cost_table(g, grid(g)) is table


def test_a_table_goes_with_its_task():
    gc.collect()
    before = len(module._cached)
    g = problem()
    cost_table(g, grid(g))
    assert len(module._cached) == before + 1
    del g
    gc.collect()
    assert len(module._cached) == before


def test_tables_take_no_more_than_is_allowed(monkeypatch):
    one = 33 * 50 * 2 * 4
    monkeypatch.setattr(module, "CACHE_BYTES", 3 * one)
    alive = [problem(seed=i) for i in range(6)]
    for g in alive:
        cost_table(g, grid(g))
        assert sum(t.bytes for t in module._cached.values()) <= 3 * one
    assert alive[-1].task in module._cached
    assert alive[0].task not in module._cached


def test_a_table_too_large_is_not_made(monkeypatch):
    g = problem()
    want = solve(g)
    monkeypatch.setattr(module, "TABLE_BYTES", 1000)
    assert not module.fits(g, 1025)
    torch.testing.assert_close(solve(g).cost, want.cost, rtol=1e-6, atol=1e-6)


class Patched(nn.Module):
    """A cost that may be changed between two actions alone."""

    def __init__(self):
        super().__init__()
        self.register_buffer("price", torch.tensor(0.0))

    def forward(self, y, a):
        return (y - a).abs() - self.price * ((a > 0.5) & (a < 0.75))


@pytest.mark.parametrize("S", [3, 50, 200])
def test_a_change_far_from_the_best_action_is_seen(S):
    rng = torch.Generator().manual_seed(0)
    task = SeparableTask(Patched(), Box(-1.0, 1.0, dim=2))
    values = 0.1 * torch.randn(1, S, 2, generator=rng)
    g = ExpectedCost(task, Scenarios(torch.full((1, S), 1 / S), values))
    before = solve(g)
    assert (before.action.abs() < 0.4).all()
    task.f_terms.price.fill_(5.0)
    assert ((solve(g).action > 0.49) & (solve(g).action < 0.76)).all()


def test_every_outcome_is_probed_at_actions_from_the_whole_grid():
    for S in (3, 64, 5000):
        g = problem(S=S)
        probes = cost_table(g, grid(g, 1025)).probes
        assert probes.shape[1:] == (S, 2)
        gaps = probes[..., 0].flatten().sort().values.diff()
        assert gaps.max() <= 2 / (len(probes) * S) + 4 / 1024
