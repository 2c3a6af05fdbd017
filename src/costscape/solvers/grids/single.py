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
from costscape.solvers.grids.cuts import NODES, shares, tries
from costscape.solvers.grids.even import Even
from costscape.solvers.grids.groups import within
from costscape.solvers.grids.table import FALL, Table
from costscape.task import SeparableTask

Array = npt.NDArray[Any]

_AROUND = np.arange(-2, 3)[:, None, None]


def search(
    task: SeparableTask, grid: Even, table: Table, w: Tensor, basins: int, least: float
) -> tuple[Array, Array, Array] | None:
    """Shares t (d), the d summands of g there as the model has them, and on the grid.

    None where too many outcomes bend for the model to be of use.
    """
    assert table.bounds is not None
    d, J, _ = table.costs.shape
    first, inside, begin = within(table.costs, table.bounds, table.size, w)
    i = np.arange(d)
    k = _valleys(first, inside, basins)  # (n, d)
    step = 1 / (J - 1)
    near = _near(task, grid, table, w.numpy(), first, begin, k, parts(step / least))
    if near is None:
        return None
    t = shares(k + begin, step, first.dtype)
    best, known = t, near.known
    each = np.arange(t.size).reshape(t.shape)
    while step > least:
        n = parts(step / least)
        step /= n
        tried = tries(t, step, n, near.inner)  # (moves, n, d)
        costs = near(tried, known)
        j = costs.argmin(0) * t.size + each
        t, best, known = tried.take(j), costs.take(j), None
    j = best.argmin(0) * d + i
    return t.take(j), best.take(j), first.take(k[0] + first.shape[1] * i)


def _valleys(g: Array, inside: Array, n: int) -> Array:
    """Points (n or fewer, d): the n lowest local minima of each coordinate, if they have hope.

    The lowest stands for those that a coordinate does not have.
    """
    k: Array = g.argmin(1)
    if n == 1:
        return k[None]
    row = g.shape[1] * np.arange(len(g))  # where each begins
    valley, falls = inside.copy(), g[:, 1:] < g[:, :-1]
    valley[:, 1:] &= falls
    valley[:, :-1] &= ~falls
    rest = np.where(valley, g, np.inf)
    more = np.empty((n - 1, len(g)), k.dtype)
    last = k
    for found in more:
        rest.put(last + row, np.inf)
        last = rest.argmin(1)
        found[:] = np.where(rest.take(last + row) < np.inf, last, k)
        last = found
    around = g.take(more.clip(2, g.shape[1] - 3) + row + _AROUND)  # (5, n - 1, d)
    more = np.where(_may_fall(g.take(more + row) - g.take(k + row), around), more, k)
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
    bent: Tensor  # outcomes (m, n, d)
    weights: Array
    q: tuple[Array, Array, Array]  # (n, d) each
    centre: Array  # (n, d)
    scale: float
    inner: bool  # whether all points are two cells or more from the ends
    known: Array | None  # f (moves, m, n, d) where it is asked first

    def __call__(self, t: Array, f: Array | None = None) -> Array:
        u = t - self.centre
        u *= self.scale
        middle, rise, bend = self.q
        g: Array = u * bend
        g += rise
        g *= u
        g += middle
        if len(self.bent):
            if f is None:
                a = torch.from_numpy(self.lower + t * self.width)
                f = self.task.f_terms(self.bent, a[:, None]).numpy()
            g += np.einsum("kmnd,mnd->knd", f, self.weights)
        return g


def _near(
    task: SeparableTask,
    grid: Even,
    table: Table,
    w: Array,
    first: Array,
    begin: int,
    k: Array,
    n: int,
) -> _Near | None:
    """Around points k of ``first``, where cells are first cut into n.

    None where too many outcomes bend.
    """
    (d, J, S), bends = table.costs.shape, table.bends
    i, at = np.arange(d), k + begin
    row = at + J * i  # (n, d), as the others
    if not bends.fine.numpy().take(row).all():
        return None
    count = bends.count.numpy().take(row)
    slot = np.arange(count.max())[:, None, None]
    there = slot < count
    place = np.where(there, bends.start.numpy().take(row) + slot, 0)  # (m, n, d)
    s = bends.outcomes.numpy().take(place)
    weights = np.where(there, w.take(s), 0)
    centre = at.clip(2, J - 3)
    cuts, known, inner = table.cuts.get(n), None, bool((at == centre).all())
    if inner and cuts is not None and cuts.grid is grid:
        known, f, bent = cuts.take(place)
    else:
        row += centre - at
        f = table.costs.numpy().reshape(-1).take(S * (row + NODES)[:, None] + s)
        bent = table.values.numpy()[0][s, i]
    seen = first.take(centre + (first.shape[1] * i - begin) + NODES)
    left, middle, right = seen - (f * weights).sum(1)  # f (3, m, n, d)
    q = middle, (right - left) / 2, (right + left) / 2 - middle
    t = (centre / (J - 1)).astype(w.dtype)
    ends = grid.lower.numpy(), grid.width.numpy()
    y = torch.from_numpy(bent)
    return _Near(task, *ends, y, weights, q, t, (J - 1) / 2, inner, known)
