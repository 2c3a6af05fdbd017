"""Box search: the global minimum over a Box of an expected cost that is a sum over coordinates.

    minimise  g(x, a) = sum_i g_i(x, a_i)  over  lower_i <= a_i <= upper_i

Each coordinate is a search in one variable. All x and all coordinates are searched at once, in
four steps:

1. Grid. Evaluate g_i on an even grid: a fine one where all x share their outcomes (f is then
   evaluated once for all x, and its table is cached), a coarse one where each x has its own.
2. Cells. After a coarse grid, cut its most promising cells as finely as the fine grid.
3. Minima. Keep the few lowest local minima of the grid.
4. Halving. Halve the cells beside each minimum, keeping the best point, until they are
   2^-20 of the interval wide. Return the best point. (With shared outcomes and f that is not
   convex, cells are cut into four.)

Guarantees. For convex f the action is within 2^-halvings of the interval of the minimum, as far
as the precision resolves g. For other f the same holds if no dip of g_i that holds the minimum is
narrower than a cell of the fine grid. The answer of one x does not depend on the other x of the
batch, except for the rounding of matrix products of another size.

Cost in evaluations of f, for B rows, S outcomes and d coordinates, each x d: with shared outcomes
1025 x S for a new table, S for a cached one, then 20 to 30 x B x S for each local minimum; with
own outcomes 167 x B x S, then 20 x B x S for each local minimum, or 43 x B x S in all where f is
convex.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, cast

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from costscape.scenarios import ExpectedCost, Surface
from costscape.sets import Box, ConstraintSet
from costscape.solvers.grid_search import (
    Costs,
    Points,
    cost_table,
    cut_cells,
    fits,
    local_minima,
    may_be_lowest,
    promising_cells,
)
from costscape.solvers.solver import Objective, Solution, Solver
from costscape.training.settings import AtLeast2, BelowOne, Count, Natural

CONVEX_GRID = 9  # points where each x has its own outcomes and f is convex
GRID_COSTS = 2**22  # costs of the first grid in memory at once
MANY_OUTCOMES = 1024  # from which on light outcomes are left out
SHARED_PARTS = 4  # of a cell: shared outcomes often make several dips in one
NEGLIGIBLE = 1e-30  # weights below are no part of any sum, and processors are slow with them
ALL_MINIMA = 2.0**-18  # cell width down to which all minima are refined; below, the best one


@dataclass(frozen=True)
class Separable(Solver):
    """Global search for a SeparableTask on a Box: a grid, then halving, for each coordinate.

    Args:
        grid: int, default 1025. Points of the grid where all x share their outcomes.
        own_grid: int, default 65. Points of the first grid where each x has its own outcomes.
        cells: int, default 6. Cells of that first grid that are cut as finely as ``grid``; 0
            refines the minima of the first grid alone.
        basins: int, default 3. Local minima that are refined; convex f has one.
        halvings: int, default 20. The search ends when cells are 2^-halvings of the interval.
        prune: float, 0 <= prune < 1, default 1e-6. From 1024 outcomes on, where the table of f
            would be too large, the search leaves out the lightest outcomes, at most ``prune`` of
            the weight of each x. The action then costs at most ``prune`` times the spread of f
            more than the best one. The cost that is returned is that of all outcomes.

    >>> import costscape as cs
    >>> import torch
    >>> task = cs.SeparableTask(lambda y, a: (y - a) ** 2, cs.Box(0.0, 1.0, dim=2), convex=True)
    >>> g = cs.ExpectedCost(task, cs.Scenarios(torch.ones(1, 1), torch.tensor([[[0.25, 3.0]]])))
    >>> cs.Separable().minimise(g, task.feasible, 1).action.round(decimals=3)
    tensor([[0.2500, 1.0000]])
    """

    quick: ClassVar[bool] = True

    grid: AtLeast2 = 1025
    own_grid: AtLeast2 = 65
    cells: Natural = 6
    basins: Count = 3
    halvings: Natural = 20
    prune: BelowOne = 1e-6

    def refuses(self, objective: Objective, feasible: ConstraintSet) -> str | None:
        if not isinstance(feasible, Box):
            return f"needs a Box, and this feasible set is a {type(feasible).__name__}"
        if not isinstance(objective, ExpectedCost | Surface):  # the first is quicker to ask for
            return "needs an ExpectedCost, to know that the cost is a sum over coordinates"
        if not objective.separable:
            return (
                "needs a SeparableTask, whose cost is a sum over coordinates, and this is a Task "
                "of several"
            )
        return None

    def coarse(self) -> "Separable":
        return Separable(
            grid=min(self.grid, 257),
            own_grid=min(self.own_grid, 17),
            cells=0,
            basins=1,
            halvings=min(self.halvings, 8),
            prune=self.prune,
        )

    def _minimise(
        self, objective: Objective, feasible: ConstraintSet, batch: int, start: Tensor | None
    ) -> Solution:
        g, box = cast(Surface, objective), cast(Box, feasible)
        points = self.grid if g.shared else CONVEX_GRID if g.convex else self.own_grid
        rows = max(1, GRID_COSTS // (points * box.dim))  # bounds the memory of the first grid
        with torch.no_grad():
            if isinstance(g, ExpectedCost):
                g = g.on(g.scenarios.by_coordinate())
            parts = [
                self._solve_rows(g.rows(slice(first, first + rows)), box, points)
                for first in range(0, batch, rows)
            ]
        actions, costs = zip(*parts, strict=True)
        return Solution(torch.cat(actions), torch.cat(costs))

    def _solve_rows(
        self, g: Surface, box: Box, points: int
    ) -> tuple[Float[Tensor, "B d"], Float[Tensor, "B"]]:
        """Search for some of the x, without outcomes of negligible weight."""
        if not isinstance(g, ExpectedCost):
            return self._search(g, box, points)
        scenarios = g.scenarios
        weights = torch.nn.functional.threshold(scenarios.weights, NEGLIGIBLE, 0.0)
        g = g.on(replace(scenarios, weights=weights))
        if not self.prune or weights.shape[1] < MANY_OUTCOMES or fits(g, points):
            return self._search(g, box, points)
        heavy = g.scenarios.pruned(self.prune)
        if heavy is g.scenarios:
            return self._search(g, box, points)
        action, _ = self._search(g.on(heavy.by_coordinate()), box, points)
        return action, g(action[:, None])[:, 0]

    def _search(
        self, g: Surface, box: Box, points: int
    ) -> tuple[Float[Tensor, "B d"], Float[Tensor, "B"]]:
        """The four steps of the search."""
        basins = 1 if g.convex else min(self.basins, points)
        positions = torch.linspace(0, 1, points, dtype=box.lower.dtype, device=box.lower.device)
        step = 1 / (points - 1)

        grid_costs = costs_on_grid(g, _actions(positions[:, None], box), self.cells > 0)
        minima = local_minima(grid_costs, basins)
        finer = (self.grid - 1) // (points - 1)  # cells of the fine grid in one of this grid
        if g.convex or self.cells == 0 or finer < 2:
            t = positions[minima.index]
            exists = minima.exists & may_be_lowest(grid_costs, minima)
        else:
            step /= finer
            left_ends = positions[promising_cells(grid_costs, minima.index, self.cells)]
            inner = step * torch.arange(finer + 1).to(left_ends)
            fine = (left_ends[..., None] + inner).flatten(-2).clamp(max=1)  # (B, d, J)
            minima = local_minima(_costs_at(g, box)(fine.mT).mT, basins)
            t, exists = fine.gather(-1, minima.index), minima.exists

        best = self._refine(g, box, Points(t.mT, minima.cost.mT, step), exists.mT)
        return box.project(_actions(best.t[:, 0], box)), best.cost[:, 0].sum(-1)

    def _refine(
        self, g: Surface, box: Box, points: Points, exists: Bool[Tensor, "B n d"]
    ) -> Points:
        """Narrow the cells beside each minimum, then only those beside the best one."""
        least = 2.0**-self.halvings
        parts = SHARED_PARTS if g.shared and not g.convex else 2
        if exists.shape[1] > 1:
            points = _cut_existing(g, box, points, exists, max(least, ALL_MINIMA), parts).lowest()
        return cut_cells(_costs_at(g, box, self.cells > 0), points, least, parts)


def _cut_existing(
    g: Surface, box: Box, points: Points, exists: Bool[Tensor, "B n d"], least: float, parts: int
) -> Points:
    """Cut cells, and evaluate f only for minima that an x has in some coordinate."""
    if not isinstance(g, ExpectedCost):
        return cut_cells(_costs_at(g, box), points, least, parts)
    some = exists.any(-1)
    some[:, 0] = True  # each x has a lowest minimum
    x, which = where = some.nonzero(as_tuple=True)
    if len(x) > len(some):
        g = g.on(g.scenarios.rows(x).by_coordinate())  # one row for each minimum
    rows = Points(points.t[x, which][:, None], points.cost[x, which][:, None], points.step)
    found = cut_cells(_costs_at(g, box), rows, least, parts)
    t = points.t.index_put(where, found.t[:, 0])
    return Points(t, points.cost.index_put(where, found.cost[:, 0]), found.step)


def _actions(t: Float[Tensor, "*batch #d"], box: Box) -> Float[Tensor, "*batch d"]:
    """The actions at shares t of the box."""
    return box.lower + t * (box.upper - box.lower)


def _costs_at(g: Surface, box: Box, exact: bool = True) -> Costs:
    terms = _terms(g, exact)
    return lambda t: terms(_actions(t, box))


def _terms(g: Surface, exact: bool) -> Costs:
    """The summands of g; a coarse search rounds as ever, so that fits stay the same bits."""
    return g.search_terms if exact and isinstance(g, ExpectedCost) else g.terms


def costs_on_grid(
    g: Surface, actions: Float[Tensor, "J d"], exact: bool = True
) -> Float[Tensor, "B d J"]:
    """The summands of g at actions shared by all x, from a table of f where one fits.

    ``exact`` is False where a fit scores its epochs, see ``_terms``.
    """
    if isinstance(g, ExpectedCost) and fits(g, len(actions)):
        return cost_table(g, actions).expected(g.scenarios.weights)
    return _terms(g, exact)(actions[None]).mT.contiguous()
