"""Adam steps, each followed by a projection onto C."""

from dataclasses import dataclass
from warnings import warn

import torch
from torch import Tensor

from costscape.risk.surfaces import RiskCost
from costscape.scenarios import ExpectedCost
from costscape.sets import Box, ConstraintSet, Finite, Whole
from costscape.solvers.slope_bound import SlopeBound, has_bound
from costscape.solvers.solver import Objective, Solution, Solver, better
from costscape.task import Refusal
from costscape.training.settings import Count, Positive

NO_SLOPE = (
    "ProjectedAdam needs a cost with a slope in a, and this one has none: it is constant in "
    "pieces, or leaves torch by .detach(), .item() or numpy. Write it with torch, or list the "
    "actions in a Finite set."
)
BLOCK = 2**20  # numbers in one evaluation of f


@dataclass(frozen=True)
class ProjectedAdam(Solver):
    """Minimises any differentiable objective on a set that is no Finite list.

    Args:
        lr: float, default 0.05. Rate as a share of C's width; it falls to 1 % of itself along a
            cosine. On a Box each coordinate has its own step length; on other sets all share one.
        steps: int, default 200. Steps of each descent.
        starts: int, default 2. Descents from different points, against local minima.
        seed: int, default 0. Seed of the random points from which the starts are chosen.
        constant_rate: bool, default False. True keeps lr in the units of a and never lowers it,
            as the paper does (lr 0.01 or 0.1, 500 steps).

    Returns the best point visited and, for a convex cost, its ``gap``, a bound from the slopes
    met on the way: about 1e-5 of the cost where it is smooth, and up to 2 % at kinks.

    >>> import costscape as cs
    >>> import torch
    >>> target = torch.tensor([0.5, 0.3, 0.2])
    >>> smooth = lambda a: ((a - target) ** 2).sum(-1)
    >>> cs.ProjectedAdam(starts=1).minimise(smooth, cs.Simplex(dim=3), 1).action.round(decimals=2)
    tensor([[0.5000, 0.3000, 0.2000]])
    """

    lr: Positive = 0.05
    steps: Count = 200
    starts: Count = 2
    seed: int = 0
    constant_rate: bool = False

    def refuses(self, objective: Objective, feasible: ConstraintSet) -> str | None:
        if isinstance(feasible, Finite | Whole):
            return "needs a set one can move in, and this set is a Finite list or Whole"
        return None

    def coarse(self) -> "ProjectedAdam":
        return ProjectedAdam(self.lr, max(1, self.steps // 5), 1, self.seed, self.constant_rate)

    def _minimise(
        self, objective: Objective, feasible: ConstraintSet, batch: int, start: Tensor | None
    ) -> Solution:
        if not isinstance(objective, ExpectedCost | RiskCost):
            return self._descend(objective, feasible, batch, start)
        # blocks of rows whose costs fit the processor's cache take a third of the time
        values = objective.scenarios.values
        wide = values.shape[1] * max(values[0, 0].numel(), feasible.dim)
        rows = max(1, BLOCK // (self.starts * wide))
        parts = []
        for i in range(0, batch, rows):
            block = slice(i, min(i + rows, batch))
            given = None if start is None else start[block]
            parts.append(self._descend(objective.rows(block), feasible, block.stop - i, given))
        gaps = [part.gap for part in parts if part.gap is not None]
        return Solution(
            torch.cat([part.action for part in parts]),
            torch.cat([part.cost for part in parts]),
            torch.cat(gaps) if gaps else None,
        )

    def _descend(
        self, objective: Objective, feasible: ConstraintSet, batch: int, start: Tensor | None
    ) -> Solution:
        lower, upper = feasible.bounds
        # off a box the projection undoes steps of equal length in all coordinates
        is_box = isinstance(feasible, Box)
        width = upper - lower if is_box else (upper - lower).max()
        rate = torch.ones_like(width) if self.constant_rate else width
        a = self._starts(objective, feasible, batch, start)
        m, v = torch.zeros_like(a), torch.zeros_like(a)
        best, cost = a, torch.full_like(a[..., 0], torch.inf)
        convex = isinstance(objective, ExpectedCost | RiskCost) and objective.convex
        bound = SlopeBound(self.steps) if convex and has_bound(feasible) else None
        broken = torch.zeros((), dtype=torch.int64, device=a.device)
        for step in range(1, self.steps + 1):
            with torch.enable_grad():
                a.requires_grad_()
                now = objective(a)
                if not now.requires_grad:
                    raise Refusal(NO_SLOPE)
                (grad,) = torch.autograd.grad(now.sum(), a)
            with torch.no_grad():
                if bound is not None:
                    bound.add(a, now, grad, self._fall(step))
                # a step by NaN would end the search of its row
                broken += (~grad.isfinite()).any(-1).sum()
                grad = grad.nan_to_num(0.0, 0.0, 0.0)
                if step == 1:  # a power of 2, which rounds nothing: units of costs do not matter
                    size = grad.abs().amax(-1, keepdim=True)
                    unit = torch.where(size > 0, torch.exp2(-size.log2().round()), 1.0)
                grad = grad * unit
                best, cost = better(a.detach(), now.detach(), best, cost)
                m = 0.9 * m + 0.1 * grad
                v = 0.999 * v + 0.001 * (grad**2 if is_box else (grad**2).mean(-1, keepdim=True))
                move = (m / (1 - 0.9**step)) / ((v / (1 - 0.999**step)).sqrt() + 1e-12)
                a = feasible.project(a.detach() - self.lr * self._fall(step) * rate * move)
        with torch.no_grad():
            best, cost = better(a, objective(a), best, cost)
            least, start_index = cost.min(1)
        if broken:
            warn(
                f"The slope of the cost is NaN or infinite at {int(broken)} of "
                f"{self.steps * a[..., 0].numel()} points, such as that of a root at 0. The best "
                f"action may have been missed: add a small number under the root, or clamp.",
                stacklevel=2,
            )
        gap = None if bound is None else (least - bound.least(feasible)).clamp(min=0).to(least)
        return Solution(best[torch.arange(batch, device=best.device), start_index], least, gap)

    def _fall(self, step: int) -> float:
        if self.constant_rate:
            return 1.0
        turn = torch.tensor(torch.pi * (step - 1) / self.steps)
        return 0.01 + 0.99 * float(1 + turn.cos()) / 2

    def _starts(
        self, objective: Objective, feasible: ConstraintSet, batch: int, start: Tensor | None
    ) -> Tensor:
        """The best of 16 times as many random points, which are the same for every row."""
        device = feasible.bounds[0].device
        rng = torch.Generator(device).manual_seed(self.seed)
        tried = feasible.sample(16 * self.starts, rng)
        with torch.no_grad():
            cost = objective(tried[None]).expand(batch, -1)
        fresh = self.starts if start is None else self.starts - 1
        best = tried[cost.topk(fresh, largest=False).indices]
        return best if start is None else torch.cat([start[:, None], best], 1)
