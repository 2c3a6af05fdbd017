"""Exact minimisation, coordinate by coordinate."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import cast

import torch
from torch import Tensor

from costscape.scenarios import ExpectedCost, Scenarios, Surface
from costscape.sets import Box, ConstraintSet
from costscape.solvers.base import Objective, Solution, Solver
from costscape.solvers.bends import near_grid, parts
from costscape.solvers.single import search
from costscape.solvers.table import FALL, Table, cost_table, fits, kept_table, probe
from costscape.tasks import SeparableTask

ROWS = 2**22  # costs held at once on the first grid
FAR = 2.0**-18  # of the interval: below, only the best basin is refined
SLACK = 32  # roundings between two ways to compute g
DUST = 1e-30  # a weight beyond the last digit of any sum of costs
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

    ``prune``: where f cannot be tabulated, outcomes that for one x weigh less than ``prune`` in
    all may be left out of its search; its decision then costs at most ``prune`` times the spread
    of f more. The cost told is that of all outcomes. 0 leaves none out.
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
        if not isinstance(objective, Surface):
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
        g = cast(Surface, objective)
        points = self.grid if g.shared else 9 if g.convex else self.own_grid
        # a block of rows at a time keeps the first grid's costs (rows, points, d) small
        rows = max(1, ROWS // (points * feasible.dim))
        with torch.no_grad():
            if isinstance(g, ExpectedCost):
                g = g.on(_without_dust(g.scenarios).by_coordinate())
            parts = [
                self._rows(g.rows(slice(i, i + rows)), cast(Box, feasible), points)
                for i in range(0, batch, rows)
            ]
        return Solution(*(torch.cat(part) for part in zip(*parts, strict=True)))

    def _rows(self, g: Surface, box: Box, points: int) -> tuple[Tensor, Tensor]:
        if self.prune and isinstance(g, ExpectedCost) and not fits(g, points):
            s = g.scenarios
            few = s.pruned(self.prune) if s.weights.shape[1] >= MANY else s
            if few is not s:
                a, _ = self._search(g.on(few.by_coordinate()), box, points)
                return a, g(a[:, None])[:, 0]
        return self._search(g, box, points)

    def _search(self, g: Surface, box: Box, points: int) -> tuple[Tensor, Tensor]:
        lower, width = box.lower, box.upper - box.lower
        t = torch.linspace(0, 1, points, dtype=lower.dtype, device=lower.device)
        step = 1 / (points - 1)
        actions = lower + t[:, None] * width
        basins = 1 if g.convex else min(self.basins, points)
        least = 2.0**-self.halvings
        modelled = points >= 5 and step > least and t.dtype == torch.float32
        table = None
        if isinstance(g, ExpectedCost) and fits(g, points):
            if modelled and len(g) == 1:
                table = kept_table(g, actions) or cost_table(g, actions)
                single = _single(g, box, table, basins, least)
                if single is not None:
                    return single
            table = cost_table(g, actions)
        first = _on_grid(g, actions, table)
        best, k, found = _local_minima(first, basins)
        finer = (self.grid - 1) // (points - 1)
        if g.convex or self.cells == 0 or finer < 2:
            t = t[k]
            found &= _hopeful(first, best, k)
        else:
            step /= finer
            t = t[_promising(first, k, self.cells)]  # the left ends of cells
            inner = step * torch.arange(finer + 1).to(t)
            t = (t[..., None] + inner).flatten(-2).clamp(max=1)
            best, k, found = _local_minima(g.terms(lower + t.mT * width).mT, basins)
            t = t.gather(-1, k)
        spots = _Spots(t.mT, best.mT, step)
        if table is not None and modelled:
            assert isinstance(g, ExpectedCost)
            spots = _modelled(g, box, table, first, spots, k.mT, found.mT, least)
        else:
            spots = _plain(g, box, spots, found.mT, least)
        return box.project(lower + spots.t[:, 0] * width), spots.cost[:, 0].sum(-1)


@dataclass(frozen=True)
class _Spots:
    """n points for each x and coordinate, as shares t of the interval, and the cells' width."""

    t: Tensor  # (B, n, d)
    cost: Tensor  # (B, n, d)
    step: float

    def best(self) -> "_Spots":
        cost, k = self.cost.min(1, keepdim=True)
        return _Spots(self.t.gather(1, k), cost, self.step)

    def pick(self, b: Tensor, n: Tensor) -> "_Spots":
        return _Spots(self.t[b, n][:, None], self.cost[b, n][:, None], self.step)

    def put(self, b: Tensor, n: Tensor, part: "_Spots") -> "_Spots":
        """The same with others in the places b, n."""
        at = (b, n)
        t, cost = (
            old.index_put(at, new[:, 0])
            for old, new in zip((self.t, self.cost), (part.t, part.cost), strict=True)
        )
        return _Spots(t, cost, part.step)


