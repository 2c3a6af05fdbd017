"""One row that all coordinates share, such as a budget: exact for convex separable costs.

    minimise  sum_i g_i(a_i)  over  lower <= a <= upper,  k . a <= h   (or k . a = h)

The Lagrangian of the row with multiplier L is a sum over coordinates again,

    sum_i ( g_i(a_i) + L k_i a_i ) - L h,

so g_i'(a_i) = -L k_i where a_i is between its bounds. ``slope_windows`` evaluates every g_i in
windows that shrink around the answer, and ``row_level`` finds L for the slopes in them. Rows that
have not settled after some rounds are solved by bisection of L. Costs are computed in double
precision, since slopes are differences. Weak duality gives ``Solution.gap``.
"""

from dataclasses import dataclass
from functools import partial
from typing import ClassVar, cast

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from costscape.scenarios import ExpectedCost, Surface
from costscape.sets import Budget, ConstraintSet, Simplex
from costscape.sets.constraint_set import Polyhedral, couples
from costscape.solvers.box_search import costs_on_grid
from costscape.solvers.coupled_search import CoupledSearch
from costscape.solvers.row_level import bisect, fill
from costscape.solvers.share_rows import ShareCosts, ShareRows, share_rows
from costscape.solvers.slope_windows import bounded, kinked_nodes, narrow, nodes
from costscape.solvers.solver import Objective, Solution

FIRST = 17  # points of the first grid, over the whole intervals
FEW, FEW_GRID = 16, 33  # x from which on calls take longer than costs: fewer rounds, more points
FIRST_EVEN = 1e-5  # as EVEN of ``row_level``, for the first grid
COSTS = 2**22  # of a grid in memory at once
COARSE = 9  # halvings that rank the epochs of a fit
DOUBT = 4 / 3  # of 2^-halvings of the spread of g: rows with a larger gap are solved again


@dataclass(frozen=True)
class SharedCapacity(CoupledSearch):
    """Exact decisions for a convex SeparableTask on a Budget, a Simplex or a one-row Polytope.

    Args:
        grid: int, default 21. Points in a window, odd.
        halvings: int, default 17. Actions are within 2^-halvings of the interval.

    The action is within 2^-halvings of each interval of the best one; where several are best, of
    the one that treats coordinates alike. ``gap`` of the solution bounds how far its cost is
    above the least one. With 100 own scenarios of 7 coordinates, one row takes about 8 ms, and
    1,000 rows take 1 ms each.

    >>> import costscape as cs
    >>> import torch
    >>> budget = cs.Budget(total=1.0, dim=2)
    >>> task = cs.SeparableTask(lambda y, a: (y - a) ** 2, budget, convex=True)
    >>> outcomes = cs.Scenarios(torch.ones(1, 1), torch.tensor([[[2.0, 1.5]]]))
    >>> g = cs.ExpectedCost(task, outcomes)
    >>> SharedCapacity().minimise(g, task.feasible, 1).action.round(decimals=3)
    tensor([[0.7500, 0.2500]])
    """

    grid: int = 21
    needs_convex: ClassVar[bool] = True

    def coarse(self) -> "SharedCapacity":
        return SharedCapacity(self.grid, min(self.halvings, COARSE))

    def _refuses_rows(self, feasible: Polyhedral) -> str | None:
        if isinstance(feasible, Budget | Simplex):
            return None if feasible.dim > 1 else "needs more than one coordinate"
        rows = feasible.rows()
        count = int(couples(rows.A).sum() + couples(rows.G).sum())
        return None if count == 1 else f"needs one row that couples coordinates, not {count}"

    def _minimise(
        self, objective: Objective, feasible: ConstraintSet, batch: int, start: Tensor | None
    ) -> Solution:
        g, c = cast(Surface, objective), cast(Polyhedral, feasible)
        row = share_rows(c, turn=True)
        with torch.no_grad():
            if isinstance(g, ExpectedCost):
                g = g.on(g.scenarios.by_coordinate())
            rows = max(1, COSTS // (FIRST * c.dim))
            parts = [
                self._search(
                    g if batch <= rows else g.rows(slice(first, first + rows)), c, row, batch
                )
                for first in range(0, batch, rows)
            ]
        actions, costs, gaps = zip(*parts, strict=True)
        return Solution(torch.cat(actions), torch.cat(costs), torch.cat(gaps))

    def _search(
        self, g: Surface, c: Polyhedral, row: ShareRows, batch: int
    ) -> tuple[Float[Tensor, "B d"], Float[Tensor, "B"], Float[Tensor, "B"]]:
        like = c.bounds[0]
        few = batch <= FEW and self.halvings > COARSE
        count, grid = (FEW_GRID, max(FEW_GRID, self.grid)) if few else (FIRST, self.grid)
        positions = np.linspace(0, 1, count)
        actions = torch.as_tensor(row.actions(positions[:, None])).to(like)
        first = costs_on_grid(g, actions).double().cpu().numpy()  # (B, d, J)
        costs = ShareCosts(g, row, like, len(first))
        at = fill(np.broadcast_to(positions, first.shape), first, row, FIRST_EVEN)
        lines = kinked_nodes if self.halvings > COARSE else nodes
        inside = partial(fill, row=row, lines=lines)
        found, rows = narrow(costs, inside, at, 1 / (count - 1), grid, self.halvings)
        least = costs.least(self.halvings)
        a, cost, gap = bounded(found, costs, c, least)
        doubt = DOUBT * 2.0**-self.halvings
        doubtful = gap > doubt * (first.max(-1) - first.min(-1)).sum(-1)
        doubtful[rows] = True
        if doubtful.any():
            rows = doubtful.nonzero()[0]
            again = bisect(lambda t: costs.at(t, rows), row, len(rows), least)
            found.t[rows], found.price[rows] = again
            a, cost, gap = bounded(found, costs, c, least)
        return a, torch.as_tensor(cost).to(like), torch.as_tensor(gap).to(like)
