"""A table of the cost on a grid of actions, cached from one decision to the next.

    T[i, j, s] = f_i(y_s, a_j),        g_i(x, a_j) = sum_s w_s(x) T[i, j, s]

Where all x share their outcomes, T depends on the task, the outcomes and the grid, and not on x.
With T in memory the costs of a whole grid are one matrix product. T takes J x S x d evaluations
of f once; a cached table takes S to 2 S evaluations, which detect a cost that was changed in
place.
"""

from dataclasses import dataclass
from threading import Lock
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Float
from torch import Tensor

from costscape.expectation import CACHE
from costscape.scenarios import ExpectedCost
from costscape.task import Task

TABLE_BYTES = 2**27  # the largest table that is made
CACHE_BYTES = 2**28  # of all cached tables
FEW_OUTCOMES = 64  # below, each outcome is probed at two actions


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
