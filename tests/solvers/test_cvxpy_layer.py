"""The cone program, against the fast layer and closed forms."""

import copy
import gc
import pickle

import numpy as np
import pytest
import torch
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from costscape import Box, Budget, ExpectedCost, Finite, Polytope, Scenarios, Simplex, Task
from costscape.problems import inventory, synthetic_convex, synthetic_nonconvex
from costscape.solvers.cvxpy_layer import SOLVE, CvxpyLayer
from costscape.solvers.implicit import Implicit

LAYER = CvxpyLayer()
EYE = np.eye(3)
SETS = {
    "box": Box(-0.2, 0.5, dim=3),
    "simplex": Simplex(total=1.0, dim=3),
    "budget": Budget(total=1.0, dim=3, upper=0.6),
    "polytope": Polytope(
        A=[[1, 1, 1]], b=[1.0], G=np.vstack([-EYE, [[1, 2, 0]]]), h=[0.0] * 3 + [0.9]
    ),
}


def bowl(y, a):
    return ((y - a) ** 2).sum(-1) + 0.5 * (y - a).sum(-1) ** 2


def bowl_cvxpy(y, a):
    import cvxpy as cp

    return cp.sum(cp.square(y - a), axis=1) + 0.5 * cp.square(cp.sum(y - a, axis=1))


TASKS = {name: Task(bowl, C.double(), convex=True, cvxpy=bowl_cvxpy) for name, C in SETS.items()}


def scenarios(batch, draws, dim, seed=0, mean=0.2, equal=False):
    rng = torch.Generator().manual_seed(seed)
    y = mean + 0.5 * torch.randn(batch, draws, dim, generator=rng, dtype=torch.float64)
    w = torch.randn(batch, draws, generator=rng, dtype=torch.float64).softmax(-1)
    w = torch.full_like(w, 1 / draws) if equal else w
    return w.requires_grad_(), y.requires_grad_()


def gradients(layer, task, w, y):
    a = layer(ExpectedCost(task, Scenarios(w, y)))
    v = torch.arange(1.0, 1 + a.shape[1], dtype=a.dtype, device=a.device)
    return (a.detach(), *torch.autograd.grad((v * a).sum(), (w, y)))


def agree(task, w, y, rtol=1e-2):
    for layer in (LAYER, Implicit()):
        assert layer.refuses(task) is None
    (a, gw, gy), (b, hw, hy) = (gradients(layer, task, w, y) for layer in (LAYER, Implicit()))
    assert task.feasible.contains(a).all()
    assert torch.allclose(a, b, atol=1e-4)
    assert torch.allclose(gw, hw, atol=rtol * max(1.0, float(hw.abs().max())))
    assert torch.allclose(gy, hy, atol=rtol * float(hy.abs().max()))


def steady(task, w, y):
    """Rows that the same constraints hold when outcomes move a little.

    Elsewhere a constraint holds without force, and the decision has a derivative to each side.
    """
    rows = task.feasible.rows()
    held = []
    with torch.no_grad():
        for move in (-0.02, 0.0, 0.02):
            push = move * torch.tensor([1.0, -0.7, 0.4], dtype=y.dtype)
            a = LAYER(ExpectedCost(task, Scenarios(w, y + push)))
            held.append(rows.h - a @ rows.G.T < 1e-4)
    return (held[0] == held[1]).all(1) & (held[2] == held[1]).all(1)


@pytest.mark.parametrize("name", TASKS)
@settings(max_examples=4, deadline=None)
@given(seed=st.integers(0, 10_000))
@example(seed=719)
def test_it_agrees_with_the_fast_layer_on_smooth_costs(name, seed):
    w, y = scenarios(4, 4, 3, seed)
    rows = steady(TASKS[name], w, y)
    assume(rows.any())
    w, y = (t.detach()[rows].requires_grad_() for t in (w, y))
    agree(TASKS[name], w, y, rtol=1e-3)


