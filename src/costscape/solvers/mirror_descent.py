"""Multiplicative steps that never leave a simplex or a budget."""

from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor

from costscape.sets import Budget, ConstraintSet, Simplex
from costscape.solvers.solver import Objective, Solution, Solver, better
from costscape.training.settings import Count, Positive

AWAY = 0.1  # from a given start towards the centre: no product leaves a coordinate that is 0


@dataclass(frozen=True)
class MirrorDescent(Solver):
    """a <- total * a exp(-eta grad) / sum(a exp(-eta grad)) on a Simplex or a Budget.

    Args:
        lr: float, default 4. eta = lr / (sqrt(step) x the largest slope so far), without units.
        steps: int, default 500. Number of steps.
        constant_rate: bool, default False. True takes eta = lr, as the paper does (lr 0.01).

    On a Budget the part not spent is one more coordinate, of slope 0. Where the step exceeds a
    cap, the next point is the nearest in relative entropy: coordinates at their cap stay there,
    the others are scaled up. Returns the best point visited, ``start`` among them. Beck and
    Teboulle, 2003.

    >>> import costscape as cs
    >>> import torch
    >>> target = torch.tensor([0.5, 0.3, 0.2])
    >>> smooth = lambda a: ((a - target) ** 2).sum(-1)
    >>> cs.MirrorDescent(steps=200).minimise(smooth, cs.Simplex(dim=3), 1).action.round(decimals=2)
    tensor([[0.5000, 0.3000, 0.2000]])
    """

    lr: Positive = 4.0
    steps: Count = 500
    constant_rate: bool = False

    def refuses(self, objective: Objective, feasible: ConstraintSet) -> str | None:
        if not isinstance(feasible, Budget | Simplex):
            return (
                f"needs a Simplex or a Budget, and this feasible set is a "
                f"{type(feasible).__name__}"
            )
        return None

    def coarse(self) -> "MirrorDescent":
        return MirrorDescent(self.lr, max(1, self.steps // 5), self.constant_rate)

    def _minimise(
        self, objective: Objective, feasible: ConstraintSet, batch: int, start: Tensor | None
    ) -> Solution:
        total, cap = _shape(feasible)
        centre = _cap_entropy(total * torch.ones_like(cap).softmax(-1), cap, total)
        a = centre.expand(batch, 1, -1)
        best, cost, steepest = a, a.new_full((batch, 1), torch.inf), a.new_zeros(batch, 1, 1)
        if start is not None:
            given = _with_unspent(start[:, None], total, len(cap))
            with torch.no_grad():
                best, cost = given, objective(given[..., : feasible.dim])
            a = (1 - AWAY) * given + AWAY * centre
        for step in range(1, self.steps + 1):
            with torch.enable_grad():
                spent = a[..., : feasible.dim].detach().requires_grad_()
                now = objective(spent)
                (grad,) = torch.autograd.grad(now.sum(), spent)
            best, cost = better(a, now.detach(), best, cost)
            if len(cap) > feasible.dim:
                grad = torch.cat([grad, torch.zeros_like(grad[..., :1])], -1)
            steepest = steepest.maximum(grad.abs().amax(-1, keepdim=True))
            eta = self.lr if self.constant_rate else self.lr / (step**0.5 * (steepest + 1e-30))
            a = _cap_entropy(total * (a.log() - eta * grad).softmax(-1), cap, total)
        with torch.no_grad():
            best, cost = better(a, objective(a[..., : feasible.dim]), best, cost)
        return Solution(feasible.project(best[:, 0, : feasible.dim]), cost[:, 0])


def _shape(feasible: ConstraintSet) -> tuple[Tensor, Tensor]:
    """total and the caps of all coordinates, the unspent part of a Budget among them."""
    if isinstance(feasible, Simplex):
        return feasible.total, feasible.total.expand(feasible.dim)
    total = cast(Budget, feasible).total
    return total, torch.cat([feasible.bounds[1], total[None]])


def _with_unspent(a: Tensor, total: Tensor, coordinates: int) -> Tensor:
    if a.shape[-1] == coordinates:
        return a
    return torch.cat([a, (total - a.sum(-1, keepdim=True)).clamp(min=0)], -1)


def _cap_entropy(a: Tensor, cap: Tensor, total: Tensor) -> Tensor:
    """argmin_p KL(p | a) over sum(p) = total, p <= cap: p = min(cap, scale a), scale >= 1.

    Sorted by cap / a, the capped coordinates are a prefix; the right prefix is the first whose
    scale leaves the next coordinate under its cap. A share that has died out is kept at eps^2 of
    the total, or no factor would ever bring it back.
    """
    a = a.maximum(total * torch.finfo(a.dtype).eps ** 2)
    ratio, order = (cap / a).sort(-1)
    held = cap.expand_as(a).gather(-1, order).cumsum(-1)
    left = a.gather(-1, order).flip(-1).cumsum(-1).flip(-1)
    before = torch.cat([torch.zeros_like(held[..., :1]), held[..., :-1]], -1)
    scale = (total - before) / left
    first = (scale <= ratio).to(torch.int8).argmax(-1, keepdim=True)
    return torch.minimum(cap, scale.gather(-1, first) * a)
