"""One row that all coordinates share, such as a budget: exact for convex separable costs.

    minimise  sum_i g_i(a_i)  over  lower <= a <= upper,  k . a <= h   (or k . a = h)

The Lagrangian of the row with multiplier L is a sum over coordinates again,

    sum_i ( g_i(a_i) + L k_i a_i ) - L h,

so g_i'(a_i) = -L k_i where a_i is between its bounds. Each round evaluates every g_i on a grid in
a window, takes its slope as a broken line through the slopes of the cells, and computes the L for
which k . a = h: k . a is a broken line in L, too, so that one sort finds it. Windows then shrink
to two cells around the answer, or widen where the answer lies on an edge. Rows that have not
settled after some rounds are solved by bisection of L. Costs are computed in double precision,
since slopes are differences.

The action is written as shares t of the intervals, and slopes are divided by the largest one, so
that units of actions and costs do not matter. Weak duality gives ``Solution.gap``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float
from torch import Tensor

from costscape.scenarios import ExpectedCost, Surface
from costscape.sets import Budget, ConstraintSet, Simplex
from costscape.sets.constraint_set import Polyhedral, couples
from costscape.sets.validation import as_numpy
from costscape.solvers.box_search import costs_on_grid
from costscape.solvers.coupled_search import CoupledSearch, in_double
from costscape.solvers.duality_gap import excess
from costscape.solvers.solver import Objective, Solution

FIRST = 17  # points of the first grid, over the whole intervals
ROUNDS = 16  # at most; windows that shrink in every round need five
COSTS = 2**22  # of a grid in memory at once
SINGLE = 2.0**-11  # width of the last cells where f has single precision only
FIRST_EVEN, EVEN = 1e-5, 1e-6  # of the largest slope, added along each interval: where many
# actions are the best, neither rounding nor the batch chooses among them
FLAT = 2e-6  # differences of slopes, as a share of the largest one, that move no window
DOUBT = 1e-5  # of the spread of g: rows with a larger gap are solved again
BISECTIONS = 40  # of the price
AT_EDGE = 0.999  # share of a window beyond which a point counts as on its edge
FASTER, WIDER = 8, 4  # windows shrink so much more, or widen so much
NEAR = (-4.0, -1.0, 0.0, 1.0, 4.0)  # points around the answer for the bound, in last cells
TINY = 1e-300  # keeps quotients finite where a cell has no width

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class SharedCapacity(CoupledSearch):
    """Exact decisions for a convex SeparableTask on a Budget, a Simplex or a one-row Polytope.

    Args:
        grid: int, default 21. Points in a window, odd.
        halvings: int, default 17. Actions are within 2^-halvings of the interval.

    The action is within 2^-halvings of each interval of the best one; where several are best, of
    the one that treats coordinates alike. ``gap`` of the solution bounds how far its cost is
    above the least one. With 100 own scenarios of 7 coordinates, one row takes about 11 ms, and
    1,000 rows take 1.1 ms each.

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
        return SharedCapacity(self.grid, min(self.halvings, 9))

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
        row = shared_row(c)
        with torch.no_grad():
            if isinstance(g, ExpectedCost):
                g = g.on(g.scenarios.by_coordinate())
            rows = max(1, COSTS // (FIRST * c.dim))
            parts = [
                self._search(g.rows(slice(first, first + rows)), c, row)
                for first in range(0, batch, rows)
            ]
        actions, costs, gaps = zip(*parts, strict=True)
        return Solution(torch.cat(actions), torch.cat(costs), torch.cat(gaps))

    def _search(
        self, g: Surface, c: Polyhedral, row: "Row"
    ) -> tuple[Float[Tensor, "B d"], Float[Tensor, "B"], Float[Tensor, "B"]]:
        like = c.bounds[0]
        positions = np.linspace(0, 1, FIRST)
        actions = torch.as_tensor(row.actions(positions[:, None])).to(like)
        first = costs_on_grid(g, actions).double().cpu().numpy()  # (B, d, J)
        costs = Costs(g, row, like, len(first))
        least = max(2.0**-self.halvings, costs.finest)  # width of the last cells
        t, price, _ = fill(np.broadcast_to(positions, first.shape), first, row, FIRST_EVEN)
        half, rows = np.full_like(t, 1 / (FIRST - 1)), np.arange(len(t))
        offsets = np.linspace(-1, 1, self.grid)
        for _ in range(ROUNDS):
            window = (t[rows][..., None] + half[rows][..., None] * offsets).clip(0, 1)
            found, price[rows], pull = fill(window, costs.at(window, rows), row)
            half[rows] = next_half(half[rows], 2 / (len(offsets) - 1), t[rows], found, pull)
            t[rows] = found
            rows = rows[(half[rows] > least).any(1)]
            if len(rows) == 0:
                break
        a, cost, gap = bounded(t, price, costs, c, least)
        spread = (first.max(-1) - first.min(-1)).sum(-1)
        doubtful = gap > DOUBT * spread
        doubtful[rows] = True
        if len(rows := doubtful.nonzero()[0]):
            t[rows], price[rows] = bisect(lambda t: costs.at(t, rows), row, len(rows), least)
            a, cost, gap = bounded(t, price, costs, c, least)
        return a, torch.as_tensor(cost).to(like), torch.as_tensor(gap).to(like)


@dataclass(frozen=True)
class Row:
    """The row as use . t <= room in shares t of the intervals, a = origin + t step.

    Coordinates with a negative coefficient are turned round, so that no use is negative.
    """

    origin: Array
    step: Array
    use: Array
    room: float
    equal: bool

    def actions(self, t: Array) -> Array:
        return self.origin + t * self.step

    def shares(self, a: Array) -> Array:
        share: Array = (a - self.origin) / np.where(self.step == 0, 1.0, self.step)
        return share.clip(0.0, 1.0)


def shared_row(feasible: Polyhedral) -> Row:
    """The one row of the set that couples coordinates, in double precision."""
    if isinstance(feasible, Budget | Simplex):  # their row is known, which saves time
        k, h = np.ones(feasible.dim), float(feasible.total)
        equal = isinstance(feasible, Simplex)
    else:
        rows = feasible.rows()
        equal = bool(couples(rows.A).any())
        left, right = (rows.A, rows.b) if equal else (rows.G, rows.h)
        where = couples(left)
        k, h = as_numpy(left[where][0].double()), float(right[where][0])
    lower, upper = (as_numpy(end.double()) for end in feasible.bounds)
    origin = np.where(k < 0, upper, lower)
    step = np.where(k < 0, lower - upper, upper - lower)
    use, room = k * step, h - float(k @ origin)
    total = max(float(use.sum()), TINY)
    return Row(origin, step, use / total, room / total, equal)


class Costs:
    """g_i at shares t of the intervals, in double precision where f can be computed in it."""

    def __init__(self, g: Surface, row: Row, like: Tensor, batch: int) -> None:
        self.g, self.row, self.like, self.batch = in_double(g), row, like, batch
        self.single = self.g is g and like.dtype == torch.float32
        self.finest = SINGLE if self.single else 0.0

    def at(self, t: Array, rows: npt.NDArray[np.int64]) -> Array:
        """The costs (B, d, J) of some x, by number, at their shares (B, d, J)."""
        a = torch.as_tensor(self.row.actions(t.swapaxes(1, 2)), device=self.like.device)
        a = a.to(self.like) if self.single else a
        g = self.g
        if isinstance(g, ExpectedCost):
            if len(rows) < len(g):
                g = g.on(g.scenarios.rows(torch.as_tensor(rows, device=self.like.device)))
            return as_numpy(g.search_terms(a).mT.double())
        every = a[:1].repeat(self.batch, 1, 1)  # other surfaces have no rows by number
        every[rows] = a
        return as_numpy(g.terms(every)[rows].mT.double())


def bounded(
    t: Array, price: Array, costs: Costs, c: Polyhedral, least: float
) -> tuple[Tensor, Array, Array]:
    """The actions of shares t, their costs, and how far these are above the least ones at most."""
    row = costs.row
    a = c.project(torch.as_tensor(row.actions(t)).to(c.bounds[0]))
    t = row.shares(as_numpy(a.double()))
    near = (t[..., None] + least * np.array(NEAR)).clip(0, 1)
    points = np.pad(near, ((0, 0), (0, 0), (1, 1)))  # both ends of the intervals, too
    points[..., -1] = 1.0
    at = costs.at(points, np.arange(len(t)))
    cost = at[..., 1 + NEAR.index(0.0)]
    priced = price[:, None] * row.use
    gap = excess(points, at + priced[..., None] * points, cost + priced * t).sum(-1)
    return a, cost.sum(-1), (gap + price * (row.room - t @ row.use)).clip(0.0)


def next_half(half: Array, cell: float, before: Array, now: Array, pull: Array) -> Array:
    """Half widths of the next windows: a cell of this one or less, or wider beyond an edge.

    Coordinates move together, so where one is on an edge, no window of that x shrinks. Where the
    answer moved little, the slopes are straight and the next window is narrower still.

    Args:
        half: (B, d), half widths of these windows.
        cell: width of a cell, as a share of half.
        before: (B, d), the middles of the windows.
        now: (B, d), the answer in them.
        pull: (B, d), how far slopes are from their price at the better end of the window.
    """
    moved = np.abs(now - before)
    edge = (moved >= AT_EDGE * half) & (now > 0) & (now < 1) & (pull > FLAT)
    narrow = (4 * moved.max(1, keepdims=True)).clip(cell / FASTER * half, cell * half)
    return np.where(edge.any(1, keepdims=True), np.where(edge, WIDER * half, half), narrow)


def bisect(
    costs: Callable[[Array], Array], row: Row, batch: int, least: float
) -> tuple[Array, Array]:
    """Shares and prices by bisection of the price; slow, and sure for every convex cost.

    Of the two answers around the capacity, both minimise the same Lagrangian at the end, and so
    does the point between them that uses the capacity exactly.
    """
    ends = costs(np.broadcast_to(np.linspace(0, 1, FIRST), (batch, len(row.use), FIRST)))
    most = np.abs(np.diff(ends)).max((1, 2)) * (FIRST - 1) / row.use[row.use > 0].min()
    low, high = (-most if row.equal else np.zeros_like(most)), most
    over, under = _cheapest(costs, low, row, least), _cheapest(costs, high, row, least)
    for _ in range(BISECTIONS):
        price = (low + high) / 2
        t = _cheapest(costs, price, row, least)
        more = (t @ row.use > row.room).reshape(-1, 1)
        over, under = np.where(more, t, over), np.where(more, under, t)
        low, high = np.where(more[:, 0], price, low), np.where(more[:, 0], high, price)
    used, rest = over @ row.use, under @ row.use
    share = ((row.room - rest) / (used - rest).clip(TINY)).clip(0, 1)
    return under + share[:, None] * (over - under), high


def _cheapest(costs: Callable[[Array], Array], price: Array, row: Row, least: float) -> Array:
    """argmin over [0, 1] of g_i(t) + price use_i t, for each coordinate."""
    t, half = np.full((len(price), len(row.use)), 0.5), 0.5
    while half > least / 2:
        points = (t[..., None] + half * np.linspace(-1, 1, 9)).clip(0, 1)
        best = (costs(points) + (price[:, None] * row.use)[..., None] * points).argmin(-1)
        t, half = np.take_along_axis(points, best[..., None], -1)[..., 0], half / 4
    return t


def fill(t: Array, g: Array, row: Row, even: float = EVEN) -> tuple[Array, Array, Array]:
    """The best shares in a window, for broken lines as slopes, and the price of the row.

    numpy, whose calls take a tenth of the time of torch's on the few numbers of one x.

    Args:
        t: (B, d, J), points of the window of each coordinate, which do not decrease along J.
        g: (B, d, J), costs there.
        row: the row. The shares meet it where the window allows it.
        even: added to the slopes along each interval.

    Returns shares (B, d), prices (B,), and how far each slope is from its price (B, d).
    """
    use, room = row.use, row.room
    width = np.diff(t)
    some = width > 0
    slope = np.diff(g) / np.where(some, width, 1.0)
    # cells cut off by a bound take a neighbour's slope; rounding may break the order of slopes
    if not some.all():
        first = np.take_along_axis(slope, some.argmax(-1)[..., None], -1)
        slope = np.where(some, slope, np.where(np.cumsum(some, -1) > 0, -np.inf, first))
    slope = np.maximum.accumulate(slope, -1)
    unit = np.abs(slope).max((1, 2)).clip(TINY)
    rate = slope / (unit[:, None, None] * np.where(use > 0, use, 1.0)[:, None])
    # nodes: the middles of cells and both ends of the window
    x = np.empty((*t.shape[:2], t.shape[2] + 1))
    x[..., 0], x[..., -1], x[..., 1:-1] = t[..., 0], t[..., -1], (t[..., 1:] + t[..., :-1]) / 2
    at = np.empty_like(x)
    at[..., 1:-1] = rate
    at[..., 0] = 1.5 * rate[..., 0] - 0.5 * rate[..., 1]
    at[..., -1] = 1.5 * rate[..., -1] - 0.5 * rate[..., -2]
    at += even * x
    span, rise = np.diff(x), np.diff(at).clip(TINY)
    level = _level(at, use[:, None] * span / rise, room - x[..., 0] @ use)
    if not row.equal:
        level = np.minimum(level, 0.0)
    own = np.where(use > 0, level[:, None], 0.0)  # what uses nothing has no price
    share = ((own[..., None] - at[..., :-1]) / rise).clip(0.0, 1.0)
    found = x[..., 0] + (share * span).sum(-1)
    pull = np.maximum(at[..., 0] - own, own - at[..., -1])
    unmet = np.abs(found @ use - room) if row.equal else (found @ use - room).clip(0.0)
    return found, -level * unit, np.maximum(pull, unmet[:, None])


def _level(rate: Array, density: Array, room: Array) -> Array:
    """The level at which cells of these densities, filled from their rates on, take the room."""
    change = np.zeros_like(rate)
    change[..., :-1] = density
    change[..., 1:] -= density
    rows = np.arange(len(rate))
    rate, change = rate.reshape(len(rate), -1), change.reshape(len(rate), -1)
    order = rate.argsort(1)
    rate = np.take_along_axis(rate, order, 1)
    density = np.take_along_axis(change, order, 1).cumsum(1)[:, :-1]
    taken = (density * np.diff(rate)).cumsum(1)
    i = (taken < room[:, None]).sum(1).clip(max=taken.shape[1] - 1)
    low, high = rate[rows, i], rate[rows, i + 1]
    level: Array = high - (taken[rows, i] - room) / density[rows, i].clip(1e-30)
    return level.clip(low, high)