@pytest.mark.parametrize("make", [synthetic_convex, lambda: inventory(days=2)], ids=["s", "i"])
@pytest.mark.parametrize("equal", [True, False])
def test_it_agrees_with_the_fast_layer_at_kinks(make, equal):
    agree(make().double(), *scenarios(6, 11, 2, mean=0.4, equal=equal))


def test_it_agrees_with_the_fast_layer_where_bounds_hold():
    task = inventory(days=2).double()
    w, y = scenarios(4, 5, 2, mean=-3.0)
    a, gw, gy = gradients(LAYER, task, w, y)
    assert torch.allclose(a, torch.zeros_like(a), atol=1e-6)
    assert gw.abs().max() < 1e-4
    assert gy.abs().max() < 1e-4


def test_inside_a_box_the_optimum_of_a_bowl_is_the_mean():
    task = Task(bowl, Box(-9.0, 9.0, dim=3).double(), convex=True, cvxpy=bowl_cvxpy)
    w, y = scenarios(4, 5, 3)
    a, gw, gy = gradients(LAYER, task, w, y)
    v = torch.arange(1.0, 4.0, dtype=torch.float64)
    total = w.sum(1, keepdim=True)
    mean = (torch.einsum("bs,bsi->bi", w, y) / total).detach()
    assert torch.allclose(a, mean, atol=1e-6)
    assert torch.allclose(gw, (y - mean[:, None]) @ v, atol=1e-4)
    assert torch.allclose(gy, w[..., None] * v, atol=1e-4)


def test_gradients_are_as_exact_as_the_program():
    import cvxpy as cp

    price = np.arange(1.0, 5.0)

    def cost(y, a):
        return ((y - a) ** 2 @ torch.from_numpy(price)) + 0.5 * (y - a).sum(-1) ** 2

    def written(y, a):
        return cp.square(y - a) @ price + 0.5 * cp.square(cp.sum(y - a, axis=1))

    task = Task(cost, Box(-0.2, 0.5, dim=4).double(), convex=True, cvxpy=written)
    w, y = scenarios(12, 5, 4, seed=1)
    y = (2 * y.detach()).requires_grad_()  # most coordinates end at a bound
    agree(task, w, y, rtol=1e-4)


def test_outcomes_shared_by_all_rows_gather_the_gradients_of_all():
    task = TASKS["simplex"]
    w, y = scenarios(3, 4, 3)
    shared = y[:1].detach().requires_grad_()
    agree(task, w, shared, rtol=1e-3)
    apart = shared.detach().expand(3, -1, -1).clone().requires_grad_()
    _, gw, gy = gradients(LAYER, task, w, shared)
    _, hw, hy = gradients(LAYER, task, w, apart)
    assert torch.allclose(gw, hw, atol=1e-6)
    assert torch.allclose(gy[0], hy.sum(0), atol=1e-6)


def test_batch_mates_do_not_change_an_answer():
    task = TASKS["budget"]
    w, y = scenarios(4, 4, 3)
    a, gw, gy = gradients(LAYER, task, w, y)
    for b in range(4):
        one = gradients(LAYER, task, w[b : b + 1], y[b : b + 1])
        for alone, together in zip(one, (a, gw, gy), strict=True):
            assert torch.allclose(alone[0], together[b], atol=1e-7)


def test_single_precision_comes_back_as_such():
    task = Task(bowl, Simplex(total=1.0, dim=3), convex=True, cvxpy=bowl_cvxpy)
    w, y = scenarios(2, 4, 3)
    a, gw, gy = gradients(LAYER, TASKS["simplex"], w, y)
    w, y = (t.detach().float().requires_grad_() for t in (w, y))
    b, hw, hy = gradients(LAYER, task, w, y)
    assert b.dtype == hw.dtype == hy.dtype == torch.float32
    for double, single in ((a, b), (gw, hw), (gy, hy)):
        assert torch.allclose(double, single.double(), atol=1e-4)


def test_without_gradients_it_gives_the_same_decisions():
    task = TASKS["polytope"]
    w, y = scenarios(2, 4, 3)
    a = LAYER(ExpectedCost(task, Scenarios(w, y)))
    with torch.no_grad():
        b = LAYER(ExpectedCost(task, Scenarios(w, y)))
    assert a.requires_grad
    assert not b.requires_grad
    assert torch.allclose(a, b)


