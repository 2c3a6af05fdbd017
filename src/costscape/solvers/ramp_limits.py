"""Limits on the difference of neighbouring coordinates, such as the ramps of a power plant.

    minimise  sum_i g_i(a_i)  over  lower <= a <= upper,  low_i <= a_{i+1} - a_i <= high_i

Dynamic programming along the chain (Bellman, 1957): with F_1 = g_1,

    F_{i+1}(a) = g_{i+1}(a) + min { F_i(b) : low_i <= a - b <= high_i },

on a grid of J values for each coordinate, J^2 d operations for each x. Nothing needs to be convex.

1. Box. The minimum over the box around C is the answer of all x for which it lies in C.
2. Grid. For the others, the best path over a grid of the whole interval. Where f is convex, the
   point of C nearest to the answer on the box replaces it.
3. Windows. The same in a window around the best path. Windows shrink to two cells of their grid,
   unless the best point lies on the edge of one, which then doubles. Stop when all windows are
   2^-halvings of their intervals.
"""

from dataclasses import dataclass
from functools import partial
from typing import ClassVar, cast

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from costscape.scenarios import ExpectedCost, Surface
from costscape.sets import Box, ConstraintSet
from costscape.sets.constraint_set import Polyhedral, couples
from costscape.sets.validation import as_numpy
from costscape.solvers.box_search import Separable
from costscape.solvers.chain_slopes import Chain, fill_chain
from costscape.solvers.coupled_search import CoupledSearch, Grid
from costscape.solvers.share_rows import ShareCosts, share_rows
from costscape.solvers.slope_windows import narrow
from costscape.solvers.solver import Objective, Solution

FIRST_CELLS = 64  # of the whole interval, or more where a limit is narrower
CONVEX_START = 1 / 16  # half width of the first window of a convex cost, of the interval
ROUNDS = 60  # at most; windows that shrink in every round need fewer than ten
FEW, FEW_GRID = 4, 33  # x from which on calls take longer than costs, and points in their windows
COSTS = 2**22  # of a grid in memory at once
COARSE = 9  # halvings that rank the epochs of a fit
AT_EDGE = 0.999  # share of a window beyond which a point counts as on its edge
SLACK = 1e-6  # of the largest difference: rounding of grid points does not forbid a step


