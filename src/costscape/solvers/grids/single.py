"""The search for one x alone, from a table of f.

The same steps as for many x: the grid, its valleys, a close look at each. With so few numbers the
time is that of the calls, and numpy's are a tenth of torch's; only f speaks torch.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from costscape.solvers.grids.bends import parts
from costscape.solvers.grids.groups import within
from costscape.solvers.grids.table import FALL, Table
from costscape.tasks import SeparableTask

Array = npt.NDArray[Any]


def search(
    task: SeparableTask, table: Table, w: Tensor, basins: int, least: float
) -> tuple[Tensor, Tensor, Tensor] | None:
    """Shares t (d), the d summands of g there as the model has them, and on the grid.

    None where too many outcomes bend for the model to be of use.
    """
    assert table.bounds is not None
    d, J, _ = table.costs.shape
    first, inside, begin = within(table.costs, table.bounds, table.size, w)
    k = begin + _valleys(first.numpy(), inside.numpy(), basins)  # (n, d)
    near = _Near(task, table, w.numpy(), first.numpy(), begin, k)
    if not near.fine:
        return None
    grid = first.numpy()[np.arange(d), k[0] - begin]
    step = 1 / (J - 1)
    t = (k * step).astype(grid.dtype)
    best = np.full_like(t, np.inf)
    places = np.arange(len(k))[:, None], np.arange(d)[None]
    while step > least:
        n = parts(step / least)
        moves = step / n * np.arange(1 - n, n)[:, None, None]
        tried = np.clip(t + moves.astype(grid.dtype), 0, 1)  # (moves, n, d)
        costs = near(tried)
        i = (costs.argmin(0), *places)
        t, best = tried[i], costs[i]
        step /= n
    lowest = best.argmin(0), np.arange(d)
    t, best = t[lowest], best[lowest]
    return torch.from_numpy(t), torch.from_numpy(best), torch.from_numpy(grid)


def _valleys(g: Array, inside: Array, n: int) -> Array:
    """Points (n or fewer, d): the lowest local minima of each coordinate that have hope.

    The lowest stands for those that a coordinate does not have.
    """
    d, K = g.shape
    k: Array = g.argmin(1)[None]
    if n == 1:
        return k
    valley = inside.copy()
    valley[:, 1:] &= g[:, 1:] < g[:, :-1]
    valley[:, :-1] &= g[:, :-1] <= g[:, 1:]
    i, j = valley.nonzero()
    if len(i) == d:
        return k
    low = g[i, j]
    around = np.clip(j, 2, K - 3)[:, None] + np.arange(-2, 3)
    rise = np.abs(np.diff(g[i[:, None], around])).max(1)
    hope = low - g[i, k[0, i]] <= FALL * rise
    i, j, low = i[hope], j[hope], low[hope]
    order = np.lexsort((low, i))
    i, j = i[order], j[order]
    rank = np.arange(len(i)) - np.searchsorted(i, i)
    some = rank < n
    i, j, rank = i[some], j[some], rank[some]
    k = np.repeat(k, rank.max() + 1, 0)
    k[rank, i] = j
    return k


class _Near:
    """g around n grid points of each coordinate, as in NearGrid, for a task that is ``alone``."""

    def __init__(
        self, task: SeparableTask, table: Table, w: Array, first: Array, begin: int, k: Array
    ) -> None:
        d, J, _ = table.costs.shape
        bends, i = table.bends, np.arange(d)
        self.fine = bool(bends.fine.numpy()[i, k].all())
        count = bends.count.numpy()[i, k]  # (n, d)
        slot = np.arange(count.max())[:, None, None]
        there = slot < count
        s = bends.outcomes.numpy()[np.where(there, bends.start.numpy()[i, k] + slot, 0)]
        weights = np.where(there, w[s], 0)  # (m, n, d)
        centre = np.clip(k, 2, J - 3)
        nodes = centre + np.array([-2, 0, 2])[:, None, None]  # (3, n, d)
        f = table.costs.numpy()[i, nodes[:, None], s]  # (3, m, n, d)
        left, middle, right = first[i, nodes - begin] - (f * weights).sum(1)
        self.q = middle, (right - left) / 2, (right + left) / 2 - middle
        self.task, self.scale = task, (J - 1) / 2
        self.centre = (centre / (J - 1)).astype(w.dtype)
        self.bent = torch.from_numpy(table.values.numpy()[0][s, i])
        self.weights = torch.from_numpy(weights)
        lower, upper = task.feasible.bounds
        self.lower, self.width = lower, upper - lower

    def __call__(self, t: Array) -> Array:
        u = (t - self.centre) * np.asarray(self.scale, t.dtype)
        middle, rise, bend = self.q
        g: Array = middle + u * (rise + u * bend)
        if len(self.bent):
            a = self.lower + torch.from_numpy(t) * self.width
            # f's shape was looked at when the table was made
            f = self.task.f_terms(self.bent, a[:, None])  # (moves, m, n, d)
            g += (f * self.weights).sum(1).numpy()
        return g
