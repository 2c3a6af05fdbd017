import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from costscape import Box, Budget, Simplex
from costscape.checks import check_solver
from costscape.scenarios import ExpectedCost, Scenarios
from costscape.sets import Finite
from costscape.solvers import Convex, MirrorDescent, ProjectedAdam
from costscape.solvers.frank_wolfe import FrankWolfe
from costscape.task import Task

D = torch.float64
SETS = {
    "box": lambda d: Box(-0.5, 1.0, dim=d),
    "simplex": lambda d: Simplex(total=2.0, dim=d),
    "budget": lambda d: Budget(total=2.0, dim=d),
    "capped": lambda d: Budget(total=2.0, dim=d, upper=0.6),
}


def quadratic(seed, batch, d):
    """g_b(a) = a' Q_b a / 2 + c_b' a, convex."""
    rng = torch.Generator().manual_seed(seed)
    L = torch.randn(batch, d, d, generator=rng, dtype=D) / d**0.5
    Q, c = L @ L.mT + 0.1 * torch.eye(d, dtype=D), torch.randn(batch, d, generator=rng, dtype=D)
    return lambda a: (
        torch.einsum("bji,bik,bjk->bj", a, Q, a) / 2 + torch.einsum("bji,bi->bj", a, c)
    )


def spread():
    """f(y, a) = sum (a - y)^2 + exp(a_0), written for cvxpy too."""

    def cvxpy(y, a):
        import cvxpy as cp

        return cp.sum(cp.square(a - y), axis=1) + cp.exp(a[0, 0])

    def f(y, a):
        return ((a - y) ** 2).sum(-1) + a[..., 0].exp()

    feasible = Budget(total=2.0, dim=5, upper=0.6).double()
    return Task(f, feasible, convex=True, cvxpy=cvxpy)


@pytest.mark.parametrize("name", SETS)
def test_a_linear_cost_takes_one_step_to_the_exact_vertex(name):
    c = torch.tensor([[-3.0, 1.0, -2.0, -0.5, -1.0], [2.0, 1.0, 3.0, 4.0, 5.0]], dtype=D)
    feasible = SETS[name](5).double()
    found = FrankWolfe(steps=1).minimise(lambda a: (a * c[:, None]).sum(-1), feasible, 2)
    want = {
        "box": [[1.0, -0.5, 1.0, 1.0, 1.0], [-0.5] * 5],
        "simplex": [[2.0, 0, 0, 0, 0], [0, 2.0, 0, 0, 0]],
        "budget": [[2.0, 0, 0, 0, 0], [0.0] * 5],
        "capped": [[0.6, 0, 0.6, 0.2, 0.6], [0.0] * 5],
    }
    assert torch.allclose(found.action, torch.tensor(want[name], dtype=D), rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", SETS)
def test_the_contract_of_a_solver_holds(name):
    y = torch.randn(4, 10, 5, generator=torch.Generator().manual_seed(0), dtype=D)
    task = Task(lambda y, a: ((a - y) ** 2).sum(-1), SETS[name](5).double(), convex=True)
    check_solver(FrankWolfe(), ExpectedCost(task, Scenarios(torch.full((4, 10), 0.1, dtype=D), y)))


@pytest.mark.parametrize("name", SETS)
def test_quadratics_are_solved_as_by_projected_adam(name):
    feasible = SETS[name](6).double()
    g = quadratic(0, 8, 6)
    found = FrankWolfe().minimise(g, feasible, 8)
    slow = ProjectedAdam(steps=800).minimise(g, feasible, 8)
    assert bool((found.cost <= slow.cost + 1e-5).all())
    assert torch.allclose(found.cost, slow.cost, atol=1e-3)


def test_a_capped_budget_is_solved_as_by_mirror_descent_and_by_cvxpy():
    pytest.importorskip("cvxpy")
    task = spread()
    rng = torch.Generator().manual_seed(0)
    y = torch.randn(4, 10, 5, generator=rng, dtype=D)
    g = ExpectedCost(task, Scenarios(torch.full((4, 10), 0.1, dtype=D), y))
    found = FrankWolfe(tol=1e-9).minimise(g, task.feasible, 4)
    exact = Convex().minimise(g, task.feasible, 4)
    near = MirrorDescent(steps=2000).minimise(g, task.feasible, 4)
    assert torch.allclose(found.cost, exact.cost, atol=1e-6)
    assert torch.allclose(found.action, exact.action, atol=1e-3)
    assert torch.allclose(found.cost, near.cost, atol=1e-3)
    assert bool((found.cost <= near.cost + 1e-8).all())


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), d=st.integers(1, 8), cap=st.sampled_from([0.4, 0.7, 9.0]))
def test_the_gap_bounds_the_true_error_at_any_point(seed, d, cap):
    feasible = Budget(total=2.0, dim=d, upper=cap).double()
    g = quadratic(seed, 3, d)
    found = FrankWolfe(tol=1e-9).minimise(g, feasible, 3)
    a = feasible.sample(3, torch.Generator().manual_seed(seed))
    error = g(a[:, None])[:, 0] - found.cost
    assert bool((error <= FrankWolfe.gap(g, feasible, a) + 1e-9).all())
    assert bool((error >= -1e-6).all())
    # and it closes at the answer
    assert bool((FrankWolfe.gap(g, feasible, found.action) < 1e-3).all())


