"""Whole units of a cost that is a sum over coordinates: exact, for any cost.

    minimise  g(x, a) = sum_i g_i(x, a_i)  over the multiples of a step in a Box, or under one row

Every g_i is evaluated at all multiples of its coordinate. On a Box the least of each table is the
answer. Under one row, such as a budget of packs, dynamic programming over the units of the row
finds it, or, for convex costs and equal prices, the order of marginal costs (``sets/unit_row``).
"""

from dataclasses import dataclass
from typing import ClassVar, cast

import torch
from jaxtyping import Float
from torch import Tensor

from costscape.scenarios import ExpectedCost, Surface
from costscape.sets import Box, ConstraintSet, Whole
from costscape.solvers.box_search import Separable, costs_on_grid
from costscape.solvers.solver import Objective, Solution, Solver

COSTS = 2**22  # of tables in memory at once
MOST_VALUES = 100_000  # of one coordinate


@dataclass(frozen=True)
class WholeSeparable(Solver):
    """Exact decisions for a SeparableTask on a Whole set with at most one coupling row.

    The set is ``Box(..., step=...)``, or ``Whole`` of a Budget, a Simplex or a Polytope whose rows
    are bounds and one other, with prices that are multiples of one unit. The cost may have kinks
    and jumps. ``Separable`` searches the continuous coordinates of a Box. This solver has no
    arguments.

    >>> import costscape as cs
    >>> import torch
    >>> packs = cs.Whole(cs.Budget(total=40.0, dim=2), step=12.0)
    >>> task = cs.SeparableTask(lambda y, a: (y - a).abs(), packs, convex=True)
    >>> g = cs.ExpectedCost(task, cs.Scenarios(torch.ones(1, 1), torch.tensor([[[30.0, 20.0]]])))
    >>> cs.WholeSeparable().minimise(g, packs, 1).action
    tensor([[24., 12.]])
    """

    quick: ClassVar[bool] = True

    def refuses(self, objective: Objective, feasible: ConstraintSet) -> str | None:
        if not isinstance(feasible, Whole):
            return f"needs a Whole set, and this feasible set is a {type(feasible).__name__}"
        if not isinstance(objective, ExpectedCost | Surface) or not objective.separable:
            return "needs a SeparableTask, whose cost is a sum over coordinates"
        if not feasible.by_coordinate and feasible.row is None:
            return (
                "needs a Box, or one row that couples coordinates, with prices that are multiples "
                "of one unit"
            )
        if (values := _values(feasible)) > MOST_VALUES:
            return f"needs at most {MOST_VALUES:,} values of a coordinate, not {values:,}"
        return None

    def coarse(self) -> "WholeSeparable":
        return self

    def _minimise(
        self, objective: Objective, feasible: ConstraintSet, batch: int, start: Tensor | None
    ) -> Solution:
        g, c = cast(Surface, objective), cast(Whole, feasible)
        rows = max(1, COSTS // (_values(c) * c.dim))
        with torch.no_grad():
            if isinstance(g, ExpectedCost):
                g = g.on(g.scenarios.by_coordinate())
            parts = [_solve(g.rows(slice(i, i + rows)), c) for i in range(0, batch, rows)]
            action, cost = (torch.cat(part) for part in zip(*parts, strict=True))
            free = c.step == 0
            if free.any():
                between = Separable().minimise(objective, cast(Box, c.base), batch).action
                action = torch.where(free, between, action)
                cost = g.terms(action[:, None])[:, 0].sum(-1)
        return Solution(action, cost)


def _values(c: Whole) -> int:
    return int(c.size.max())


def _solve(g: Surface, c: Whole) -> tuple[Float[Tensor, "B d"], Float[Tensor, "B"]]:
    size = c.size
    k = torch.arange(int(size.max()), device=size.device)[:, None]
    values = c.actions(k.minimum(size - 1))  # (K, d); shorter coordinates repeat their last value
    table = costs_on_grid(g, values)  # (B, d, K)
    if c.row is None:
        cost, at = table.min(-1)
        at = at.minimum(size - 1)  # of equal costs any may be found, so a repeated one, too
    else:
        at = c.row.allocate(table.double(), convex=g.convex)
        cost = table.gather(-1, at[..., None])[..., 0]
    return c.actions(at), cost.sum(-1)
