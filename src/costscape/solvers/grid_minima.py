"""Minima of functions of one variable: on a grid, then between its points.

All x and all coordinates are searched at once. Positions are shares t of an interval, 0 to 1.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

FALL = 4.0  # grid differences by which g may fall below a grid point between the points

Costs = Callable[[Tensor], Tensor]  # positions t (B, n, d) -> summands of g (B, n, d)


@dataclass(frozen=True)
class Minima:
    """The n lowest local minima of each function on a grid.

    ``exists`` is False where a function has fewer than n; these entries repeat the lowest one.
    """

    cost: Float[Tensor, "*batch n"]
    index: Int64[Tensor, "*batch n"]
    exists: Bool[Tensor, "*batch n"]


def local_minima(cost: Float[Tensor, "*batch J"], n: int) -> Minima:
    """Find the n lowest local minima along the last axis. A plateau counts as one."""
    if n == 1:
        best, index = cost.min(-1, keepdim=True)
        return Minima(best, index, torch.ones_like(index, dtype=torch.bool))
    is_minimum = torch.ones_like(cost, dtype=torch.bool)
    is_minimum[..., 1:] = cost[..., 1:] < cost[..., :-1]
    is_minimum[..., :-1] &= cost[..., :-1] <= cost[..., 1:]
    best, index = cost.where(is_minimum, torch.inf).topk(n, -1, largest=False)
    exists = ~best.isinf()
    return Minima(best.where(exists, best[..., :1]), index.where(exists, index[..., :1]), exists)


def may_be_lowest(cost: Float[Tensor, "*batch J"], minima: Minima) -> Bool[Tensor, "*batch n"]:
    """Which minima may fall below the lowest grid point between the points of the grid.

    A function that is convex within two cells of a grid point falls there by at most the largest
    of the four differences between neighbours. FALL times that is allowed.
    """
    J = cost.shape[-1]
    if minima.index.shape[-1] == 1 or J < 5:
        return torch.ones_like(minima.exists)
    centre = minima.index.clamp(2, J - 3)
    around = torch.stack([cost.gather(-1, centre + offset) for offset in range(-2, 3)])
    difference = around.diff(dim=0).abs().amax(0)
    return minima.cost - minima.cost[..., :1] <= FALL * difference


def promising_cells(
    cost: Float[Tensor, "*batch J"], minima: Int64[Tensor, "*batch m"], n: int
) -> Int64[Tensor, "*batch n"]:
    """The n cells of the grid to refine: those beside minima first, then those with low ends."""
    low = torch.minimum(cost[..., :-1], cost[..., 1:])
    beside = torch.cat([minima - 1, minima], -1).clamp(0, low.shape[-1] - 1)
    low = low.scatter(-1, beside, -torch.inf)
    return low.topk(min(n, low.shape[-1]), -1, largest=False).indices.sort(-1).values


@dataclass(frozen=True)
class Points:
    """n positions t for each x and coordinate, their costs, and the width of the cells there."""

    t: Float[Tensor, "B n d"]
    cost: Float[Tensor, "B n d"]
    step: float

    def lowest(self) -> "Points":
        """The best of the n for each x and coordinate."""
        cost, choice = self.cost.min(1, keepdim=True)
        return Points(self.t.gather(1, choice), cost, self.step)


def cut_cells(g: Costs, points: Points, least: float, parts: int) -> Points:
    """Move each point to the best of the positions that cut the cells beside it, repeatedly.

    Each round cuts the two cells of a point into ``parts``, evaluates 2 (parts - 1) positions,
    and stops when cells are at most ``least`` wide. For a convex g the minimum stays within one
    cell of the point, and 2 parts take the fewest evaluations. More parts see more of a g that
    has several dips in a cell, and take fewer rounds.
    """
    t, cost, step = points.t, points.cost, points.step
    ranges = [torch.arange(*ends, device=t.device) for ends in ((1 - parts, 0), (1, parts))]
    moves = torch.cat(ranges).to(t)[:, None, None]
    while step > least:
        step /= parts
        tried = (t[:, None] + step * moves).clamp(0, 1)  # (B, moves, n, d)
        costs = g(tried.flatten(1, 2)).unflatten(1, tried.shape[1:3])
        cost, choice = torch.cat([cost[:, None], costs], 1).min(1)
        t = torch.cat([t[:, None], tried], 1).gather(1, choice[:, None])[:, 0]
    return Points(t, cost, step)
