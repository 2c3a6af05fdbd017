"""The gradient of the decisions, against closed forms and optima solved again."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from costscape import (
    Box,
    Budget,
    Convex,
    ExpectedCost,
    Finite,
    Polytope,
    ProjectedAdam,
    Scenarios,
    Separable,
    SeparableTask,
    Simplex,
    Task,
)
from costscape.problems import inventory, synthetic_convex, synthetic_nonconvex, wind_bidding
from costscape.solvers.implicit import Implicit

D = 4
EYE = np.eye(D)
SETS = {
    "box": Box(-0.2, 0.5, dim=D),
    "simplex": Simplex(total=2.0, dim=D),
    "budget": Budget(total=2.0, dim=D),
    "budget with caps": Budget(total=2.0, dim=D, upper=0.8),
    "budget to spare": Budget(total=9.0, dim=D, upper=0.8),
    "polytope": Polytope(
        A=[[1, 1, 1, 1]], b=[2.0], G=np.vstack([-EYE, [[1, 2, 1, 0]]]), h=[0.0] * D + [1.5]
    ),
}
BENT = 2 * np.diag(np.arange(1.0, D + 1)) + np.ones((D, D))  # the Hessian of bowl


def bowl(y, a):
    price = torch.arange(1, D + 1).to(a)
    return (price * (y - a) ** 2).sum(-1) + 0.5 * (y - a).sum(-1) ** 2


def bowl_cvxpy(y, a):
    import cvxpy as cp

    r = y - a
    return cp.square(r) @ np.arange(1, D + 1) + 0.5 * cp.square(cp.sum(r, axis=1))


def newsvendor(y, a):
    return 20 * (y - a).relu() + 5 * (a - y).relu()


def two_sided(y, a):
    """Smooth: its second derivative jumps, its first does not."""
    return 4 * (y - a).relu() ** 2 + (a - y).relu() ** 2


def scenarios(batch, draws, dim, seed=0, mean=0.0, spread=0.5, dtype=torch.float64, equal=True):
    rng = torch.Generator().manual_seed(seed)
    y = mean + spread * torch.randn(batch, draws, dim, generator=rng, dtype=torch.float64)
    w = torch.randn(batch, draws, generator=rng, dtype=torch.float64).softmax(-1)
    w = torch.full_like(w, 1 / draws) if equal else w
    return w.to(dtype).requires_grad_(), y.to(dtype).requires_grad_()


def gradients(layer, task, w, y, v=None):
    a = layer(ExpectedCost(task, Scenarios(w, y)))
    v = torch.ones_like(a) if v is None else v
    return (a.detach(), *torch.autograd.grad((v * a).sum(), (w, y)))


def optimum(task, w, y):
    """Coordinate by coordinate, by bisection on the slope of a convex cost: to the last bit."""
    lower, upper = task.feasible.bounds
    low, high = (b.repeat(len(w), 1) for b in (lower, upper))
    for _ in range(60):
        a = ((low + high) / 2).requires_grad_()
        cost = (w[..., None] * task.terms(y, a[:, None])).sum()
        (slope,) = torch.autograd.grad(cost, a)
        low, high = torch.where(slope > 0, low, a), torch.where(slope > 0, a, high)
        low, high = low.detach(), high.detach()
    return (low + high) / 2


def differences(task, w, y, v, uw, uy, step):
    """d (v . a) / d step along (uw, uy) of each row, from optima solved again."""
    ends = (
        [(w + s * uw).detach() for s in (-step, step)],
        [(y + s * uy).detach() for s in (-step, step)],
    )
    less, more = (optimum(task, *end) for end in zip(*ends, strict=True))
    return (v * (more - less)).sum(-1) / (2 * step)


def along(w, y, seed=5):
    """A direction in which to move both, and weights of the decisions."""
    rng = torch.Generator().manual_seed(seed)
    v, uw, uy = (
        torch.randn(t, generator=rng, dtype=w.dtype) for t in (y[:, 0].shape, w.shape, y.shape)
    )
    return v, 0.01 * w.detach() * uw, uy


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**31 - 1), draws=st.integers(1, 40), mean=st.floats(-0.5, 0.5))
def test_a_smooth_separable_cost_agrees_with_optima_solved_again(seed, draws, mean):
    task = SeparableTask(two_sided, Box(-3.0, 3.0, dim=2), convex=True).double()
    w, y = scenarios(3, draws, 2, seed, mean, equal=False)
    v, uw, uy = along(w, y)
    a, gw, gy = gradients(Implicit(), task, w, y, v)
    assert torch.allclose(a, optimum(task, w, y), atol=1e-5)
    found = (gw * uw).sum(1) + (gy * uy).sum((1, 2))
    # a kink of the slope between the two ends, or in the window, bends either by its share
    expected = differences(task, w, y, v, uw, uy, 1e-7)
    close = torch.isclose(found, expected, rtol=1e-4, atol=1e-4)
    near = (y - a[:, None]).abs().amin((1, 2)) < 1e-4
    assert (close | near).all()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["double", "single"])
def test_the_optimum_of_a_newsvendor_moves_with_its_order_statistic_alone(dtype):
    task = SeparableTask(newsvendor, Box(-3.0, 3.0, dim=2), convex=True).to(dtype)
    w, y = scenarios(50, 21, 2, dtype=dtype)
    a, gw, gy = gradients(Implicit(), task, w, y)
    k = 16  # the least k with k / 21 >= 20 / 25, counted from 0
    value, at = y.detach().sort(1)
    assert torch.allclose(a, value[:, k], atol=1e-5)
    expected = torch.zeros_like(gy).scatter(1, at[:, k : k + 1], 1.0)
    gap = torch.minimum(value[:, k + 1] - value[:, k], value[:, k] - value[:, k - 1])
    alone = (gap > 2e-3)[:, None].expand_as(gy)
    assert alone.float().mean() > 0.8
    assert (gy - expected)[alone].abs().max() < 1e-4
    # two draws in one window share the optimum, and nothing is lost
    assert torch.allclose(gy.sum(1), torch.ones_like(a), atol=1e-3)
    assert gw.abs().max() < (2e-3 if dtype == torch.float64 else 5e-2)


@pytest.mark.parametrize("make", [synthetic_convex, lambda: inventory(days=2)], ids=["s", "i"])
@pytest.mark.parametrize("draws", [1, 20, 100])
def test_kinks_and_curvature_together_agree_with_optima_solved_again(make, draws):
    task = make().double()
    w, y = scenarios(100, draws, 2, mean=0.5 * float(sum(task.feasible.bounds)[0]))
    v, uw, uy = along(w, y)
    a, gw, gy = gradients(Implicit(), task, w, y, v)
    assert torch.allclose(a, optimum(task, w, y), atol=1e-5)
    # moving the outcomes alone; then the weights alone, with which an optimum at a kink stays
    for g, u, other in ((gy, (0 * uw, uy), 2e-3), (gw, (uw, 0 * uy), 2e-3)):
        found = (g * u[0 if g is gw else 1]).flatten(1).sum(1)
        expected = differences(task, w, y, v, *u, 1e-8)
        wrong = (found - expected).abs() > other * (1 + expected.abs())
        assert wrong.double().mean() <= 0.03  # those with a second kink in the window


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**31 - 1), draws=st.integers(1, 30))
def test_moving_all_outcomes_of_a_convex_cost_moves_the_optimum_along(seed, draws):
    # f depends on a - y alone, so whatever the kinks the derivatives add up to 1
    task = synthetic_convex().double()
    w, y = scenarios(4, draws, 2, seed, spread=0.3, equal=False)
    a, _, gy = gradients(Implicit(), task, w, y)
    inside = a.abs() < 0.99
    assert torch.allclose(gy.sum(1)[inside], torch.ones_like(a[inside]), atol=1e-6)
    assert (gy >= -1e-9).all()


def test_valleys_of_a_cost_that_is_not_convex_move_as_newton_follows_them():
    task = synthetic_nonconvex().double()
    w, y = scenarios(40, 30, 2, mean=0.5, equal=False)
    v, uw, uy = along(w, y)
    a, gw, gy = gradients(Implicit(), task, w, y, v)

    def valley(w, y, a):
        for _ in range(30):
            a = a.detach().requires_grad_()
            cost = (w[..., None] * task.terms(y, a[:, None])).sum()
            (slope,) = torch.autograd.grad(cost, a, create_graph=True)
            (bend,) = torch.autograd.grad(slope.sum(), a)
            a = a - slope / bend
        return a.detach()

    inside = (a.abs() < 1.99).all(1)
    assert inside.double().mean() > 0.5
    near = (y - a[:, None]).abs().amin((1, 2)) < 1e-4  # the second derivative jumps there
    ends = [valley((w + s * uw).detach(), (y + s * uy).detach(), a) for s in (-1e-6, 1e-6)]
    assert torch.allclose(ends[0][inside], a[inside], atol=1e-4)  # the same valley
    expected = (v * (ends[1] - ends[0])).sum(1) / 2e-6
    found = (gw * uw).sum(1) + (gy * uy).sum((1, 2))
    assert torch.allclose(found[inside & ~near], expected[inside & ~near], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("side", [-1.0, 1.0])
@pytest.mark.parametrize("make", [synthetic_convex, synthetic_nonconvex], ids=["c", "n"])
def test_an_optimum_held_by_a_bound_does_not_move(side, make):
    task = make().double()
    w, y = scenarios(10, 20, 2, mean=30 * side, spread=0.1)
    a, gw, gy = gradients(Implicit(), task, w, y)
    assert torch.equal(a, side * float(task.feasible.bounds[1][0]) * torch.ones_like(a))
    assert not gw.any()
    assert not gy.any()


def test_an_optimum_within_a_window_of_a_bound_is_free_where_nothing_pushes_it():
    task = SeparableTask(lambda y, a: (a - y) ** 2, Box(0.0, 1.0, dim=3), convex=True).double()
    y = torch.tensor([[[1e-6, 1 - 1e-6, -1e-6]]], dtype=torch.float64).requires_grad_()
    w = torch.ones(1, 1, dtype=torch.float64)
    a = Implicit(window=1e-4)(ExpectedCost(task, Scenarios(w, y)))
    (gy,) = torch.autograd.grad(a.sum(), y)
    assert torch.allclose(gy[0, 0], torch.tensor([1.0, 1.0, 0.0], dtype=torch.float64))


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("solver", [Convex(), ProjectedAdam()], ids=["convex", "adam"])
def test_on_every_set_it_is_the_derivative_of_the_optimality_conditions(name, solver):
    C = SETS[name].double()
    task = Task(bowl, C, convex=True, cvxpy=bowl_cvxpy)
    w, y = scenarios(12, 5, D, seed=2, mean=0.4, spread=0.8, equal=False)
    v = along(w, y)[0]
    _, gw, gy = gradients(Implicit(solver), task, w, y, v)
    K = torch.from_numpy(BENT)
    # [K N'; N 0] (da; dl) = -(d grad g / dtheta; 0), N the rows that hold a
    rows = C.rows()
    exact = Convex().minimise(ExpectedCost(task, Scenarios(w, y)), C, len(w)).action
    faces = set()
    for b in range(len(w)):
        held = rows.h - rows.G @ exact[b] < 1e-6
        N = torch.cat([rows.A, rows.G[held]])
        faces.add(len(N))
        kkt = torch.zeros(D + len(N), D + len(N), dtype=K.dtype)
        kkt[:D, :D], kkt[:D, D:], kkt[D:, :D] = K, N.T, N
        da = -torch.linalg.inv(kkt)[:D, :D]
        slope = (exact[b] - y[b].detach()) @ K  # of each draw
        assert torch.allclose(gw[b], slope @ da @ v[b], atol=1e-3)
        assert torch.allclose(gy[b], -w[b].detach()[:, None] * (K @ da @ v[b]), atol=1e-6)
    assert len(faces) > 1  # faces of several dimensions were met


@pytest.mark.parametrize("name", SETS)
def test_on_every_set_it_agrees_with_optima_solved_again(name):
    C = SETS[name].double()
    task = Task(bowl, C, convex=True, cvxpy=bowl_cvxpy)
    w, y = scenarios(5, 5, D, seed=3, mean=0.4, spread=0.8, equal=False)
    v, uw, uy = along(w, y)
    _, gw, gy = gradients(Implicit(), task, w, y, v)

    def solved(s):
        moved = Scenarios((w + s * uw).detach(), (y + s * uy).detach())
        return Convex().minimise(ExpectedCost(task, moved), C, len(w)).action

    expected = (v * (solved(1e-3) - solved(-1e-3))).sum(1) / 2e-3
    found = (gw * uw).sum(1) + (gy * uy).sum((1, 2))
    assert torch.allclose(found, expected, rtol=5e-3, atol=5e-3)


def test_a_separable_task_has_the_same_gradient_when_not_known_to_be_one():
    known = synthetic_convex().double()
    w, y = scenarios(30, 15, 2, equal=False)
    plain = Task(known.cost, known.feasible, convex=True, cvxpy=known.cvxpy)
    a, gw, gy = gradients(Implicit(), known, w, y)
    b, hw, hy = gradients(Implicit(Convex()), plain, w, y)
    assert torch.allclose(a, b, atol=1e-5)
    assert torch.allclose(gw, hw, atol=1e-3)
    assert torch.allclose(gy, hy, atol=1e-3)


def test_kinks_across_several_coordinates_move_the_optimum_with_their_draws():
    import cvxpy as cp

    # with few curved parts the optimum lies where two kinks meet: M a = (y_s, y_t)
    M = np.array([[1.0, 2.0], [2.0, -2.0]])

    def cost(y, a):
        return (a @ torch.from_numpy(M.T) - y).abs().sum(-1) + 1e-3 * (a**2).sum(-1)

    def written(y, a):
        return cp.sum(cp.abs(a @ M.T - y), axis=1) + 1e-3 * cp.sum(cp.square(a))

    task = Task(cost, Box(-4.0, 4.0, dim=2).double(), convex=True, cvxpy=written)
    w, y = scenarios(8, 5, 2, seed=1)
    v = torch.tensor([1.0, 0.3], dtype=torch.float64).expand(8, 2)
    a, _, gy = gradients(Implicit(), task, w, y, v)
    median = y.detach().median(1)
    assert torch.allclose(a @ torch.from_numpy(M.T), median.values, atol=1e-6)
    share = v @ torch.linalg.inv(torch.from_numpy(M))
    expected = torch.zeros_like(gy).scatter(1, median.indices[:, None], share[:, None])
    assert torch.allclose(gy, expected, atol=1e-3)


def test_on_a_ridge_across_the_coordinates_the_optimum_moves_with_the_ridge_and_along_it():
    import cvxpy as cp

    n = np.array([1.0, 3.0])

    def cost(y, a):
        ridge = (a @ torch.from_numpy(n) - y[..., 0]).abs()
        return 10 * ridge + ((a - y[..., 1:]) ** 2 * torch.tensor([1.0, 4.0])).sum(-1)

    def written(y, a):
        bowl = cp.square(a - y[:, 1:]) @ np.array([1.0, 4.0])
        return 10 * cp.abs(a @ n - y[:, 0]) + bowl

    task = Task(cost, Box(-4.0, 4.0, dim=2).double(), convex=True, cvxpy=written)
    w, y = scenarios(40, 1, 3)
    v = torch.tensor([1.0, 0.3], dtype=torch.float64).expand(40, 2)
    a, gw, gy = gradients(Implicit(), task, w, y, v)
    # the point of the ridge nearest to y_1:, in the metric of the bowl
    across, down = torch.from_numpy(n), torch.from_numpy(n / np.array([1.0, 4.0]))
    p = y[:, 0, 1:]
    nearest = p + down * ((y[:, 0, 0] - p @ across) / (across @ down))[:, None]
    (expected,) = torch.autograd.grad((v * nearest).sum(), y)
    assert torch.allclose(a, nearest, atol=1e-5)
    assert torch.allclose(gy, expected, atol=1e-3)
    assert gw.abs().max() < 1e-3


@pytest.mark.parametrize("name", ["simplex", "budget with caps", "polytope"])
def test_a_linear_cost_ends_in_a_corner_and_stays(name):
    task = Task(lambda y, a: (y * a).sum(-1), SETS[name].double())
    w, y = scenarios(6, 3, D, mean=-1.0)
    _, gw, gy = gradients(Implicit(), task, w, y)
    assert gw.abs().max() < 1e-9
    assert gy.abs().max() < 1e-9


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["double", "single"])
def test_a_cost_with_jumps_has_finite_gradients(dtype):
    task = wind_bidding(hours=3).to(dtype)
    w, y = scenarios(20, 50, 3, mean=1.0, dtype=dtype)
    _, gw, gy = gradients(Implicit(), task, w, y)
    assert gw.isfinite().all()
    assert gy.abs().max() < 100


@pytest.mark.parametrize("separable", [True, False])
def test_a_flat_cost_has_finite_gradients(separable):
    # every order between the two draws costs the same
    terms = lambda y, a: (y - a).abs()  # noqa: E731
    C = Box(0.0, 1.0, dim=1).double()
    task = SeparableTask(terms, C) if separable else Task(lambda y, a: terms(y, a).sum(-1), C)
    y = torch.tensor([[[0.2], [0.8]]], dtype=torch.float64).requires_grad_()
    w = torch.full((1, 2), 0.5, dtype=torch.float64).requires_grad_()
    a, gw, gy = gradients(Implicit(), task, w, y)
    assert 0.2 < a < 0.8 or (y - a).abs().min() < 1e-3
    assert gw.abs().max() < 1e6
    assert gy.abs().max() <= 1.001


def test_an_inexact_solver_still_gives_bounded_gradients():
    task = synthetic_convex().double()
    w, y = scenarios(30, 20, 2, equal=False)
    for solver in (Separable().coarse(), ProjectedAdam(steps=20)):
        _, gw, gy = gradients(Implicit(solver), task, w, y)
        assert gw.abs().max() < 100
        assert gy.abs().max() < 10


@pytest.mark.parametrize("make", [synthetic_convex, synthetic_nonconvex], ids=["c", "n"])
def test_single_precision_gives_nearly_the_gradients_of_double(make):
    w, y = scenarios(60, 40, 2, mean=0.2, equal=False)
    a, _, gy = gradients(Implicit(), make().double(), w, y)
    w, y = (t.detach().float().requires_grad_() for t in (w, y))
    b, hw, hy = gradients(Implicit(), make(), w, y)
    assert b.dtype == hw.dtype == hy.dtype == torch.float32
    assert torch.allclose(a, b.double(), atol=2e-2)
    off = (gy - hy).abs().sum(1)  # where the derivatives add up to about 1
    assert off.median() < 2e-2
    assert (off > 0.1).double().mean() < 0.1
    assert torch.allclose(gy.sum(1), hy.double().sum(1), atol=0.1)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("name", ["box", "simplex"])
def test_batch_mates_do_not_change_a_gradient(name, shared):
    task = synthetic_convex(D) if name == "box" else Task(bowl, SETS[name])
    layer = Implicit() if name == "box" else Implicit(ProjectedAdam(steps=40))
    task.double()
    w, y = scenarios(5, 8, D, equal=False)
    y = y[:1].detach().requires_grad_() if shared else y
    v = torch.arange(1.0, 1.0 + D, dtype=torch.float64)
    a, gw, gy = gradients(layer, task, w, y, v.expand(5, D))
    apart = torch.zeros_like(gy)
    for b in range(5):
        rows = y if shared else y[b : b + 1]
        one, hw, hy = gradients(layer, task, w[b : b + 1], rows, v.expand(1, D))
        assert torch.allclose(one[0], a[b], atol=1e-9)
        assert torch.allclose(hw[0], gw[b], atol=1e-7)
        apart[slice(None) if shared else slice(b, b + 1)] += hy
    assert torch.allclose(apart, gy, atol=1e-7)


def test_the_same_call_gives_the_same_bits_and_the_solver_gives_the_decision():
    task = synthetic_convex()
    w, y = scenarios(5, 20, 2, dtype=torch.float32)
    first, second = (gradients(Implicit(), task, w, y) for _ in range(2))
    assert all(torch.equal(p, q) for p, q in zip(first, second, strict=True))
    g = ExpectedCost(task, Scenarios(w.detach(), y.detach()))
    assert torch.equal(first[0], Separable().minimise(g, task.feasible, 5).action)


def test_only_what_asks_for_a_gradient_gets_one_and_no_graph_needs_none():
    task = synthetic_convex()
    w, y = scenarios(3, 6, 2, dtype=torch.float32)
    a = Implicit()(ExpectedCost(task, Scenarios(w.detach(), y)))
    a.sum().backward()
    assert w.grad is None
    assert y.grad.abs().max() > 0.1
    with torch.no_grad():
        assert not Implicit()(ExpectedCost(task, Scenarios(w, y))).requires_grad


def test_memory_bounds_do_not_change_the_gradient():
    task = synthetic_convex().double()
    w, y = scenarios(6, 20, 2, equal=False)
    _, gw, gy = gradients(Implicit(), task, w, y)
    a = Implicit()(ExpectedCost(task, Scenarios(w, y), memory=20_000))
    hw, hy = torch.autograd.grad(a.sum(), (w, y))
    assert torch.allclose(gw, hw)
    assert torch.allclose(gy, hy)


def test_what_cannot_be_served_is_refused_with_a_sentence():
    listed = Task(bowl, Finite([[0.0] * D, [1.0] * D]))
    w, y = scenarios(2, 3, D, dtype=torch.float32)
    with pytest.raises(TypeError, match=r"flat faces to move on .* is a Finite"):
        Implicit()(ExpectedCost(listed, Scenarios(w, y)))
    assert "Finite" in Implicit().refuses(listed)
    assert Implicit().refuses(synthetic_convex()) is None
    assert "cannot use Separable, which needs" in Implicit(Separable()).refuses(
        Task(bowl, SETS["box"])
    )
    assert Implicit(Separable()).refuses(synthetic_convex()) is None
    for window in (0.0, -1.0, 0.5):
        with pytest.raises(ValueError, match=r"window to be a number above 0 and at most 0\.1"):
            Implicit(window=window)
