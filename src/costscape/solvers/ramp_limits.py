"""Limits on the difference of neighbouring coordinates, such as the ramps of a power plant.

    minimise  sum_i g_i(a_i)  over  lower <= a <= upper,  low_i <= a_{i+1} - a_i <= high_i

Dynamic programming along the chain (Bellman, 1957): with F_1 = g_1,

    F_{i+1}(a) = g_{i+1}(a) + min { F_i(b) : low_i <= a - b <= high_i },

on a grid of J values for each coordinate, J^2 d operations for each x. Nothing needs to be convex.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from costscape.sets.constraint_set import Polyhedral, couples
from costscape.solvers.window_search import Grid, WindowSearch

FIRST_CELLS = 64  # of the whole interval, or more where a limit is narrower
SLACK = 1e-6  # of the largest difference: rounding of grid points does not forbid a step


@dataclass(frozen=True)
class RampLimits(WindowSearch):
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

    def _first_window(self, feasible: Polyhedral) -> tuple[Tensor, Tensor, int]:
        """One grid for all coordinates, on which neighbours can differ by exactly their limit."""
        lower, upper = feasible.bounds
        low, high = limits(feasible)
        ends = torch.cat([low.abs(), high.abs()])
        width = upper.max() - lower.min()
        step = width / FIRST_CELLS
        ends = ends[(ends > 0) & (ends < width)]
        if len(ends):
            step = ends.min() / (ends.min() / step).ceil()
        half = (width / 2 / step).ceil() * step
        points = int((2 * half / step).round()) + 1
        return (lower.min() + half).expand_as(lower), half.expand_as(lower), points

    def _next_half(self, half: Tensor, on_edge: Bool[Tensor, "B d"]) -> Tensor:
        # windows stay equal, so that neighbours at their limit can move together
        return super()._next_half(half, on_edge.any(1, keepdim=True).expand_as(on_edge))

    def _best_on_grid(self, feasible: Polyhedral, t: Grid, g: Grid) -> Float[Tensor, "B d"]:
        low, high = limits(feasible)
        slack = SLACK * (feasible.bounds[1] - feasible.bounds[0]).max()
        best, choices = g[:, 0], []
        for i in range(1, t.shape[1]):
            step = t[:, i, None, :] - t[:, i - 1, :, None]  # (B, J before, J after)
            allowed = (step >= low[i - 1] - slack) & (step <= high[i - 1] + slack)
            reached, choice = torch.where(allowed, best[:, :, None], torch.inf).min(1)
            best = g[:, i] + reached
            choices.append(choice)
        index = best.argmin(1, keepdim=True)
        path = [t[:, -1].gather(1, index)]
        for i, choice in reversed(list(enumerate(choices))):
            index = choice.gather(1, index)
            path.append(t[:, i].gather(1, index))
        return torch.cat(path[::-1], 1)


def limits(feasible: Polyhedral) -> tuple[Float[Tensor, "e"], Float[Tensor, "e"]]:
    """The least and the largest difference a_{i+1} - a_i, infinite where there is no limit."""
    rows = feasible.rows()
    low = torch.full_like(rows.G[0, :-1] if len(rows.G) else rows.A[0, :-1], -torch.inf)
    high = -low
    for matrix, side, equal in ((rows.A, rows.b, True), (rows.G, rows.h, False)):
        where = couples(matrix)
        for row, bound in zip(matrix[where], side[where], strict=True):
            i = int(row.ne(0).int().argmax())
            limit = bound / row[i + 1]
            if equal or row[i + 1] > 0:
                high[i] = torch.minimum(high[i], limit)
            if equal or row[i + 1] < 0:
                low[i] = torch.maximum(low[i], limit)
    return low, high