@dataclass(frozen=True)
class RampLimits(CoupledSearch):
    """Decisions for a SeparableTask on a Polytope of bounds and limits between neighbours.

    Args:
        grid: int, default 9. Points in a window, odd.
        halvings: int, default 17. Windows end 2^-halvings of the interval wide.

    For convex costs the windows move to the minimum. For other costs the search is global on the
    first grid.

    >>> import costscape as cs
    >>> import torch
    >>> square = [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]]
    >>> ramp = [-1.0, 1.0]  # a_2 - a_1 <= 0.5
    >>> C = cs.Polytope(G=[*square, ramp], h=[1.0, 1.0, 0.0, 0.0, 0.5])
    >>> task = cs.SeparableTask(lambda y, a: (y - a) ** 2, C, convex=True)
    >>> g = cs.ExpectedCost(task, cs.Scenarios(torch.ones(1, 1), torch.tensor([[[0.0, 1.0]]])))
    >>> cs.RampLimits().minimise(g, C, 1).action.round(decimals=3)
    tensor([[0.2500, 0.7500]])
    """

    grid: int = 9
    needs_convex: ClassVar[bool] = False

    def _refuses_rows(self, feasible: Polyhedral) -> str | None:
        rows = feasible.rows()
        both = torch.cat([rows.A, rows.G])
        both = both[couples(both)]
        if len(both) == 0:
            return "needs limits between neighbouring coordinates, and this set has none"
        first = both.ne(0).int().argmax(1)
        left = both.gather(1, first[:, None])[:, 0]
        right = both.gather(1, (first + 1).clamp(max=both.shape[1] - 1)[:, None])[:, 0]
        if not (both.ne(0).sum(1).eq(2) & (left == -right)).all():
            return (
                "needs rows that limit the difference of neighbouring coordinates, and no others"
            )
        return None

    def coarse(self) -> "RampLimits":
        return RampLimits(self.grid, min(self.halvings, COARSE))

    def _minimise(
        self, objective: Objective, feasible: ConstraintSet, batch: int, start: Tensor | None
    ) -> Solution:
        g, c = cast(Surface, objective), cast(Polyhedral, feasible)
        if g.convex and batch <= FEW and self.halvings > COARSE:
            return self._few(g, c, batch)
        box = Separable() if self.halvings > COARSE else Separable().coarse()
        found = box.minimise(objective, Box(*c.bounds), batch)
        outside = (~c.contains(found.action)).nonzero()[:, 0]
        if len(outside) == 0:
            return found
        some: Surface = g
        if isinstance(g, ExpectedCost):
            some = g.on(g.scenarios.rows(outside).by_coordinate())
        count, ramps = len(outside) if some is not g else batch, Ramps(c)
        near = c.project(found.action if some is g else found.action[outside])
        with torch.no_grad():
            rows = max(1, COSTS // (4 * self.grid * c.dim))
            parts = [
                self._search(some.rows(slice(i, i + rows)), c, ramps, near[i : i + rows])
                for i in range(0, count, rows)
            ]
        action, cost = (torch.cat(column) for column in zip(*parts, strict=True))
        if some is g:
            action, cost = action[outside], cost[outside]
        return Solution(
            found.action.index_put((outside,), action), found.cost.index_put((outside,), cost)
        )

    def _few(self, g: Surface, c: Polyhedral, batch: int) -> Solution:
        """Windows of slopes in place of pairs of points: fewer calls, more work for each x."""
        rows, ramps = share_rows(c), Ramps(c)
        lower, upper = (as_numpy(end) for end in c.bounds)
        most = 2 * float((upper - lower).sum()) + 1.0  # stands for no limit
        low, high = (as_numpy(v).clip(-most, most) for v in (ramps.low, ramps.high))
        fill = partial(fill_chain, chain=Chain(lower, upper, low, high))
        with torch.no_grad():
            if isinstance(g, ExpectedCost):
                g = g.on(g.scenarios.by_coordinate())
            costs = ShareCosts(g, rows, c.bounds[0], batch)
            first = np.broadcast_to(np.linspace(0, 1, FEW_GRID), (batch, c.dim, FEW_GRID))
            at = fill(first, costs.at(first, np.arange(batch)))
            found, _ = narrow(costs, fill, at, 1 / (FEW_GRID - 1), FEW_GRID, self.halvings)
            a = torch.from_numpy(rows.actions(found.t)).to(c.bounds[0])
            if (broken := ~c.contains(a)).any():
                a[broken] = c.project(a[broken])
            return Solution(a, g.terms(a[:, None])[:, 0].sum(-1))

    def _search(
        self, g: Surface, c: Polyhedral, ramps: "Ramps", near: Float[Tensor, "B d"]
    ) -> tuple[Float[Tensor, "B d"], Float[Tensor, "B"]]:
        if g.convex:
            best, cost = near, g.terms(near[:, None])[:, 0].sum(-1)
            half = CONVEX_START * (ramps.upper - ramps.lower).max().expand(len(near), 1)
        else:
            middle, wide, points = ramps.first_window()
            best, cost = self._propose(g, ramps, middle[None], wide, points)
            half = (2 * wide[:1] / (points - 1)).expand(len(near), 1)
        least = 2.0**-self.halvings * (ramps.upper - ramps.lower).max()
        rows, some = torch.arange(len(near), device=near.device), g
        for _ in range(ROUNDS):
            before, wide = best[rows], half[rows]
            tried, now = self._propose(some, ramps, before, wide, self.grid)
            better = now < cost[rows]
            moved = (tried - before).abs() >= AT_EDGE * wide
            inside = (tried > ramps.lower) & (tried < ramps.upper)
            on_edge = (better[:, None] & moved & inside).any(1, keepdim=True)
            # windows stay equal, so that neighbours at their limit can move together
            half = half.index_put(
                (rows,), torch.where(on_edge, 2 * wide, wide * 2 / (self.grid - 1))
            )
            best = best.index_put((rows,), torch.where(better[:, None], tried, before))
            cost = cost.index_put((rows,), torch.minimum(now, cost[rows]))
            going = (half > least)[:, 0].nonzero()[:, 0]
            if len(going) == 0:
                break
            if isinstance(g, ExpectedCost) and len(going) < len(rows):
                rows, some = going, g.on(g.scenarios.rows(going))
        broken = ~c.contains(best)  # by the rounding of sums of steps
        if broken.any():
            best = torch.where(broken[:, None], c.project(best), best)
        return best, g.terms(best[:, None])[:, 0].sum(-1)

    def _propose(
        self, g: Surface, ramps: "Ramps", middle: Tensor, half: Tensor, points: int
    ) -> tuple[Float[Tensor, "B d"], Float[Tensor, "B"]]:
        offsets = torch.linspace(-1, 1, points, dtype=half.dtype, device=half.device)
        t = middle[..., None] + half[..., None] * offsets  # (B, d, J)
        t = t.clamp(ramps.lower[:, None], ramps.upper[:, None])
        exact = self.halvings > COARSE  # coarse searches round as ever: fits keep their bits
        terms = g.search_terms if exact and isinstance(g, ExpectedCost) else g.terms
        return ramps.best_path(t, terms(t.mT).mT)


class Ramps:
    """The bounds of C and the limits between its neighbours, read once for all rounds."""

    def __init__(self, c: Polyhedral) -> None:
        self.lower, self.upper = c.bounds
        self.low, self.high = limits(c)
        self.slack = SLACK * (self.upper - self.lower).max()

    def first_window(self) -> tuple[Tensor, Tensor, int]:
        """One grid for all coordinates, on which neighbours can differ by exactly their limit."""
        ends = torch.cat([self.low.abs(), self.high.abs()])
        width = self.upper.max() - self.lower.min()
        step = width / FIRST_CELLS
        ends = ends[(ends > 0) & (ends < width)]
        if len(ends):
            step = ends.min() / (ends.min() / step).ceil()
        half = (width / 2 / step).ceil() * step
        points = int((2 * half / step).round()) + 1
        return (self.lower.min() + half).expand_as(self.lower), half.expand_as(self.lower), points

    def best_path(
        self, t: Float[Tensor, "#B d J"], g: Grid
    ) -> tuple[Float[Tensor, "B d"], Float[Tensor, "B"]]:
        """The cheapest choice of one point for each coordinate within the limits, and its cost."""
        step = t[:, 1:, None, :] - t[:, :-1, :, None]  # (B, d - 1, J before, J after)
        low, high = self.low - self.slack, self.high + self.slack
        allowed = (step >= low[:, None, None]) & (step <= high[:, None, None])
        walls = torch.zeros_like(step).masked_fill_(~allowed, torch.inf).unbind(1)
        best, choices, t = g[:, 0], [], t.expand_as(g)
        for i, wall in enumerate(walls, 1):
            least, choice = (best[:, :, None] + wall).min(1)
            best = g[:, i] + least
            choices.append(choice)
        cost, index = best.min(1, keepdim=True)
        path = [t[:, -1].gather(1, index)]
        for i, choice in reversed(list(enumerate(choices))):
            index = choice.gather(1, index)
            path.append(t[:, i].gather(1, index))
        return torch.cat(path[::-1], 1), cost[:, 0]


def limits(feasible: Polyhedral) -> tuple[Float[Tensor, "e"], Float[Tensor, "e"]]:
    """The least and the largest difference a_{i+1} - a_i, infinite where there is no limit."""
    rows = feasible.rows()
    like = rows.G if len(rows.G) else rows.A
    low, high = [-torch.inf] * (like.shape[1] - 1), [torch.inf] * (like.shape[1] - 1)
    for matrix, side, equal in ((rows.A, rows.b, True), (rows.G, rows.h, False)):
        where = couples(matrix)
        first = matrix[where].ne(0).int().argmax(1)
        factor = matrix[where].gather(1, first[:, None] + 1)[:, 0]
        limit = (side[where] / factor).tolist()
        for i, sign, bound in zip(first.tolist(), factor.tolist(), limit, strict=True):
            if equal or sign > 0:
                high[i] = min(high[i], bound)
            if equal or sign < 0:
                low[i] = max(low[i], bound)
    return like.new_tensor(low), like.new_tensor(high)
