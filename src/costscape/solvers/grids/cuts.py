"""What the first look between grid points needs of f, kept with a table of f.

    F[p] = (f_i(y_s, a(t_k + m h)) for m = 1 - n, ..., n - 1,        h = step / n,
            f_i(y_s, a_j) for j = k - 2, k, k + 2,  y_si)

p one of the outcomes s that bend around grid point k of coordinate i. All of it depends on the
grid and not on x. For one x a call of f takes as long as the rest of such a look, and numbers from
all over the table longer than those that lie side by side.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float
from torch import Tensor

from costscape.expectation import CACHE
from costscape.solvers.grids.bends import Bends
from costscape.solvers.grids.even import Even
from costscape.task import SeparableTask

Array = npt.NDArray[Any]


NODES = np.array([-2, 0, 2])[:, None, None]  # around the grid point


@dataclass(frozen=True)
class Cuts:
    """F of one grid; nobody may write to it. Points beside an end have none."""

    grid: Even
    numbers: Float[Tensor, "N m"]  # m = 2n + 3

    def take(self, p: Array) -> tuple[Array, Array, Array]:
        """f (2n - 1, *p), f at the nodes (3, *p) and y (*p)."""
        found = np.ascontiguousarray(self.numbers.numpy().take(p, 0).transpose(3, 0, 1, 2))
        return found[:-4], found[-4:-1], found[-1]


def tries(t: Array, h: float, n: int, inner: bool = False) -> Array:
    """Shares (2n - 1, *t), each of t moved by less than n h to either side.

    ``inner``: none of t is so near an end that a move could pass it.
    """
    tried: Array = t + _moves(h, n, t.dtype)
    return tried if inner else np.minimum(np.maximum(tried, 0, out=tried), 1, out=tried)


@lru_cache(maxsize=64)
def _moves(h: float, n: int, dtype: np.dtype[Any]) -> Array:
    moves: Array = (h * np.arange(1 - n, n)).astype(dtype)[:, None, None]
    return moves


def shares(k: Array, step: float, dtype: npt.DTypeLike) -> Array:
    """t of grid points k."""
    t: Array = (k * step).astype(dtype)
    return t


def first_cuts(
    task: SeparableTask,
    costs: Float[Tensor, "d J S"],
    values: Float[Tensor, "1 S d"],
    bends: Bends,
    grid: Even,
    n: int,
    most: int,
) -> Cuts | None:
    """F for a task that is ``alone``; None where it and the bends exceed ``most`` bytes."""
    (d, J, _), table, y = costs.shape, costs.numpy(), values[0].numpy()
    outcomes = bends.outcomes.numpy()
    if len(outcomes) == 0 or len(outcomes) * ((2 * n + 3) * y.itemsize + 8) > most:
        return None
    step, i = 1 / (J - 1), np.arange(d)
    lower, width = grid.lower.numpy(), grid.width.numpy()
    count = bends.count.numpy()[:, 2 : J - 2]
    k = np.concatenate([np.repeat(np.arange(2, J - 2), each) for each in count])
    start = bends.start.numpy()[:, 2]
    end = start + count.sum(1)
    longest = int(count.sum(1).max())
    numbers = np.empty((len(outcomes), 2 * n + 3), y.dtype)
    rows = max(1, CACHE // (4 * (2 * n - 1) * d * y.itemsize))
    for r in range(0, longest, rows):
        p = start + np.arange(r, min(r + rows, longest))[:, None]  # (rows, d)
        there = p < end
        s, at = (v[np.where(there, p, 0)] for v in (outcomes, k))
        t = tries(shares(at, step, y.dtype), step / n, n)
        a, bent = torch.from_numpy(lower + t * width), y[s, i]
        f = task.f_terms(torch.from_numpy(bent), a).numpy()
        found = np.concatenate([f, table[i, at + NODES, s], bent[None]])
        numbers[p[there]] = found[:, there].T
    return Cuts(grid, torch.from_numpy(numbers))