def test_a_program_is_compiled_once_and_goes_with_its_task(monkeypatch):
    import costscape.solvers.cvxpy_layer as module

    real, compiled = module._compile, []
    monkeypatch.setattr(module, "_compile", lambda *args: compiled.append(1) or real(*args))
    layer = CvxpyLayer()
    task = Task(bowl, Simplex(total=1.0, dim=3).double(), convex=True, cvxpy=bowl_cvxpy)
    for draws, times in ((4, 1), (4, 1), (2, 2), (4, 2)):
        w, y = scenarios(1, draws, 3)
        layer(ExpectedCost(task, Scenarios(w, y)))
        assert len(compiled) == times
    assert len(layer._programs) == 1
    del task
    gc.collect()
    assert len(layer._programs) == 0


def test_a_layer_that_has_compiled_can_be_copied_and_pickled():
    layer = CvxpyLayer()
    w, y = scenarios(1, 2, 3)
    layer(ExpectedCost(TASKS["box"], Scenarios(w, y)))
    for twin in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert twin == layer
        assert repr(twin) == "CvxpyLayer()"


def test_what_cannot_be_served_is_refused_with_a_sentence():
    w, y = scenarios(1, 2, 3)
    listed = Task(bowl, Finite([[0.0] * 3]), convex=True, cvxpy=bowl_cvxpy)
    box = SETS["box"]
    for task, reason in (
        (synthetic_nonconvex(dim=3), "needs a convex cost"),
        (listed, "is a Finite list"),
        (Task(bowl, box, convex=True), "made without cvxpy="),
    ):
        with pytest.raises(TypeError, match=f"CvxpyLayer .*{reason}"):
            LAYER(ExpectedCost(task, Scenarios(w, y)))


def test_a_cost_that_needs_y_as_numbers_is_refused_with_a_sentence():
    import cvxpy as cp

    def numbers(y, a):
        return cp.sum(cp.square(np.asarray(y, dtype=float) - a), axis=1)

    def products(y, a):
        return cp.sum(cp.square(cp.multiply(cp.square(y), a)), axis=1)

    w, y = scenarios(1, 2, 3)
    for written, reason in ((numbers, "as a cvxpy parameter"), (products, "disciplined")):
        task = Task(bowl, SETS["box"], convex=True, cvxpy=written)
        with pytest.raises(TypeError, match=reason):
            LAYER(ExpectedCost(task, Scenarios(w, y)))


def test_the_missing_package_is_named(monkeypatch):
    monkeypatch.setattr("costscape.solvers.cvxpy_layer.find_spec", lambda name: None)
    assert "pip install 'costscape[convex]'" in CvxpyLayer().refuses(TASKS["box"])


@pytest.mark.parametrize("bad", ["weights", "values"])
def test_scenarios_that_are_not_numbers_are_not_passed_over(bad):
    w, y = (t.detach().clone() for t in scenarios(2, 2, 3))
    {"weights": w, "values": y}[bad][1, 0] = torch.nan
    with pytest.raises(RuntimeError, match=r"row 1 .* the scenarios are finite"):
        LAYER(ExpectedCost(TASKS["box"], Scenarios(w, y)))


def test_a_cost_written_differently_for_cvxpy_is_noticed():
    task = Task(lambda y, a: 2 * bowl(y, a), SETS["box"].double(), convex=True, cvxpy=bowl_cvxpy)
    with pytest.raises(RuntimeError, match="equals cost"):
        LAYER(ExpectedCost(task, Scenarios(*scenarios(2, 2, 3))))


def test_the_backend_is_diffcp_with_clarabel_whatever_else_is_installed():
    layer, task = CvxpyLayer(), TASKS["box"]
    w, y = scenarios(1, 4, 3)
    layer(ExpectedCost(task, Scenarios(w, y)))
    (program,) = layer._programs[task].values()
    assert program.ctx.solver == "DIFFCP"
    assert SOLVE["solve_method"] == "Clarabel"