def _without_dust(s: Scenarios) -> Scenarios:
    """No weights so small that processors compute with them ten times as slowly."""
    return replace(s, weights=torch.nn.functional.threshold(s.weights, DUST, 0.0))


def _on_grid(g: Surface, a: Tensor, table: Table | None) -> Tensor:
    """The d summands of g at shared actions (J, d), as (B, d, J)."""
    if table is None:
        return g.terms(a[None]).mT.contiguous()
    assert isinstance(g, ExpectedCost)
    flat = g.scenarios.weights @ table.costs.flatten(0, 1).T
    first: Tensor = flat.unflatten(1, table.costs.shape[:2])
    return first


def _in_shares(g: Surface, box: Box) -> Callable[[Tensor], Tensor]:
    width = box.upper - box.lower
    return lambda t: g.terms(box.lower + t * width)


def _cut(
    cost: Callable[[Tensor], Tensor],
    spots: _Spots,
    least: float,
    into: Callable[[float], int] = lambda ratio: 2,
) -> _Spots:
    """Each point moved to the best of the points that cut the cells beside it, again and again."""
    t, best, step = spots.t, spots.cost, spots.step
    while step > least:
        parts = into(step / least)
        moves = torch.arange(1 - parts, parts, device=t.device).to(t) / parts
        moves = moves[moves != 0][:, None, None]
        tried = (t[:, None] + step * moves).clamp(0, 1)  # (B, moves, n, d)
        costs = cost(tried.flatten(1, 2)).unflatten(1, tried.shape[1:3])
        best, i = torch.cat([best[:, None], costs], 1).min(1)
        t = torch.cat([t[:, None], tried], 1).gather(1, i[:, None])[:, 0]
        step /= parts
    return _Spots(t, best, step)


def _each(g: Surface, box: Box, spots: _Spots, found: Tensor, least: float) -> _Spots:
    """The same, without the trouble for the valleys that an x does not have."""
    if not isinstance(g, ExpectedCost):
        return _cut(_in_shares(g, box), spots, least)
    b, n = _places(found)
    if len(b) > len(found):
        g = g.on(g.scenarios.pick(b).by_coordinate())
    return spots.put(b, n, _cut(_in_shares(g, box), spots.pick(b, n), least))


def _modelled(
    g: ExpectedCost,
    box: Box,
    table: Table,
    first: Tensor,
    spots: _Spots,
    k: Tensor,
    found: Tensor,
    least: float,
) -> _Spots:
    """The best near grid points k, where f is evaluated at few outcomes, and at all in the end.

    An x whose best then does not cost what it should is done again in the plain way.
    """
    assert isinstance(g.task, SeparableTask)
    b, n = _places(found)
    w = g.scenarios.weights
    if len(b) > len(found):
        first, w = first[b], w[b]
    near, fine = near_grid(
        g.task, table.costs, table.values, table.bends, table.alone, first, w, k[b, n]
    )
    nowhere = _Spots(spots.t, torch.full_like(spots.cost, torch.inf), spots.step)
    best = nowhere.put(b, n, _cut(near, spots.pick(b, n), least, parts)).best()
    cost, grid = _in_shares(g, box)(best.t), spots.cost[:, :1]
    good = _good(cost, best.cost, grid, table.size)[:, 0]
    good[b[~fine]] = False
    best = _Spots(best.t, cost, best.step)
    if good.all():
        return best
    rest = (~good).nonzero()[:, 0]
    again = _Spots(spots.t[rest], spots.cost[rest], spots.step)
    again = _plain(g.on(g.scenarios.pick(rest)), box, again, found[rest], least)
    return best.put(rest, torch.zeros_like(rest), again)


