"""The argmin by any solver, and its derivative by the optimality conditions.

Over a window of half-width delta around the optimum a, with theta the weights and values,

    D(v)        = v . (grad g(a + delta v) - grad g(a - delta v))    the change of slope along v
    N(v; theta) = g(a + delta v; theta) - g(a - delta v; theta)
    da / dtheta = -v (dN / dtheta) / D

for v each coordinate of a separable cost that no bound holds; otherwise the same with the matrix
of slope changes between the directions of the face of C that holds a. Where g is smooth this is
the implicit function theorem, D = 2 delta g''. At a kink the jump of slope exceeds both other
parts, and the optimum moves with the outcome that makes the kink: the optimum of a newsvendor is
an order statistic, and its derivative is 1 in that one. Where g is not convex it is the optimum
of the local quadratic model. Amos and Kolter, 2017 (OptNet); Donti, Amos and Kolter, 2017.
"""

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from costscape.scenarios import ExpectedCost, Scenarios
from costscape.sets import Box, ConstraintSet
from costscape.sets.constraint_set import Polyhedral
from costscape.solvers.auto import Auto, resolve
from costscape.solvers.box_search import Separable
from costscape.solvers.convex import Convex
from costscape.solvers.layer import Layer
from costscape.solvers.solver import Solver
from costscape.task import SeparableTask, Task
from costscape.training.settings import Range

FLAT = 1e-4  # curvature over that of g across C: below, the gradient is cut off
STEEP = 1e-2  # change of slope over the slope itself: below, a is no minimum


@dataclass(frozen=True)
class Implicit(Layer):
    """Solves with ``solver``, then differentiates on a window around the optimum.

    Args:
        solver: Solver, default Auto(). Finds the optimum.
        window: float between 0 and 0.1, or "auto", default "auto". Half-width as a share of C's
            width. The window must contain the solver's error and few kinks; the derivative at
            several kinks is their mean, weighted by their jumps. "auto" takes 3e-6 in double and
            1e-4 in single precision for exact solvers and 1e-3 for descents.

    A constraint is active where the local quadratic model has its optimum on or beyond it. The
    model's curvature is at least 1e-4 of g's across C, and such that its optimum lies within 200
    windows, so that an inexact or flat minimum gives a bounded gradient. Jumps in the value of f
    have no derivative. f must be finite within a window of C, inside C's bounds. Backward costs
    one evaluation of g at 3 points and its gradients for a SeparableTask on a Box; otherwise at
    4d + 1 points, and O(d^3) for each x.

    >>> import costscape as cs
    >>> import torch
    >>> task = cs.SeparableTask(lambda y, a: (y - a) ** 2, cs.Box(0.0, 1.0, dim=2), convex=True)
    >>> y = torch.tensor([[[0.25, 0.5]]], requires_grad=True)
    >>> a = cs.Implicit()(cs.ExpectedCost(task, cs.Scenarios(torch.ones(1, 1), y)))
    >>> a.sum().backward()
    >>> y.grad.round(decimals=2)
    tensor([[[1., 1.]]])
    """

    solver: Solver = field(default_factory=Auto)
    window: Annotated[float, Range(0.0, 0.1, "(]")] | Literal["auto"] = "auto"

    def refuses(self, task: Task) -> str | None:
        if not isinstance(task.feasible, Polyhedral):
            return (
                f"needs a set with flat faces to move on (Box, Simplex, Budget or Polytope), and "
                f"this feasible set is a {type(task.feasible).__name__}"
            )
        nothing = task.feasible.bounds[0].new_zeros(0, 1)
        reason = self.solver.refuses(
            ExpectedCost(task, Scenarios(nothing, nothing)), task.feasible
        )
        return reason and f"cannot use {type(self.solver).__name__}, which {reason}"

    def _argmin(self, g: ExpectedCost) -> Tensor:
        fixed = Scenarios(g.scenarios.weights.detach(), g.scenarios.values.detach())
        h = ExpectedCost(g.task, fixed, g.memory)
        solver = resolve(self.solver, h, g.task.feasible)
        best = solver.minimise(h, g.task.feasible, len(g)).action
        window = _window(solver, best) if self.window == "auto" else self.window
        a: Tensor = _Argmin.apply(  # type: ignore[no-untyped-call]
            g.scenarios.weights, g.scenarios.values, best, g, window
        )
        return a


