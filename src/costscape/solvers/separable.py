"""Exact minimisation, coordinate by coordinate."""

from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor

from costscape.scenarios import Surface
from costscape.sets import Box, ConstraintSet
from costscape.solvers.base import Objective, Solution, Solver

ROWS = 2**22  # costs held at once on the first grid
FAR = 2.0**-18  # of the interval: below, only the best basin is refined


@dataclass(frozen=True)
class Separable(Solver):
    """argmin over a Box of g(x, a) = sum_i g_i(x, a_i), each coordinate searched on its own.

    First g_i on an even grid of ``grid`` points, one matrix product when all x share their
    outcomes. When each x has its own, the grid has ``own_grid`` points, and only the ``cells``
    most promising of its cells, the neighbours of local minima first, are cut as finely as the
    other. Then the best ``basins`` points are refined by halving their cell until it is 2^-20 of
    the interval. Global for any f that has no dip narrower than a cell, exact for convex f
    whatever the grid. Cost: grid x S evaluations of f with shared outcomes, about 170 x B x S
    without, 10 x B x S where f is convex; and 50 x B x S for the refinement, 30 where f is convex.
    """

    grid: int = 1025
    own_grid: int = 65  # when each x has its own outcomes
    cells: int = 6
    basins: int = 3
    halvings: int = 20

    def refuses(self, objective: Objective, feasible: ConstraintSet) -> str | None:
        if not isinstance(feasible, Box):
            return f"needs a Box, and this feasible set is a {type(feasible).__name__}"
        if not isinstance(objective, Surface):
            return "needs an ExpectedCost, to know that the cost is a sum over coordinates"
        if not objective.separable:
            return (
                "needs a SeparableTask, whose cost is a sum over coordinates, and this is a Task"
            )
        return None

    def coarse(self) -> "Separable":
        return Separable(min(self.grid, 257), min(self.own_grid, 17), 0, 1, min(self.halvings, 8))

    def _minimise(
        self, objective: Objective, feasible: ConstraintSet, batch: int, start: Tensor | None
    ) -> Solution:
        g = cast(Surface, objective)
        points = self.grid if g.shared else 9 if g.convex else self.own_grid
        # a block of rows at a time keeps the first grid's costs (rows, points, d) small
        rows = max(1, ROWS // (points * feasible.dim))
        with torch.no_grad():
            parts = [
                self._rows(g.rows(slice(i, i + rows)), cast(Box, feasible), points)
                for i in range(0, batch, rows)
            ]
        return Solution(*(torch.cat(part) for part in zip(*parts, strict=True)))

    def _rows(self, g: Surface, box: Box, points: int) -> tuple[Tensor, Tensor]:
        lower, width = box.lower, box.upper - box.lower

        def cost(t: Tensor) -> Tensor:
            return g.terms(lower + t * width)  # (B, points, d)

        t = torch.linspace(0, 1, points, dtype=lower.dtype, device=lower.device)
        step = 1 / (points - 1)
        first = cost(t[None, :, None])
        basins = 1 if g.convex else min(self.basins, points)
        best, k = _local_minima(first, basins)
        finer = (self.grid - 1) // (points - 1)
        if g.convex or self.cells == 0 or finer < 2:
            t = t[k]
        else:
            step /= finer
            t = t[_promising(first, k, self.cells)]  # the left ends of cells
            inner = step * torch.arange(finer + 1).to(t)
            t = (t[:, :, None] + inner[:, None]).flatten(1, 2).clamp(max=1)
            best, k = _local_minima(cost(t), basins)
            t = t.gather(1, k)
        while step > 2.0**-self.halvings:
            step /= 2
            if step < FAR:
                best, k = best.min(1, keepdim=True)
                t = t.gather(1, k)
            sides = torch.cat([t - step, t + step], 1).clamp(0, 1)
            tried = torch.stack([best, *cost(sides).chunk(2, 1)])
            best, i = tried.min(0)
            t = torch.stack([t, *sides.chunk(2, 1)]).gather(0, i[None])[0]
        best, k = best.min(1, keepdim=True)
        a = box.project(lower + t.gather(1, k)[:, 0] * width)
        return a, best[:, 0].sum(-1)


def _local_minima(cost: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """The n lowest local minima along axis 1, a plateau being one; if fewer, the lowest again."""
    if n == 1:
        return cost.min(1, keepdim=True)
    wall = cost.new_full((len(cost), 1, cost.shape[2]), torch.inf)
    left = torch.cat([wall, cost[:, :-1]], 1)
    right = torch.cat([cost[:, 1:], wall], 1)
    valley = cost.where((cost < left) & (cost <= right), torch.inf)
    best, k = valley.topk(n, 1, largest=False)
    missing = best.isinf()
    return best.where(~missing, best[:, :1]), k.where(~missing, k[:, :1])


def _promising(cost: Tensor, minima: Tensor, n: int) -> Tensor:
    """The n cells to look into, in order: those beside the minima, then those with low ends."""
    low = torch.minimum(cost[:, :-1], cost[:, 1:])
    beside = torch.cat([minima - 1, minima], 1).clamp(0, low.shape[1] - 1)
    low = low.scatter(1, beside, -torch.inf)
    return low.topk(min(n, low.shape[1]), 1, largest=False).indices.sort(1).values
