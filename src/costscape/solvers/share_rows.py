"""Linear rows that couple coordinates, in shares t of the intervals between the bounds.

    lower <= a <= upper,  k_r . a <= h_r   becomes   0 <= t <= 1,  use_r . t <= room_r

with a = origin + t step. Each row is divided by the sum of its coefficients, so that the units of
actions do not matter. Arrays of numpy in double precision: its calls take a third of the time of
torch's on the few numbers of one x.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from costscape.scenarios import ExpectedCost, Surface
from costscape.sets import Budget, Simplex
from costscape.sets.constraint_set import Polyhedral, couples
from costscape.sets.validation import as_numpy
from costscape.solvers.coupled_search import in_double

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]

SINGLE = 2.0**-11  # width of the last cells where f has single precision only
TINY = 1e-300  # keeps quotients finite where a cell has no width
MET = 1e-11  # of a row, by which its use may exceed the room


@dataclass(frozen=True)
class ShareRows:
    """The rows use (m, d) . t <= room (m), with equality where ``equal`` (m)."""

    origin: Array
    step: Array
    use: Array
    room: Array
    equal: npt.NDArray[np.bool_]

    def actions(self, t: Array) -> Array:
        return self.origin + t * self.step

    def shares(self, a: Array) -> Array:
        share: Array = (a - self.origin) / np.where(self.step == 0, 1.0, self.step)
        return np.minimum(np.maximum(share, 0.0), 1.0)

    def met(self, t: Array) -> npt.NDArray[np.bool_]:
        """Whether shares (B, d) meet all rows, up to rounding."""
        over = t @ self.use.T - self.room
        worst = np.where(self.equal, np.abs(over), over).max(-1)
        met: npt.NDArray[np.bool_] = worst <= MET
        return met


def share_rows(feasible: Polyhedral, turn: bool = False) -> ShareRows:
    """The rows of the set that couple coordinates.

    ``turn`` turns coordinates round that have a negative coefficient in the first row, so that a
    single row has no negative use.
    """
    if isinstance(feasible, Budget | Simplex):  # their row is known, which saves time
        k, h = np.ones((1, feasible.dim)), as_numpy(feasible.total).reshape(1)
        equal = np.array([isinstance(feasible, Simplex)])
    else:
        rows = feasible.rows()
        some, others = couples(rows.A), couples(rows.G)
        k = as_numpy(torch.cat([rows.A[some], rows.G[others]]))
        h = as_numpy(torch.cat([rows.b[some], rows.h[others]]))
        equal = np.arange(len(k)) < int(some.sum())
    lower, upper = (as_numpy(end) for end in feasible.bounds)
    turned = (k[0] < 0) & turn
    origin = np.where(turned, upper, lower)
    step = np.where(turned, lower - upper, upper - lower)
    use, room = k * step, h - k @ origin
    total = np.maximum(np.abs(use).sum(1), TINY)
    return ShareRows(origin, step, use / total[:, None], room / total, equal)


class ShareCosts:
    """g_i at shares t of the intervals, in double precision where f can be computed in it."""

    def __init__(self, g: Surface, rows: ShareRows, like: Tensor, batch: int) -> None:
        self.g, self.rows, self.like, self.batch = g, rows, like, batch
        self.double: Surface | None = in_double(g)

    def least(self, halvings: int) -> float:
        """Width of the last cells: 2^-halvings, or what single precision resolves."""
        single = self.like.dtype == torch.float32 and (
            self.double is None or self.double is self.g
        )
        return max(2.0**-halvings, SINGLE if single else 0.0)

    def at(self, t: Array, which: Index) -> Array:
        """The costs (B, d, J) of some x, by number, at their shares (B, d, J)."""
        a = torch.from_numpy(self.rows.actions(t.swapaxes(1, 2)))
        a = a.to(self.like.device) if self.like.is_cuda else a
        if self.double is not None and self.double is not self.g:
            try:
                return as_numpy(self._terms(self.double, a, which).mT)
            except RuntimeError:  # f multiplies by a tensor of its own, in single precision
                self.double = None
        return as_numpy(self._terms(self.g, a.to(self.like), which).mT)

    def _terms(self, g: Surface, a: Tensor, which: Index) -> Tensor:
        if isinstance(g, ExpectedCost):
            if len(which) < self.batch:
                g = g.on(g.scenarios.rows(torch.as_tensor(which, device=self.like.device)))
            return g.search_terms(a)
        every = a[:1].repeat(self.batch, 1, 1)  # other surfaces have no rows by number
        every[which] = a
        return g.terms(every)[which]