def _single(
    g: ExpectedCost, box: Box, table: Table, basins: int, least: float
) -> tuple[Tensor, Tensor] | None:
    """_modelled for one x alone; None if the table is not made for it, or the check fails."""
    task = cast(SeparableTask, g.task)
    if not table.simple:
        return None
    w = g.scenarios.weights[0]
    found = search(task, table, w, basins, least)
    if found is None:
        return None
    t, best, grid = found
    a = box.project(box.lower + t * (box.upper - box.lower))[None]
    told = probe(task, g.scenarios.values, table.at, a)
    cost = w @ told[2]
    if not (_good(cost, best, grid, table.size) and torch.equal(told[:2], table.told)):
        return None
    return a, cost.sum(-1, keepdim=True)


def _good(cost: Tensor, best: Tensor, grid: Tensor, size: Tensor) -> Tensor:
    """Whether what was found costs what it should, and no more than the grid's best."""
    slack = SLACK * torch.finfo(cost.dtype).eps * (size + grid.abs())
    return (((cost - best).abs() <= slack) & (cost <= grid + slack)).all(-1)


def _plain(g: Surface, box: Box, spots: _Spots, found: Tensor, least: float) -> _Spots:
    """The best spot of each x and coordinate, by halving their cells."""
    if found.shape[1] > 1:
        spots = _each(g, box, spots, found, max(least, FAR)).best()
    return _cut(_in_shares(g, box), spots, least).best()


def _places(found: Tensor) -> tuple[Tensor, Tensor]:
    """Which x has a valley of which number, in some coordinate; each has a first."""
    some = found.any(-1)  # (B, n)
    some[:, 0] = True
    b, n = some.nonzero(as_tuple=True)
    return b, n


def _local_minima(cost: Tensor, n: int) -> tuple[Tensor, Tensor, Tensor]:
    """The n lowest local minima along the last axis, a plateau being one, and which there are.

    If there are fewer than n, the rest are copies of the lowest.
    """
    if n == 1:
        best, k = cost.min(-1, keepdim=True)
        return best, k, torch.ones_like(k, dtype=torch.bool)
    valley = torch.ones_like(cost, dtype=torch.bool)
    valley[..., 1:] = cost[..., 1:] < cost[..., :-1]
    valley[..., :-1] &= cost[..., :-1] <= cost[..., 1:]
    best, k = cost.where(valley, torch.inf).topk(n, -1, largest=False)
    found = ~best.isinf()
    return best.where(found, best[..., :1]), k.where(found, k[..., :1]), found


def _hopeful(cost: Tensor, best: Tensor, k: Tensor) -> Tensor:
    """Which minima may, between the grid's points, fall below the lowest.

    Where g is convex within two cells of k it falls there by no more than the largest of its
    four differences; FALL times that is taken.
    """
    if k.shape[-1] == 1 or cost.shape[-1] < 5:
        return torch.ones_like(k, dtype=torch.bool)
    middle = k.clamp(2, cost.shape[-1] - 3)
    around = torch.stack([cost.gather(-1, middle + i) for i in range(-2, 3)])
    rise = around.diff(dim=0).abs().amax(0)
    return best - best[..., :1] <= FALL * rise


def _promising(cost: Tensor, minima: Tensor, n: int) -> Tensor:
    """The n cells to look into, in order: those beside the minima, then those with low ends."""
    low = torch.minimum(cost[..., :-1], cost[..., 1:])
    beside = torch.cat([minima - 1, minima], -1).clamp(0, low.shape[-1] - 1)
    low = low.scatter(-1, beside, -torch.inf)
    return low.topk(min(n, low.shape[-1]), -1, largest=False).indices.sort(-1).values
