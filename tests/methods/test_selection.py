"""Weights of candidates against brute force, SLSQP and exact solvers."""

from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from costscape import (
    Auto,
    Box,
    Budget,
    ExpectedCost,
    Finite,
    Greedy,
    ProjectedAdam,
    Scenarios,
    Separable,
    SeparableTask,
    Simplex,
    SlopeWeights,
    Task,
)
from costscape.block_bootstrap import block_length, standard_error
from costscape.data import Dataset
from costscape.methods.selection import (
    COSTLY_ROWS,
    ROWS,
    HeldOut,
    actions_between,
    clearly_behind,
    costs_of,
    held_out,
    some_rows,
)
from costscape.methods.slope_weights import on_simplex

GRID = torch.linspace(0, 1, 101, dtype=torch.float64)


def squares(guess, y):
    """A table in which candidate c takes f(y, a) = (y - a)^2 for (guess_c - a)^2."""
    n = len(y)
    a = GRID.expand(n, -1)[..., None]
    expected = (guess[:, :, None, None] - a[:, None]).square()
    return HeldOut(a, expected, (y[:, None, None] - a).square())


def simplex_grid(K, parts=20):
    """All weights that are multiples of 1 / parts."""
    for counts in product(range(parts + 1), repeat=K - 1):
        if sum(counts) <= parts:
            yield torch.tensor([*counts, parts - sum(counts)], dtype=torch.float64) / parts


def random_table(seed, n=40, K=3, J=12, d=1):
    rng = np.random.default_rng(seed)
    a = np.sort(rng.random((n, J, d)), 1)
    observed = (rng.random((n, 1, d)) - a) ** 2
    expected = observed[:, None] * 0.3 + ((rng.random((n, K, 1, d)) - a[:, None]) ** 2)
    return HeldOut(*(torch.tensor(part) for part in (a, expected, observed)))


# ---- the table


def test_the_decision_of_a_blend_is_the_action_of_least_expected_cost():
    table = random_table(0, d=2)
    w = torch.tensor([0.2, 0.5, 0.3], dtype=torch.float64)
    g = np.einsum("c,ncjk->njk", w.numpy(), table.expected.numpy())
    by_hand = [
        sum(table.observed[i, g[i, :, k].argmin(), k].item() for k in range(2)) for i in range(40)
    ]
    assert table.costs(w).tolist() == pytest.approx(by_hand)
    some = table.of([2, 0])
    assert torch.equal(some.expected, table.expected[:, [2, 0]])
    assert torch.equal(some.costs(w[:2]), table.of([0, 2]).costs(w[:2].flip(0)))


def test_costs_of_several_folds_follow_each_other():
    tables = [random_table(seed, n=10 + seed) for seed in range(3)]
    w = torch.tensor([0.2, 0.5, 0.3], dtype=torch.float64)
    found = costs_of(tables, w)
    assert found.tolist() == [c for table in tables for c in table.costs(w).tolist()]


# ---- greedy


def test_greedy_takes_the_perfect_candidate_alone():
    rng = torch.Generator().manual_seed(0)
    y = torch.rand(50, generator=rng, dtype=torch.float64)
    noise = torch.rand(50, 3, generator=rng, dtype=torch.float64)
    guess = torch.stack([noise[:, 0], y, noise[:, 1], noise[:, 2]], 1)
    assert Greedy().weights([squares(guess, y)]).tolist() == [0, 1, 0, 0]


def test_greedy_mixes_opposite_errors():
    rng = torch.Generator().manual_seed(0)
    y = 0.3 + 0.4 * torch.rand(60, generator=rng, dtype=torch.float64)
    table = squares(torch.stack([y + 0.2, y - 0.2, torch.full_like(y, 0.9)], 1), y)
    w = Greedy().weights([table])
    assert w.tolist() == [0.5, 0.5, 0.0]
    assert float(table.costs(w).mean()) < 1e-4
    alone = [float(table.costs(one).mean()) for one in torch.eye(3, dtype=torch.float64)]
    assert min(alone) > 0.03


@pytest.mark.parametrize("seed", range(6))
def test_greedy_is_near_the_best_of_all_weights(seed):
    rng = torch.Generator().manual_seed(seed)
    y = torch.rand(80, generator=rng, dtype=torch.float64)
    errors = 0.3 * torch.randn(80, 3, generator=rng, dtype=torch.float64)
    tables = [squares((y[:, None] + errors)[i::2], y[i::2]) for i in range(2)]
    w = Greedy().weights(tables)
    assert float(w.sum()) == pytest.approx(1)
    found = float(costs_of(tables, w).mean())
    best = min(float(costs_of(tables, v).mean()) for v in simplex_grid(3))
    alone = min(float(costs_of(tables, v).mean()) for v in torch.eye(3, dtype=torch.float64))
    assert found <= alone
    assert found - best <= 0.1 * (alone - best) + 1e-9