class _Argmin(torch.autograd.Function):
    """``best``, with the derivative of the argmin."""

    @staticmethod
    def forward(
        ctx: Any, w: Tensor, y: Tensor, best: Tensor, g: ExpectedCost, window: float
    ) -> Tensor:
        ctx.save_for_backward(w, y, best)
        ctx.task, ctx.memory, ctx.window = g.task, g.memory, window
        return best.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        w, y, a = ctx.saved_tensors
        needed = ctx.needs_input_grad[:2]
        with torch.enable_grad():
            w, y = (t.detach().requires_grad_(n) for t, n in zip((w, y), needed, strict=True))
            g = ExpectedCost(ctx.task, Scenarios(w, y), ctx.memory)
            if isinstance(g.task, SeparableTask) and isinstance(g.task.feasible, Box):
                moved = _separable(g, g.task.feasible, a, grad, ctx.window)
            else:
                moved = _on_a_face(g, g.task.feasible, a, grad, ctx.window)
            wanted = [t for t, n in zip((w, y), needed, strict=True) if n]
            grads = iter(
                torch.autograd.grad(moved, wanted, allow_unused=True, materialize_grads=True)
            )
        return (*(next(grads) if n else None for n in needed), None, None, None)


def _window(solver: Solver, a: Tensor) -> float:
    exact = 3e-6 if a.element_size() == 8 else 1e-4
    if isinstance(solver, Separable):
        return max(exact, min(2.0 ** (2 - solver.halvings), 0.1))
    return exact if isinstance(solver, Convex) else 1e-3


def _separable(g: ExpectedCost, box: Box, a: Tensor, grad: Tensor, window: float) -> Tensor:
    """A number whose derivative in the scenarios is grad . da / dtheta."""
    lower, upper = box.lower, box.upper
    width = upper - lower
    delta = window * width
    a = a.clamp(lower + delta, upper - delta)
    far = torch.where(a - lower > upper - a, lower, upper)
    points = torch.stack([a - delta, a + delta, far], 1).requires_grad_()
    cost = g.terms(points)
    (slope,) = torch.autograd.grad(cost.sum(), points, retain_graph=True)
    left, right, there = slope.unbind(1)
    gap = (2 * delta).clamp(min=torch.finfo(a.dtype).tiny)
    middle = (left + right) / 2
    typical = (there - middle).abs() / (far - a).abs().clamp(min=gap)
    least = torch.maximum(FLAT * typical, STEEP * torch.maximum(left.abs(), right.abs()) / gap)
    curvature = torch.maximum((right - left) / gap, least)
    curvature = curvature.clamp(min=torch.finfo(a.dtype).tiny)
    optimum = a - middle / curvature
    free = (lower < optimum) & (optimum < upper)
    rate = torch.where(free, grad / curvature / gap, 0.0)
    moved: Tensor = -(rate * (cost[:, 1] - cost[:, 0])).sum()
    return moved


