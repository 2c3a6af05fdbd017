"""Search for a cost that is a sum over coordinates on a set that couples them.

    minimise  g(x, a) = sum_i g_i(x, a_i)  over  C = {lower <= a <= upper, and linear rows}

1. Grid. Evaluate every g_i on a grid of its interval, and find the best point of C for the grid.
   How this is done depends on the rows; see ``SharedCapacity`` and ``RampLimits``.
2. Windows. Repeat with a grid in a window around the best point. Windows shrink to two cells of
   their grid, unless the best point lies on the edge of one, which then doubles. Stop when all
   windows are 2^-halvings of their intervals.

All x are solved at once. Cost: about 140 evaluations of f for each x, outcome and coordinate.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, cast

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from costscape.scenarios import ExpectedCost, Surface
from costscape.sets import Box, ConstraintSet
from costscape.sets.constraint_set import Polyhedral
from costscape.solvers.solver import Objective, Solution, Solver

ROUNDS = 60  # at most; windows that shrink in every round need fewer than ten
COSTS = 2**22  # of a grid in memory at once
AT_EDGE = 0.999  # share of a window beyond which a point counts as on its edge

Grid = Float[Tensor, "B d J"]


@dataclass(frozen=True)
class WindowSearch(Solver):
    """Base of the solvers for a SeparableTask on a set with coupling rows.

    Args:
        grid: int, default 33. Points in a window, odd.
        halvings: int, default 17. Windows end 2^-halvings of the interval wide.
    """

    quick: ClassVar[bool] = True

    grid: int = 33
    halvings: int = 17

    needs_convex: ClassVar[bool]

    def refuses(self, objective: Objective, feasible: ConstraintSet) -> str | None:
        if not isinstance(objective, ExpectedCost | Surface) or not objective.separable:
            return "needs a SeparableTask, whose cost is a sum over coordinates"
        if self.needs_convex and not objective.convex:
            return "needs a cost that is convex in a, promised by convex=True of the task"
        if not isinstance(feasible, Polyhedral) or isinstance(feasible, Box):
            return f"needs linear rows that couple coordinates, not a {type(feasible).__name__}"
        return self._refuses_rows(feasible)

    @abstractmethod
    def _refuses_rows(self, feasible: Polyhedral) -> str | None:
        """Why the rows of this set cannot be taken, or None."""

    @abstractmethod
    def _first_window(self, feasible: Polyhedral) -> tuple[Tensor, Tensor, int]:
        """The middle (d,), the half width (d,) and the points of the first grid."""

    @abstractmethod
    def _best_on_grid(self, feasible: Polyhedral, t: Grid, g: Grid) -> Float[Tensor, "B d"]:
        """The best point of C for the costs g at the points t, which do not decrease along J.

        The points of each coordinate hold or enclose a point of C.
        """

    def coarse(self) -> "WindowSearch":
        return type(self)(min(self.grid, 17), min(self.halvings, 9))

    def _minimise(
        self, objective: Objective, feasible: ConstraintSet, batch: int, start: Tensor | None
    ) -> Solution:
        g, c = cast(Surface, objective), cast(Polyhedral, feasible)
        with torch.no_grad():
            if isinstance(g, ExpectedCost):
                g = g.on(g.scenarios.by_coordinate())
            rows = max(1, COSTS // (4 * self.grid * c.dim))
            parts = [
                self._search(g.rows(slice(first, first + rows)), c, min(rows, batch - first))
                for first in range(0, batch, rows)
            ]
        actions, costs = zip(*parts, strict=True)
        return Solution(torch.cat(actions), torch.cat(costs))

    def _search(
        self, g: Surface, c: Polyhedral, batch: int
    ) -> tuple[Float[Tensor, "B d"], Float[Tensor, "B"]]:
        lower, upper = c.bounds
        middle, half, points = self._first_window(c)
        best = self._propose(g, c, middle.expand(batch, -1), half, points)
        cost = g.terms(best[:, None])[:, 0].sum(-1)
        half = (2 * half / (points - 1)).expand(batch, -1)
        least = 2.0**-self.halvings * (upper - lower)
        for _ in range(ROUNDS):
            tried = self._propose(g, c, best, half, self.grid)
            now = g.terms(tried[:, None])[:, 0].sum(-1)
            better = (now < cost)[:, None]
            moved = (tried - best).abs() >= AT_EDGE * half
            on_edge = better & moved & (tried > lower) & (tried < upper)
            half = self._next_half(half, on_edge)
            best, cost = torch.where(better, tried, best), torch.minimum(now, cost)
            if (half <= least).all():
                break
        return best, cost

    def _next_half(self, half: Tensor, on_edge: Bool[Tensor, "B d"]) -> Tensor:
        """Half widths of the next windows: one cell of this grid, or twice as wide on an edge.

        Coordinates move together, so where one is on an edge, no window of that x shrinks.
        """
        wider = torch.where(on_edge, 2 * half, half)
        return torch.where(on_edge.any(1, keepdim=True), wider, half * 2 / (self.grid - 1))

    def _propose(
        self, g: Surface, c: Polyhedral, middle: Tensor, half: Tensor, points: int
    ) -> Float[Tensor, "B d"]:
        offsets = torch.linspace(-1, 1, points, dtype=half.dtype, device=half.device)
        t = middle[..., None] + half[..., None] * offsets  # (B, d, J)
        lower, upper = (end[:, None] for end in c.bounds)
        t = t.clamp(lower, upper)
        return c.project(self._best_on_grid(c, t, g.terms(t.mT).mT))