@given(st.integers(0, 10_000), st.integers(1, 25))
@settings(max_examples=30, deadline=None)
def test_greedy_is_never_worse_than_the_best_single_candidate(seed, rounds):
    table = random_table(seed, n=15, K=4)
    w = Greedy(rounds).weights([table])
    one = torch.eye(4, dtype=torch.float64)
    assert float(w.sum()) == pytest.approx(1)
    assert (w >= 0).all()
    least = min(float(table.costs(v).mean()) for v in one)
    assert float(table.costs(w).mean()) <= least + 1e-12
    counts = w * torch.arange(1, rounds + 1)[:, None]
    assert ((counts - counts.round()).abs().amax(1) < 1e-9).any()


# ---- slopes


def slopes_loss(table, w):
    """The integral over a of the squared difference of slopes, as a sum over neighbours."""
    a, f = table.action.numpy(), table.observed.numpy()
    g = np.einsum("c,ncjk->njk", w, table.expected.numpy())
    return ((np.diff(g - f, axis=1) ** 2) / np.diff(a, axis=1)).sum()


@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("seed", range(4))
def test_slope_weights_are_those_of_slsqp_and_of_no_worse_grid_point(seed, d):
    table = random_table(seed, d=d, K=3)
    w = SlopeWeights().weights([table]).numpy()
    assert w.sum() == pytest.approx(1)
    assert w.min() >= -1e-9
    scale = slopes_loss(table, np.full(3, 1 / 3))
    peer = minimize(
        lambda v: slopes_loss(table, v) / scale,
        np.full(3, 1 / 3),
        method="SLSQP",
        bounds=[(0, 1)] * 3,
        constraints={"type": "eq", "fun": lambda v: v.sum() - 1},
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert slopes_loss(table, w) / scale <= peer.fun + 1e-7
    assert w == pytest.approx(peer.x, abs=1e-3)
    assert all(slopes_loss(table, w) <= slopes_loss(table, v.numpy()) + 1e-9 * scale
               for v in simplex_grid(3))  # fmt: skip


def test_slope_weights_of_folds_are_those_of_all_rows():
    whole = random_table(0, n=40)
    parts = [
        HeldOut(whole.action[i], whole.expected[i], whole.observed[i])
        for i in (slice(0, 25), slice(25, 40))
    ]
    together, apart = SlopeWeights().weights([whole]), SlopeWeights().weights(parts)
    assert torch.allclose(together, apart, atol=1e-9)


def test_where_costs_are_no_sum_slope_weights_compare_residuals_from_their_mean():
    rng = np.random.default_rng(0)
    a, f = rng.random((30, 8, 2)), rng.random((30, 8, 1))
    g = rng.random((30, 3, 8, 1)) + f[:, None] + 5 * rng.random((30, 3, 1, 1))  # any constants
    table = HeldOut(*(torch.tensor(part) for part in (a, g, f)))
    w = SlopeWeights().weights([table]).numpy()

    def loss(v):
        r = np.einsum("c,ncjk->njk", v, g) - f
        return ((r - r.mean(1, keepdims=True)) ** 2).sum()

    peer = minimize(loss, np.full(3, 1 / 3), method="SLSQP", bounds=[(0, 1)] * 3,
                    constraints={"type": "eq", "fun": lambda v: v.sum() - 1},
                    options={"ftol": 1e-14})  # fmt: skip
    assert w == pytest.approx(peer.x, abs=1e-3)


@given(st.integers(0, 10_000), st.integers(2, 6), st.integers(1, 8))
@settings(max_examples=12, deadline=None)
def test_on_the_simplex_the_conditions_of_the_optimum_hold(seed, K, rank):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(rank, K)) * 10 ** rng.uniform(-2, 2)
    target = rng.normal(size=rank)
    A, b = torch.tensor(root.T @ root), torch.tensor(root.T @ target)
    w = on_simplex(A, b, 2000)
    assert float(w.sum()) == pytest.approx(1, abs=1e-9)
    assert float(w.min()) >= -1e-12
    # Frank and Wolfe's gap bounds how far the value is from the least one
    slope = 2 * (A @ w - b)
    gap = float(slope @ w - slope.min())
    size = float((A.diagonal() - 2 * b).max() - (A.diagonal() - 2 * b).min()) + 1e-12
    assert gap <= 1e-4 * size


