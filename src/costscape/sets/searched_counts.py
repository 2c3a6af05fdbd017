"""Whole counts under any rows; where there are too many to list, integer programs and a walk.

``SearchedCounts`` solves 2 d + 32 integer programs (HiGHS): the bounds, and points in random
directions where walks begin. The nearest point is the one of least absolute distance,

    minimise  sum_i step_i |k_i - z_i|,

one integer program for each point. It is not always the nearest in Euclidean distance.
"""

from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Generator, Tensor

from costscape.sets.constraint_set import couples
from costscape.sets.counts import SLACK, CountRows, Counts, ListedCounts, RowCounts
from costscape.sets.unit_row import UnitRow, unit_row

MOST_LISTED = 100_000  # points
STARTS = 32  # points from which walks begin
STEPS = 200  # of a walk


class SearchedCounts(Counts):
    """Draws are ends of walks whose limit is uniform over the points that moves connect.

    A move adds 1 to a coordinate, takes 1 off one, or does both; moves out of C are not made.
    """

    exact = False
    low: Tensor
    high: Tensor
    starts: Tensor

    def __init__(self, rows: CountRows) -> None:
        super().__init__()
        for name in ("A", "b", "G", "h"):
            self.register_buffer(name, getattr(rows, name))
        self.size = rows.size
        d = len(self.size)
        eye = np.eye(d)
        self.register_buffer("low", torch.stack([self._least(e)[i] for i, e in enumerate(eye)]))
        self.register_buffer("high", torch.stack([self._least(-e)[i] for i, e in enumerate(eye)]))
        towards = np.random.default_rng(0).normal(size=(STARTS, d))
        self.register_buffer("starts", torch.stack([self._least(t) for t in towards]))

    def bounds(self) -> tuple[Tensor, Tensor]:
        return self.low, self.high

    def sample(self, n: int, generator: Generator | None) -> Tensor:
        device, d = self.starts.device, len(self.size)
        at = torch.randint(len(self.starts), (n,), generator=generator, device=device)
        k, rows = self.starts[at], torch.arange(n, device=device)
        for _ in range(STEPS):
            # place d means that no coordinate is changed
            up, down = torch.randint(d + 1, (2, n), generator=generator, device=device)
            move = torch.zeros(n, d + 1, dtype=torch.long, device=device)
            move[rows, up] += 1
            move[rows, down] -= 1
            to = k + move[:, :d]
            k = torch.where(self._inside(to)[:, None], to, k)
        return k

    def nearest(self, z: Float[Tensor, "n d"], step: Float[Tensor, "d"]) -> Tensor:
        near = z.round().long()
        for i in (~self._inside(near)).nonzero()[:, 0].tolist():
            near[i] = self._nearest(z[i].cpu().numpy(), step.cpu().numpy()).to(near)
        return near

    def _inside(self, k: Tensor) -> Tensor:
        A, b, G, h = (getattr(self, name).double() for name in ("A", "b", "G", "h"))
        size = torch.tensor(self.size, device=k.device)
        inside: Tensor = ((k >= 0) & (k < size)).all(1)
        inside &= (k.double() @ A.T - b).abs().le(SLACK * (1 + b.abs())).all(1)
        inside &= (k.double() @ G.T - h).le(SLACK * (1 + h.abs())).all(1)
        return inside

    def _least(self, cost: Any) -> Tensor:
        """The point of least cost . k."""
        found = self._solve(cost, [])
        if found is None:
            raise _empty()
        return found

    def _nearest(self, z: Any, step: Any) -> Tensor:
        from scipy.optimize import LinearConstraint  # slow to import

        # t >= |k - z|, as t - k >= -z and t + k >= z
        eye = np.eye(len(z))
        beyond = LinearConstraint(np.block([[-eye, eye], [eye, eye]]), np.append(-z, z), np.inf)
        found = self._solve(np.append(0 * z, step), [beyond])
        assert found is not None  # the set is not empty
        return found

    def _solve(self, cost: Any, rows: list[Any]) -> Tensor | None:
        """The least cost . (k, t) over counts k and, where ``cost`` is longer, numbers t >= 0."""
        from scipy.optimize import Bounds, LinearConstraint, milp

        A, b, G, h = (getattr(self, name).double().cpu().numpy() for name in ("A", "b", "G", "h"))
        d, extra = len(self.size), len(cost) - len(self.size)
        for matrix, low, high in ((A, b, b), (G, -np.inf, h)):
            if len(matrix):
                wide = np.pad(matrix, ((0, 0), (0, extra)))
                rows = [*rows, LinearConstraint(wide, low, high)]
        top = np.append(np.array(self.size) - 1.0, np.full(extra, np.inf))
        found = milp(
            cost,
            integrality=np.repeat([1, 0], [d, extra]),
            bounds=Bounds(np.zeros(len(cost)), top),
            constraints=rows,
        )
        return None if found.x is None else torch.from_numpy(found.x[:d].round()).long()


def counts_of(rows: CountRows) -> Counts:
    """The points of the rows, in the strongest form that serves."""
    coupling = torch.cat([couples(rows.A), couples(rows.G)])
    if int(coupling.sum()) <= 1:
        left, right = torch.cat([rows.A, rows.G]), torch.cat([rows.b, rows.h])
        at = int(coupling.int().argmax())  # some bound where no row couples
        row = unit_row(left[at], float(right[at]), list(rows.size), equal=at < len(rows.A))
        if isinstance(row, UnitRow):
            ways = row.ways() if row.units >= 0 else torch.zeros(1, 1)
            if not ways[0, -1] > 0:
                raise _empty()
            return RowCounts(row, ways)
    listed = rows.listed(MOST_LISTED)
    if listed is None:
        return SearchedCounts(rows)
    if len(listed) == 0:
        raise _empty()
    return ListedCounts(listed)


def _empty() -> ValueError:
    return ValueError(
        "Whole needs a set with at least one allowed point, but no whole counts meet all rows. "
        "Take a finer step, or a total that is a multiple of the step."
    )
