"""The cost on a grid of actions: a cached table, its minima, and minima between its points.

    T[i, j, s] = f_i(y_s, a_j),        g_i(x, a_j) = sum_s w_s(x) T[i, j, s]

Where all x share their outcomes, T depends on the task, the outcomes and the grid, and not on x.
With T in memory the costs of a whole grid are one matrix product. T takes J x S x d evaluations
of f once; a cached table takes S to 2 S evaluations, which detect a cost that was changed in
place.

Minima are those of functions of one variable, of all x and all coordinates at once. Positions are
shares t of an interval, 0 to 1.
"""

from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from costscape.expectation import CACHE
from costscape.scenarios import ExpectedCost
from costscape.task import Task

TABLE_BYTES = 2**27  # the largest table that is made
CACHE_BYTES = 2**28  # of all cached tables
FEW_OUTCOMES = 64  # below, each outcome is probed at two actions
FALL = 4.0  # grid differences by which g may fall below a grid point between the points

Costs = Callable[[Tensor], Tensor]  # positions t (B, n, d) -> summands of g (B, n, d)


@dataclass(frozen=True)
class CostTable:
    """f_i at each action and outcome, and the inputs it was computed from. Do not write to it.

    ``probes`` are one or two actions for each outcome, spread over the grid, and ``probe_costs``
    is f there: the same bits mean that f is still the same function.
    """

    costs: Float[Tensor, "d J S"]
    values: Float[Tensor, "..."]
    actions: Float[Tensor, "J d"]
    probes: Float[Tensor, "R S d"]
    probe_costs: Float[Tensor, "R S d"]

    @property
    def bytes(self) -> int:
        return self.costs.numel() * self.costs.element_size()

    def expected(self, weights: Float[Tensor, "B S"]) -> Float[Tensor, "B d J"]:
        """g_i(x, a_j) for all x, coordinates and actions."""
        d, J, _ = self.costs.shape
        flat = weights @ self.costs.flatten(0, 1).T
        return flat.view(-1, d, J)

    def serves(self, task: Task, values: Tensor, actions: Tensor) -> bool:
        """Whether outcomes, actions and f are still those of the table, number by number."""
        return (
            _equal(self.values, values)
            and _equal(self.actions, actions)
            and _equal(self.probe_costs, task.terms(self.values, self.probes))
        )


# one table for each task, oldest first; it goes with its task
_cached: WeakKeyDictionary[Task, CostTable] = WeakKeyDictionary()
_lock = Lock()


def fits(g: ExpectedCost, points: int) -> bool:
    """Whether g has a table for this many grid points: outcomes are shared, and T is small.

    Only on a CPU: a GPU recomputes T in about the time of the comparison with a cached table.
    """
    y = g.scenarios.values
    size = points * y.shape[1] * g.task.feasible.dim * y.element_size()
    return g.shared and y.device.type == "cpu" and size <= TABLE_BYTES


def cost_table(g: ExpectedCost, actions: Float[Tensor, "J d"]) -> CostTable:
    """Return the table of g's task and outcomes at these actions, from the cache if possible."""
    task, values = g.task, g.scenarios.values
    with _lock:
        known = _cached.get(task)
    if known is not None and known.serves(task, values, actions):
        return known
    values = values.detach().clone()  # a model may overwrite its own in place
    S, J = values.shape[1], len(actions)
    repeats = 1 if S >= FEW_OUTCOMES else 2
    spread = torch.arange(repeats * S).unflatten(0, (repeats, S)) * J // (repeats * S)
    probes = actions[spread].mT.contiguous().mT  # in memory coordinate by coordinate, as outcomes
    costs = _costs(task, values, actions)
    new = CostTable(costs, values, actions, probes, task.terms(values, probes))
    _cache(task, new)
    return new


def _costs(task: Task, values: Tensor, actions: Tensor) -> Float[Tensor, "d J S"]:
    """T, a few actions at a time, so that temporaries of f stay in the processor's cache."""
    (J, d), S = actions.shape, values.shape[1]
    costs = actions.new_empty(d, J, S)
    numbers = 4 * max(d, values[0, 0].numel())
    rows = max(1, CACHE // (numbers * S * actions.element_size()))
    for part, out in zip(actions.split(rows), costs.split(rows, 1), strict=True):
        out.copy_(task.terms(values, part.unsqueeze(1)).permute(2, 0, 1))
    return costs


def _cache(task: Task, new: CostTable) -> None:
    """Cache a table, and drop the oldest ones where all take more than CACHE_BYTES."""
    with _lock:
        _cached.pop(task, None)
        while _cached and sum(t.bytes for t in _cached.values()) + new.bytes > CACHE_BYTES:
            _cached.pop(next(iter(_cached)))
        _cached[task] = new


def _equal(one: Tensor, other: Tensor) -> bool:
    return one.dtype == other.dtype and torch.equal(one, other)


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