def test_on_the_simplex_the_answer_is_that_of_cvxpy():
    import cvxpy as cp

    rng = np.random.default_rng(1)
    root, target = rng.normal(size=(7, 5)), rng.normal(size=7)
    v = cp.Variable(5)
    cp.Problem(cp.Minimize(cp.sum_squares(root @ v - target)), [v >= 0, cp.sum(v) == 1]).solve()
    w = on_simplex(torch.tensor(root.T @ root), torch.tensor(root.T @ target), 2000)
    assert w.numpy() == pytest.approx(v.value, abs=1e-4)


def test_on_the_simplex_equal_candidates_share():
    A = torch.ones(3, 3, dtype=torch.float64)
    w = on_simplex(A, torch.ones(3, dtype=torch.float64), 100)
    assert w.tolist() == pytest.approx([1 / 3] * 3)


# ---- tables of fitted models


class Guess(torch.nn.Module):
    """Scenarios around the first numbers of x."""

    def __init__(self, shift, spread, d, S=9):
        super().__init__()
        self.v = shift + spread * torch.linspace(-1, 1, S)[:, None].expand(S, d)
        self.d = d

    def forward(self, x):
        values = x[:, None, : self.d] + self.v
        weights = torch.full((len(x), len(self.v)), 1 / len(self.v))
        return Scenarios(weights, values, own=True)


def pairs(d, n=60, seed=0):
    rng = torch.Generator().manual_seed(seed)
    x = torch.rand(n, d, generator=rng)
    return Dataset(x, x + 0.3 * torch.rand(n, d, generator=rng))


def newsvendor_terms(y, a):
    """With squares, so that the best action is the only one."""
    return 3 * (y - a).clamp(min=0) + (a - y).clamp(min=0) + (y - a).square()


def joint(y, a):
    return (y - a).square().sum(-1) + 0.5 * (a.sum(-1) - 1).square()


SUMS = {"box": Box(0.0, 1.5, dim=2), "budget": Budget(total=1.5, dim=2)}
SOLVERS = {"sum on box": Separable(), "other on finite": Auto()}
OTHERS = {
    "finite": Finite(torch.rand(12, 2, generator=torch.Generator().manual_seed(3))),
    "simplex": Simplex(dim=2),
    "box": Box(0.0, 1.5, dim=2),
}


@pytest.mark.parametrize("name", [f"sum on {k}" for k in SUMS] + [f"other on {k}" for k in OTHERS])
def test_decisions_in_the_table_cost_what_those_of_the_solver_cost(name):
    kind, where = name.split(" on ")
    if kind == "sum":
        task = SeparableTask(newsvendor_terms, SUMS[where], convex=True)
    else:
        task = Task(joint, OTHERS[where])
    data = pairs(2)
    models = [Guess(0.15, 0.1, 2), Guess(-0.2, 0.3, 2), Guess(0.4, 0.05, 2)]
    solver = SOLVERS.get(name, ProjectedAdam(steps=200))
    table = held_out(task, models, data, solver, seed=0)
    for c, model in enumerate(models):
        g = ExpectedCost(task, model(data.x))
        if where == "finite":
            a = task.feasible.actions[g(task.feasible.actions[None]).argmin(1)]
        else:
            a = solver.minimise(g, task.feasible, len(data)).action
        own = task.cost(data.y, a)
        found = table.costs(torch.eye(3)[c])
        # the table's actions lie on a grid between the candidates' decisions
        assert float((found.mean() - own.mean()).abs()) < 0.02 * float(own.mean())
    # what is expected and observed at the table's actions is g and f
    i, j = 7, 3
    a = table.action[i : i + 1, j : j + 1]
    assert task.feasible.contains(table.action.flatten(0, 1)).all()
    assert float(table.observed[i, j].sum()) == pytest.approx(
        float(task.cost(data.y[i : i + 1, None], a)), rel=1e-5
    )
    for c, model in enumerate(models):
        g = ExpectedCost(task, model(data.x[i : i + 1]))
        assert float(table.expected[i, c, j].sum()) == pytest.approx(float(g(a)), rel=1e-4)