def test_a_row_does_not_depend_on_its_batch_mates():
    feasible = SETS["capped"](6).double()
    c = torch.randn(5, 6, generator=torch.Generator().manual_seed(0), dtype=D)

    def g(c):
        return lambda a: ((a - c[:, None]) ** 2).sum(-1)

    together = FrankWolfe().minimise(g(c), feasible, 5)
    alone = [FrankWolfe().minimise(g(c[i : i + 1]), feasible, 1) for i in range(5)]
    assert torch.equal(together.action, torch.cat([s.action for s in alone]))


def test_a_start_at_the_optimum_is_kept():
    feasible = SETS["capped"](4).double()
    c = torch.tensor([[0.1, 0.2, 0.3, 0.4]], dtype=D)
    found = FrankWolfe().minimise(lambda a: ((a - c) ** 2).sum(-1), feasible, 1, start=c)
    assert torch.equal(found.action, c)


def test_single_precision_comes_near():
    feasible = SETS["capped"](6)
    c = torch.linspace(-0.5, 1.0, 6)
    found = FrankWolfe().minimise(lambda a: ((a - c) ** 2).sum(-1), feasible, 1)
    assert found.action.dtype == torch.float32
    assert torch.allclose(found.action[0], feasible.project(c), atol=1e-3)


def test_hindsight_is_the_best_action_for_each_outcome():
    task = spread()
    task.hindsight = FrankWolfe(tol=1e-9).hindsight(task)
    y = torch.randn(2, 3, 5, generator=torch.Generator().manual_seed(0), dtype=D)
    a = task.hindsight(y)
    assert a.shape == (2, 3, 5)
    tried = task.feasible.sample(500, torch.Generator().manual_seed(1))
    assert bool((task.cost(y, a) <= task.cost(y.unsqueeze(2), tried).amin(-1) + 1e-8).all())


def test_other_sets_are_refused_with_a_sentence():
    finite = Finite(torch.eye(3))
    with pytest.raises(TypeError, match=r"Box, a Simplex or a Budget.*is a Finite"):
        FrankWolfe().minimise(lambda a: a.sum(-1), finite, 1)
    with pytest.raises(TypeError, match="is a Finite"):
        FrankWolfe().hindsight(Task(lambda y, a: (a - y).sum(-1), finite))


@pytest.mark.parametrize("bad", [{"steps": 0}, {"tol": -1.0}, {"tol": float("nan")}], ids=str)
def test_senseless_settings_are_refused(bad):
    with pytest.raises(ValueError, match=r"FrankWolfe needs (steps|tol)"):
        FrankWolfe(**bad)


def test_the_coarse_solver_is_cheaper():
    assert FrankWolfe(steps=100, tol=0.5).coarse() == FrankWolfe(steps=20, tol=5.0)


def test_a_constant_in_the_cost_changes_no_answer():
    target = torch.tensor([0.7, 0.2, 0.1]).double()
    for constant in (0.0, 1e6, -1e6):
        found = FrankWolfe().minimise(
            lambda a, c=constant: ((a - target) ** 2).sum(-1) + c, Simplex(dim=3).double(), 1
        )
        assert torch.allclose(found.action[0], target, atol=1e-5)


def test_kinks_are_told_and_convex_costs_have_a_bound():
    rng = torch.Generator().manual_seed(0)
    y, w = 2 * torch.rand(1, 9, 4, generator=rng), torch.full((1, 9), 1 / 9)
    budget = Budget(total=1.0, dim=4)

    def kinked(y, a):
        return (y - a).abs().amax(-1) + 0.3 * (a.sum(-1) - y.sum(-1)).abs()

    g = ExpectedCost(Task(kinked, budget, convex=True), Scenarios(w, y))
    with pytest.warns(UserWarning, match="slopes still lead down"):
        found = FrankWolfe().minimise(g, budget, 1)
    best = g(budget.sample(200_000, rng)[None]).min()
    assert found.cost[0] - found.gap[0] <= best + 1e-5

    smooth = ExpectedCost(
        Task(lambda y, a: ((y - a) ** 2).sum(-1), budget, convex=True), Scenarios(w, y)
    )
    assert FrankWolfe().minimise(smooth, budget, 1).gap[0] <= 1e-5