def _on_a_face(
    g: ExpectedCost, C: ConstraintSet, a: Tensor, grad: Tensor, window: float
) -> Tensor:
    """The same for any flat face: P the projector onto it, V its directions."""
    assert isinstance(C, Polyhedral)
    lower, upper = C.bounds
    width = (upper - lower).double()
    mean, change, typical = _first_look(g, C, a, window)

    # one projected step on the quadratic model lands on the face that holds its optimum
    size = width.norm()
    steepest = torch.linalg.matrix_norm(change, 2)
    rate = torch.maximum(steepest, torch.maximum(typical, mean.norm(dim=-1) / size))
    step = mean / rate.clamp(min=torch.finfo(mean.dtype).tiny)[:, None]
    P = C.tangent(C.project(a.double() - step))

    # along the directions in which slopes change most a kink is crossed by one pair alone
    change = change / steepest.clamp(min=torch.finfo(mean.dtype).tiny)[:, None, None]
    eye = torch.eye(C.dim, dtype=P.dtype, device=P.device)
    share, V = torch.linalg.eigh(P @ (change.mT @ change + eye) @ P)
    inside = share > 0.5  # 0 across the face, 1 and more along it
    V = V.mT * inside[..., None]  # (B, direction, d)
    delta = window * (V * width).norm(dim=-1)  # (B, direction)
    ways = delta[..., None] * V
    # a pair along a ridge stands beside it, so that what rounding tilts V does not cross it
    stiff = (share - 1).clamp(min=0).sqrt()
    beside = (stiff[:, None] > 10 * stiff[..., None]).double() @ ways / 2
    sides = [(beside + s * ways).to(a.dtype) for s in (-1, 1)]
    points = (a[:, None] + torch.cat(sides, 1)).clamp(lower, upper)
    points.requires_grad_()
    cost = g(points)
    (slope,) = torch.autograd.grad(cost.sum(), points, retain_graph=True)
    left, right = slope.double().chunk(2, 1)
    gap = torch.where(inside, 2 * delta, 1.0)
    H = (right - left) @ V.mT / gap[..., None]
    H = torch.where(inside[..., None] & inside[:, None], H, eye)
    push = ((left + right).mean(1) / 2)[:, None] @ V.mT
    H = H + _lack(H, push[:, 0], gap, typical)
    along = (V @ grad.double()[..., None])[..., 0]
    rates = torch.linalg.solve(H.mT, along) / gap
    less, more = cost.chunk(2, 1)
    moved: Tensor = -((rates * inside).to(cost.dtype) * (more - less)).sum()
    return moved


def _first_look(
    g: ExpectedCost, C: ConstraintSet, a: Tensor, window: float
) -> tuple[Tensor, Tensor, Tensor]:
    """The mean slope over the window, its change along each coordinate, and that across C."""
    lower, upper = C.bounds
    delta = window * (upper - lower)
    centre = a.clamp(lower + delta, upper - delta)
    corner = torch.where(a - lower > upper - a, lower, upper)
    far = C.project(corner)
    sides = [a[:, None] + torch.diag_embed(centre + s * delta - a) for s in (-1, 1)]
    points = torch.cat([*sides, far[:, None]], 1).clamp(lower, upper).requires_grad_()
    fixed = Scenarios(g.scenarios.weights.detach(), g.scenarios.values.detach())
    cost = ExpectedCost(g.task, fixed, g.memory)(points)
    (slope,) = torch.autograd.grad(cost.sum(), points)
    left, right, there = slope.double().split([C.dim, C.dim, 1], 1)
    mean = (left + right).mean(1) / 2
    tiny = torch.finfo(a.dtype).tiny
    change = (right - left) / (2 * delta).double().clamp(min=tiny)[:, None]
    near = window * (upper - lower).double().norm()
    away = (far - a).double().norm(dim=-1).clamp(min=near)
    return mean, change, (there[:, 0] - mean).norm(dim=-1) / away


def _lack(H: Tensor, push: Tensor, gap: Tensor, typical: Tensor) -> Tensor:
    """What must be added to H for its symmetric part to have the least curvature allowed."""
    size, W = torch.linalg.eigh((H + H.mT) / 2)
    slope = (push[:, None] @ W)[:, 0].abs()
    length = (gap[..., None] * W).norm(dim=-2)
    least = torch.maximum(FLAT * typical[:, None], STEEP * slope / length)
    least = least.clamp(min=torch.finfo(H.dtype).tiny)
    lack: Tensor = (W * (least - size).clamp(min=0)[:, None]) @ W.mT
    return lack
