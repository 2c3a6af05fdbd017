"""The search for one x alone, from a table of f.

The same steps as for many x: the grid, its valleys, a close look at each. With so few numbers the
time is that of the calls, and numpy's are a tenth of torch's; only f speaks torch.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from costscape.solvers.grids.bends import parts
from costscape.solvers.grids.even import Even
from costscape.solvers.grids.groups import within
from costscape.solvers.grids.table import FALL, Table
from costscape.tasks import SeparableTask

Array = npt.NDArray[Any]

_AROUND = np.arange(-2, 3)[:, None, None]
_NODES = np.array([-2, 0, 2])[:, None, None]


def search(
    task: SeparableTask, grid: Even, table: Table, w: Tensor, basins: int, least: float
) -> tuple[Array, Array, Array] | None:
    """Shares t (d), the d summands of g there as the model has them, and on the grid.

    None where too many outcomes bend for the model to be of use.
    """
    assert table.bounds is not None
    d, J, _ = table.costs.shape
    part, inside, begin = within(table.costs, table.bounds, table.size, w)
    first, i = part.numpy(), np.arange(d)
    k = _valleys(first, inside.numpy(), basins)  # (n, d)
    near = _near(task, grid, table, w.numpy(), first, begin, k)
    if near is None:
        return None
    step = 1 / (J - 1)
    t: Array = ((k + begin) * step).astype(first.dtype)
    best = np.full_like(t, np.inf)
    while step > least:
        n = parts(step / least)
        step /= n
        moves = (step * np.arange(1 - n, n)).astype(t.dtype)
        tried = (t + moves[:, None, None]).clip(0, 1)  # (moves, n, d)
        costs = near(tried)
        j, rows = costs.argmin(0), np.arange(len(t))[:, None]
        t, best = tried[j, rows, i], costs[j, rows, i]
    b = best.argmin(0)
    return t[b, i], best[b, i], first[i, k[0]]


def _valleys(g: Array, inside: Array, n: int) -> Array:
    """Points (n or fewer, d): the n lowest local minima of each coordinate, if they have hope.

    The lowest stands for those that a coordinate does not have.
    """
    k: Array = g.argmin(1)
    if n == 1:
        return k[None]
    i = np.arange(len(g))
    valley, falls = inside.copy(), g[:, 1:] < g[:, :-1]
    valley[:, 1:] &= falls
    valley[:, :-1] &= ~falls
    rest = np.where(valley, g, np.inf)
    found = [k]
    for _ in range(n - 1):
        rest[i, found[-1]] = np.inf
        next_ = rest.argmin(1)
        found.append(np.where(rest[i, next_] < np.inf, next_, k))
    more = np.array(found[1:])
    around = g[i, more.clip(2, g.shape[1] - 3) + _AROUND]  # (5, n - 1, d)
    more = np.where(_may_fall(g[i, more] - g[i, k], around), more, k)
    return np.concatenate([k[None], more[(more != k).any(1)]])


def _may_fall(above: Array, around: Array) -> Array:
    """Whether g may fall by so much between points like these five, as in ``hopeful``."""
    fall: Array = above <= FALL * np.abs(around[1:] - around[:-1]).max(0)
    return fall


@dataclass(frozen=True)
class _Near:
    """g around n points of each coordinate, as in NearGrid, for a task that is ``alone``."""

    task: SeparableTask
    lower: Array
    width: Array
    bent: Array  # outcomes (m, n, d)
    weights: Array
    q: Array  # (3, n, d)
    centre: Array  # (n, d)
    scale: float

    def __call__(self, t: Array) -> Array:
        u = (t - self.centre) * t.dtype.type(self.scale)
        middle, rise, bend = self.q
        g: Array = middle + u * (rise + u * bend)
        if len(self.bent):
            a = torch.from_numpy(self.lower + t * self.width)
            f = self.task.f_terms(torch.from_numpy(self.bent), a[:, None]).numpy()
            g += np.einsum("kmnd,mnd->knd", f, self.weights)
        return g


def _near(
    task: SeparableTask, grid: Even, table: Table, w: Array, first: Array, begin: int, k: Array
) -> _Near | None:
    """Around points k of ``first``; None where too many outcomes bend."""
    J, bends, i = table.costs.shape[1], table.bends, np.arange(len(first))
    at = k + begin
    if not bends.fine.numpy()[i, at].all():
        return None
    count = bends.count.numpy()[i, at]  # (n, d)
    slot = np.arange(count.max())[:, None, None]
    there = slot < count
    s = bends.outcomes.numpy()[np.where(there, bends.start.numpy()[i, at] + slot, 0)]
    weights = np.where(there, w[s], 0)  # (m, n, d)
    centre = at.clip(2, J - 3)
    nodes = centre + _NODES  # (3, n, d)
    f = table.costs.numpy()[i, nodes[:, None], s]  # (3, m, n, d)
    left, middle, right = first[i, nodes - begin] - (f * weights).sum(1)
    q = np.array([middle, (right - left) / 2, (right + left) / 2 - middle])
    ends = grid.lower.numpy(), grid.width.numpy()
    bent = table.values.numpy()[0][s, i]
    return _Near(task, *ends, bent, weights, q, (centre / (J - 1)).astype(w.dtype), (J - 1) / 2)