def test_a_sum_on_a_box_is_decided_coordinate_by_coordinate():
    task = SeparableTask(newsvendor_terms, SUMS["box"], convex=True)
    table = held_out(task, [Guess(0.1, 0.1, 2), Guess(0.2, 0.1, 2)], pairs(2), Auto(), seed=0)
    assert table.observed.shape[-1] == table.expected.shape[-1] == 2
    assert (table.action.diff(dim=1) >= 0).all()
    other = held_out(Task(joint, SUMS["box"]), [Guess(0.1, 0.1, 2)] * 2, pairs(2),
                     ProjectedAdam(steps=5), seed=0)  # fmt: skip
    assert other.observed.shape[-1] == 1


def test_actions_of_a_box_reach_both_bounds_and_every_decision_between():
    task = SeparableTask(newsvendor_terms, SUMS["box"])
    decided = torch.rand(5, 3, 2, generator=torch.Generator().manual_seed(0))
    a = actions_between(task, decided, 0)
    assert torch.equal(a.amin(1), torch.zeros(5, 2))
    assert torch.equal(a.amax(1), torch.full((5, 2), 1.5))
    for least_or_most in (decided.amin(1), decided.amax(1)):
        off = (a - least_or_most[:, None]).abs().amin(1)
        assert float(off.max()) < 1e-6
    apart = decided.amax(1) - decided.amin(1)
    off = (a[:, None] - decided[:, :, None]).abs().amin(2)
    assert (off <= apart[:, None] / 48 + 1e-6).all()  # half of one of 24 cells


def test_actions_of_another_set_are_the_decisions_and_mixes_of_them():
    task = Task(joint, Simplex(dim=3))
    decided = task.feasible.sample(10, torch.Generator().manual_seed(0)).unflatten(0, (5, 2))
    a = actions_between(task, decided, 0)
    assert torch.equal(a[:, :2], decided)
    assert task.feasible.contains(a.flatten(0, 1)).all()
    start, end = decided[:, :1], decided[:, 1:]
    whole = (end - start).norm(dim=-1)
    assert torch.allclose((a - start).norm(dim=-1) + (end - a).norm(dim=-1), whole.expand(5, -1),
                          atol=1e-5)  # fmt: skip
    assert torch.equal(a, actions_between(task, decided, 0))


@pytest.mark.parametrize("n", [3, ROWS, ROWS + 1, 5 * ROWS])
def test_held_out_rows_are_some_evenly_spread_ones(n):
    data = pairs(2, n)
    exact = SeparableTask(newsvendor_terms, SUMS["box"], convex=True)
    few = some_rows(exact, data, Auto())
    assert torch.equal(few.x, data.x[:: -(-n // ROWS)])
    assert min(n, ROWS // 2) <= len(few) <= ROWS
    assert len(some_rows(Task(joint, SUMS["box"]), data, ProjectedAdam())) <= COSTLY_ROWS


# ---- candidates that are clearly behind


def test_a_candidate_clearly_behind_is_named_and_ties_are_not():
    rng = torch.Generator().manual_seed(0)
    base = torch.rand(200, generator=rng)
    noise = 0.1 * torch.randn(200, 2, generator=rng)
    costs = torch.stack([base, base + noise[:, 0], base + 1 + noise[:, 1], base])
    assert clearly_behind(costs, 3.0) == [2]


def test_behind_is_counted_in_block_standard_errors():
    noise = torch.randn(100, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    noise = noise - noise.mean()
    error = standard_error(noise.numpy(), block_length(100))
    zero = torch.zeros_like(noise)
    assert clearly_behind(torch.stack([zero, noise + 2.99 * error]), 3.0) == []
    assert clearly_behind(torch.stack([zero, noise + 3.01 * error]), 3.0) == [1]


def test_rows_that_repeat_count_as_fewer():
    # of independent rows a difference of 5 standard errors; in runs of ten equal rows less
    noise = torch.randn(20, generator=torch.Generator().manual_seed(0)).repeat_interleave(10)
    noise = (noise - noise.mean()) / noise.std()
    worse = noise + 5 / 200**0.5
    zero = torch.zeros(200)
    assert clearly_behind(torch.stack([zero, worse]), 3.0) == []
    mixed = worse[torch.randperm(200, generator=torch.Generator().manual_seed(1))]
    assert clearly_behind(torch.stack([zero, mixed]), 3.0) == [1]


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_rows_do_not_break(n):
    assert set(clearly_behind(torch.rand(3, n), 3.0)) <= {0, 1, 2}
    assert clearly_behind(torch.zeros(3, n), 3.0) == []
