"""Exact minimisation, coordinate by coordinate."""

from dataclasses import dataclass, replace
from typing import cast

import torch
from torch import Tensor

from costscape.scenarios import ExpectedCost, Scenarios, Surface
from costscape.sets import Box, ConstraintSet
from costscape.solvers.base import Objective, Solution, Solver
from costscape.solvers.grids.condensed import condensed
from costscape.solvers.grids.dust import without_dust
from costscape.solvers.grids.even import even_grid
from costscape.solvers.grids.modelled import close, modelled_alone
from costscape.solvers.grids.nodes import among_nodes
from costscape.solvers.grids.spots import Spots, halved
from costscape.solvers.grids.table import Table, cost_table, fits, kept_table
from costscape.solvers.grids.valleys import hopeful, local_minima, promising
from costscape.task import SeparableTask

ROWS = 2**22  # costs held at once on the first grid
MANY = 1024  # outcomes, from which on light ones are looked for


@dataclass(frozen=True)
class Separable(Solver):
    """argmin over a Box of g(x, a) = sum_i g_i(x, a_i), each coordinate searched on its own.

    First g_i on an even grid of ``grid`` points, one matrix product when all x share their
    outcomes. When each x has its own, the grid has ``own_grid`` points, and only the ``cells``
    most promising of its cells, the neighbours of local minima first, are cut as finely as the
    other. So is one x alone whose outcomes are new, for they may be its own. Then the best
    ``basins`` points are refined by halving their cell until it is 2^-20 of the interval. Global
    for any f that has no dip narrower than a cell, exact for convex f whatever the grid. Cost:
    grid x S evaluations of f with shared outcomes, on a CPU only when they are new, about
    170 x B x S without, 10 x B x S where f is convex; and for the refinement 20 x B x S for each
    valley there is.

    ``prune``: where there are too many outcomes to tabulate f, few may stand for all
    (``condensed``), on a CPU in single precision and where summand i looks at y_i alone; or the
    lightest, less than ``prune`` in all for one x, may be left out of its search. Its decision
    then costs at most ``prune`` times the spread of f more, and so much at most its cost is off.
    Each x is searched among all outcomes where neither keeps that bound, and with 0.
    """

    grid: int = 1025
    own_grid: int = 65  # when each x has its own outcomes
    cells: int = 6
    basins: int = 3
    halvings: int = 20
    prune: float = 1e-6

    def __post_init__(self) -> None:
        if not 0 <= self.prune < 1:
            raise ValueError(
                f"Separable needs prune, the weight of outcomes that may be left out, to be at "
                f"least 0 and less than 1, but got {self.prune:g}. 0 leaves none out."
            )

    def refuses(self, objective: Objective, feasible: ConstraintSet) -> str | None:
        if not isinstance(feasible, Box):
            return f"needs a Box, and this feasible set is a {type(feasible).__name__}"
        if not isinstance(objective, ExpectedCost | Surface):  # the first is quicker to ask for
            return "needs an ExpectedCost, to know that the cost is a sum over coordinates"
        if not objective.separable:
            return (
                "needs a SeparableTask, whose cost is a sum over coordinates, and this is a Task"
            )
        return None

    def coarse(self) -> "Separable":
        return Separable(
            min(self.grid, 257),
            min(self.own_grid, 17),
            0,
            1,
            min(self.halvings, 8),
            self.prune,
        )

    def _minimise(
        self, objective: Objective, feasible: ConstraintSet, batch: int, start: Tensor | None
    ) -> Solution:
        g, box = cast(Surface, objective), cast(Box, feasible)
        points = self.grid if g.shared else 9 if g.convex else self.own_grid
        # a block of rows at a time keeps the first grid's costs (rows, points, d) small
        rows = max(1, ROWS // (points * feasible.dim))
        with torch.no_grad():
            if isinstance(g, ExpectedCost):
                if batch == 1 and (found := self._alone(g, box, points)) is not None:
                    return Solution(*found)
                g = g.on(g.scenarios.by_coordinate())
            parts = [
                self._rows(g.rows(slice(i, i + rows)), box, points) for i in range(0, batch, rows)
            ]
        return Solution(*(torch.cat(part) for part in zip(*parts, strict=True)))

    def _alone(self, g: ExpectedCost, box: Box, points: int) -> tuple[Tensor, Tensor] | None:
        """For one x, from a table; None where there is none, or it does not serve."""
        if not (fits(g, points) and self._modelled(box, points)):
            return None
        grid = even_grid(box, points)
        table = kept_table(g, grid.actions) or cost_table(g, grid.actions)
        return modelled_alone(g, grid, table, self._basins(g, points), 2.0**-self.halvings)

    def _rows(self, g: Surface, box: Box, points: int) -> tuple[Tensor, Tensor]:
        if not isinstance(g, ExpectedCost):
            return self._search(g, box, points)
        many = g.scenarios.weights.shape[1] >= MANY and not fits(g, points)
        if not (self.prune and many):
            return self._search(g.on(_without_dust(g.scenarios)), box, points)
        if (found := self._condensed(g, box, points)) is None:
            return self._pruned(g, box, points)
        a, cost, sure = found
        if sure.all():
            return a, cost
        rest = (~sure).nonzero()[:, 0]
        some = g if len(rest) == len(a) else g.on(g.scenarios.pick(rest))
        other, more = self._pruned(some, box, points)
        return a.index_put((rest,), other), cost.index_put((rest,), more)

    def _condensed(
        self, g: ExpectedCost, box: Box, points: int
    ) -> tuple[Tensor, Tensor, Tensor] | None:
        """From fewer outcomes, each x to be trusted or not; None where there are no fewer."""
        if not (g.shared and box.lower.device.type == "cpu" and self._modelled(box, points)):
            return None
        grid = even_grid(box, points)
        few = condensed(g, grid.actions)
        if few is None:
            return None
        w, basins, least = g.scenarios.weights, self._basins(g, points), 2.0**-self.halvings
        task = cast(SeparableTask, g.task)
        return among_nodes(task, box, few, w, grid.t, basins, least, self.prune)

    def _pruned(self, g: ExpectedCost, box: Box, points: int) -> tuple[Tensor, Tensor]:
        """Without the lightest outcomes."""
        g = g.on(_without_dust(g.scenarios))
        few = g.scenarios.pruned(self.prune)
        if few is g.scenarios:
            return self._search(g, box, points)
        a, _ = self._search(g.on(few.by_coordinate()), box, points)
        return a, g(a[:, None])[:, 0]

    def _modelled(self, box: Box, points: int) -> bool:
        """Whether the grid and its numbers are such that g is modelled between its points."""
        fine = points >= 5 and 1 / (points - 1) > 2.0**-self.halvings
        return fine and box.lower.dtype == torch.float32

    def _basins(self, g: Surface, points: int) -> int:
        return 1 if g.convex else min(self.basins, points)

    def _search(self, g: Surface, box: Box, points: int) -> tuple[Tensor, Tensor]:
        grid = even_grid(box, points)
        t, actions, lower, width = grid.t, grid.actions, grid.lower, grid.width
        step = 1 / (points - 1)
        basins = self._basins(g, points)
        least = 2.0**-self.halvings
        table = None
        if isinstance(g, ExpectedCost) and fits(g, points):
            table = cost_table(g, actions)
        first = _on_grid(g, actions, table)
        best, k, found = local_minima(first, basins)
        finer = (self.grid - 1) // (points - 1)
        if g.convex or self.cells == 0 or finer < 2:
            t = t[k]
            found &= hopeful(first, best, k)
        else:
            step /= finer
            t = t[promising(first, k, self.cells)]  # the left ends of cells
            inner = step * torch.arange(finer + 1).to(t)
            t = (t[..., None] + inner).flatten(-2).clamp(max=1)
            best, k, found = local_minima(g.terms(lower + t.mT * width).mT, basins)
            t = t.gather(-1, k)
        spots, found = Spots(t.mT, best.mT, step), found.mT
        if table is not None and self._modelled(box, points):
            spots = close(cast(ExpectedCost, g), box, table, first, spots, k.mT, found, least)
        else:
            spots = halved(g, box, spots, found, least)
        return box.project(lower + spots.t[:, 0] * width), spots.cost[:, 0].sum(-1)


def _without_dust(s: Scenarios) -> Scenarios:
    return replace(s, weights=without_dust(s.weights))


def _on_grid(g: Surface, a: Tensor, table: Table | None) -> Tensor:
    """The d summands of g at shared actions (J, d), as (B, d, J)."""
    if table is None:
        return g.terms(a[None]).mT.contiguous()
    assert isinstance(g, ExpectedCost)
    flat = g.scenarios.weights @ table.costs.flatten(0, 1).T
    first: Tensor = flat.unflatten(1, table.costs.shape[:2])
    return first
