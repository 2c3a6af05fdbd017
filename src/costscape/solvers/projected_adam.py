"""Adam steps, each followed by a projection onto C."""

from dataclasses import dataclass

import torch
from torch import Tensor

from costscape.sets import ConstraintSet, Finite
from costscape.solvers.base import Objective, Solution, Solver, better


@dataclass(frozen=True)
class ProjectedAdam(Solver):
    """For any differentiable objective; several starts guard against local minima.

    ``lr`` is a share of C's width in each coordinate, and falls to 1 % of itself along a cosine;
    ``steps`` at a constant rate would end within lr of the optimum, and no nearer. The best point
    visited is returned. ``constant_rate`` keeps lr in the units of a and never lowers it, as the
    paper does (lr 0.01 or 0.1, 500 steps).
    """

    lr: float = 0.02
    steps: int = 500
    starts: int = 4
    seed: int = 0
    constant_rate: bool = False

    def refuses(self, objective: Objective, feasible: ConstraintSet) -> str | None:
        if isinstance(feasible, Finite):
            return "needs a set one can move in, and this feasible set is a Finite list"
        return None

    def coarse(self) -> "ProjectedAdam":
        return ProjectedAdam(self.lr, max(1, self.steps // 10), 1, self.seed, self.constant_rate)

    def _minimise(
        self, objective: Objective, feasible: ConstraintSet, batch: int, start: Tensor | None
    ) -> Solution:
        lower, upper = feasible.bounds
        rate = torch.ones_like(lower) if self.constant_rate else upper - lower
        a = self._starts(feasible, batch, start)
        m, v = torch.zeros_like(a), torch.zeros_like(a)
        best, cost = a, torch.full_like(a[..., 0], torch.inf)
        for step in range(1, self.steps + 1):
            with torch.enable_grad():
                a.requires_grad_()
                now = objective(a)
                (grad,) = torch.autograd.grad(now.sum(), a)
            with torch.no_grad():
                best, cost = better(a.detach(), now.detach(), best, cost)
                m = 0.9 * m + 0.1 * grad
                v = 0.999 * v + 0.001 * grad**2
                move = (m / (1 - 0.9**step)) / ((v / (1 - 0.999**step)).sqrt() + 1e-12)
                a = feasible.project(a.detach() - self.lr * self._fall(step) * rate * move)
        with torch.no_grad():
            best, cost = better(a, objective(a), best, cost)
            least, start_index = cost.min(1)
        return Solution(best[torch.arange(batch, device=best.device), start_index], least)

    def _fall(self, step: int) -> float:
        if self.constant_rate:
            return 1.0
        turn = torch.tensor(torch.pi * (step - 1) / self.steps)
        return 0.01 + 0.99 * float(1 + turn.cos()) / 2

    def _starts(self, feasible: ConstraintSet, batch: int, start: Tensor | None) -> Tensor:
        """The same random points for every row, so that no answer depends on its batch mates."""
        random = self.starts if start is None else self.starts - 1
        given = [] if start is None else [start[:, None]]
        device = feasible.bounds[0].device
        rng = torch.Generator(device).manual_seed(self.seed)
        if random:
            given.append(feasible.sample(random, rng).expand(batch, -1, -1))
        return torch.cat(given, 1).clone()
