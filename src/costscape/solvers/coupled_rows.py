"""Any linear rows that couple coordinates: exact for convex separable costs, with a bound.

    minimise  sum_i g_i(a_i)  over  lower <= a <= upper,  G a <= h,  A a = b

The Lagrangian of the rows is a sum over coordinates. ``slope_windows`` evaluates every g_i in
windows that shrink around the answer, and ``row_prices`` finds the multipliers of the rows for the
slopes in them. Weak duality gives ``Solution.gap``.
"""

from dataclasses import dataclass
from functools import partial
from typing import ClassVar, cast

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from costscape.scenarios import ExpectedCost, Surface
from costscape.sets import ConstraintSet
from costscape.sets.constraint_set import Polyhedral, couples
from costscape.solvers.box_search import costs_on_grid
from costscape.solvers.coupled_search import CoupledSearch
from costscape.solvers.row_prices import fill_rows
from costscape.solvers.share_rows import ShareCosts, ShareRows, share_rows
from costscape.solvers.slope_windows import bounded, kinked_nodes, narrow
from costscape.solvers.solver import Objective, Solution

FIRST = 17  # points of the first grid, over the whole intervals
COSTS = 2**20  # of a grid in memory at once
COARSE = 9  # halvings that rank the epochs of a fit
MOST_ROWS = 100  # a step of the interior-point method solves a system of this size


@dataclass(frozen=True)
class CoupledRows(CoupledSearch):
    """Exact decisions for a convex SeparableTask on a Polytope with some rows between coordinates.

    Args:
        grid: int, default 21. Points in a window, odd.
        halvings: int, default 17. Windows end 2^-halvings of the interval wide.

    ``gap`` of the solution bounds how far its cost is above the least one. The set may have up to
    100 rows that couple coordinates.

    >>> import costscape as cs
    >>> import torch
    >>> square = [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]]
    >>> C = cs.Polytope(G=[*square, [1.0, 1.0], [1.0, 2.0]], h=[1.0, 1.0, 0.0, 0.0, 1.0, 1.2])
    >>> task = cs.SeparableTask(lambda y, a: (y - a) ** 2, C, convex=True)
    >>> g = cs.ExpectedCost(task, cs.Scenarios(torch.ones(1, 1), torch.tensor([[[1.0, 1.0]]])))
    >>> cs.CoupledRows().minimise(g, C, 1).action.round(decimals=3)
    tensor([[0.6400, 0.2800]])
    """

    quick: ClassVar[bool] = False

    grid: int = 21
    needs_convex: ClassVar[bool] = True

    def coarse(self) -> "CoupledRows":
        return CoupledRows(self.grid, min(self.halvings, COARSE))

    def _refuses_rows(self, feasible: Polyhedral) -> str | None:
        rows = feasible.rows()
        count = int(couples(rows.A).sum() + couples(rows.G).sum())
        if 1 <= count <= MOST_ROWS:
            return None
        return f"needs 1 to {MOST_ROWS} rows that couple coordinates, not {count}"

    def _minimise(
        self, objective: Objective, feasible: ConstraintSet, batch: int, start: Tensor | None
    ) -> Solution:
        g, c = cast(Surface, objective), cast(Polyhedral, feasible)
        rows = share_rows(c)
        with torch.no_grad():
            if isinstance(g, ExpectedCost):
                g = g.on(g.scenarios.by_coordinate())
            size = max(1, COSTS // (4 * self.grid * c.dim))
            parts = [
                self._search(g.rows(slice(first, first + size)), c, rows)
                for first in range(0, batch, size)
            ]
        actions, costs, gaps = zip(*parts, strict=True)
        return Solution(torch.cat(actions), torch.cat(costs), torch.cat(gaps))

    def _search(
        self, g: Surface, c: Polyhedral, rows: ShareRows
    ) -> tuple[Float[Tensor, "B d"], Float[Tensor, "B"], Float[Tensor, "B"]]:
        like = c.bounds[0]
        positions = np.linspace(0, 1, FIRST)
        actions = torch.as_tensor(rows.actions(positions[:, None])).to(like)
        first = costs_on_grid(g, actions).double().cpu().numpy()  # (B, d, J)
        costs = ShareCosts(g, rows, like, len(first))
        at = fill_rows(np.broadcast_to(positions, first.shape), first, rows)
        fill = partial(fill_rows, rows=rows, lines=kinked_nodes)
        found, _ = narrow(costs, fill, at, 1 / (FIRST - 1), self.grid, self.halvings)
        a, cost, gap = bounded(found, costs, c, costs.least(self.halvings))
        return a, torch.as_tensor(cost).to(like), torch.as_tensor(gap).to(like)
