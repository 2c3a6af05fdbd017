"""Exact minimisation, coordinate by coordinate."""

from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor

from costscape.scenarios import ExpectedCost
from costscape.sets import Box, ConstraintSet
from costscape.solvers.base import Objective, Solution, Solver
from costscape.tasks import SeparableTask

ROWS = 2**22  # costs held at once on the first grid


@dataclass(frozen=True)
class Separable(Solver):
    """argmin over a Box of g(x, a) = sum_i g_i(x, a_i), each coordinate searched on its own.

    First g_i on an even grid, one matrix product when all x share their outcomes; then the best
    ``basins`` local minima of the grid are refined by halving their cell until it is 2^-20 of the
    interval. Global for any f that has no dip narrower than a grid cell, exact for convex f
    whatever the grid. Cost: grid x S + 2 x B x basins x S x log2(2^20 / grid) evaluations of f
    with shared outcomes, and B times the first term without.
    """

    grid: int = 1025
    own_grid: int = 65  # when each x has its own outcomes
    basins: int = 3
    halvings: int = 20

    def refuses(self, objective: Objective, feasible: ConstraintSet) -> str | None:
        if not isinstance(feasible, Box):
            return f"needs a Box, and this feasible set is a {type(feasible).__name__}"
        if not isinstance(objective, ExpectedCost):
            return "needs an ExpectedCost, to know that the cost is a sum over coordinates"
        if not isinstance(objective.task, SeparableTask):
            return (
                "needs a SeparableTask, whose cost is a sum over coordinates, and this is a Task"
            )
        return None

    def coarse(self) -> "Separable":
        return Separable(min(self.grid, 257), min(self.own_grid, 17), 1, min(self.halvings, 8))

    def _minimise(
        self, objective: Objective, feasible: ConstraintSet, batch: int, start: Tensor | None
    ) -> Solution:
        g = cast(ExpectedCost, objective)
        shared = g.scenarios.shared
        points = self.grid if shared else 9 if g.task.convex else self.own_grid
        # a block of rows at a time keeps the first grid's costs (rows, points, d) small
        rows = max(1, ROWS // (points * feasible.dim))
        with torch.no_grad():
            parts = [
                self._rows(g.rows(slice(i, i + rows)), cast(Box, feasible), points)
                for i in range(0, batch, rows)
            ]
        return Solution(*(torch.cat(part) for part in zip(*parts, strict=True)))

    def _rows(self, g: ExpectedCost, box: Box, points: int) -> tuple[Tensor, Tensor]:
        lower, width = box.lower, box.upper - box.lower
        t = torch.linspace(0, 1, points, dtype=lower.dtype, device=lower.device)
        cost = g.terms(lower + t[None, :, None] * width)  # (B, points, d)
        basins = 1 if g.task.convex else min(self.basins, points)
        best, k = _local_minima(cost, basins)
        t, step = t[k], 1 / (points - 1)
        while step > 2.0**-self.halvings:
            step /= 2
            sides = torch.cat([t - step, t + step], 1).clamp(0, 1)
            tried = torch.stack([best, *g.terms(lower + sides * width).chunk(2, 1)])
            best, i = tried.min(0)
            t = torch.stack([t, *sides.chunk(2, 1)]).gather(0, i[None])[0]
        best, k = best.min(1, keepdim=True)
        a = box.project(lower + t.gather(1, k)[:, 0] * width)
        return a, best[:, 0].sum(-1)


def _local_minima(cost: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """The n lowest local minima along axis 1; where fewer exist, the lowest again."""
    if n == 1:
        return cost.min(1, keepdim=True)
    wall = cost.new_full((len(cost), 1, cost.shape[2]), torch.inf)
    left = torch.cat([wall, cost[:, :-1]], 1)
    right = torch.cat([cost[:, 1:], wall], 1)
    valley = cost.where((cost <= left) & (cost <= right), torch.inf)
    best, k = valley.topk(n, 1, largest=False)
    missing = best.isinf()
    return best.where(~missing, best[:, :1]), k.where(~missing, k[:, :1])
