"""Whole counts k >= 0 under linear rows: their bounds, uniform draws and the nearest ones.

    { k in 0 .. n - 1 :  A k = b,  G k <= h }

Two forms are exact: counts under a single row (dynamic programming, see ``unit_row``), and a list
of all points where there are few.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int64
from torch import Generator, Tensor, nn

from costscape.sets.finite import Finite
from costscape.sets.unit_row import BLOCK, UnitRow

SLACK = 1e-6  # of the largest number of a row, which counts as rounding
UNFINISHED = 10  # times as many unfinished points may be in memory as points are listed


@dataclass(frozen=True)
class CountRows:
    """The rows A k = b and G k <= h of counts k_i in 0 .. size_i - 1, in double precision."""

    A: Float[Tensor, "e d"]
    b: Float[Tensor, "e"]
    G: Float[Tensor, "m d"]
    h: Float[Tensor, "m"]
    size: tuple[int, ...]

    def listed(self, most: int) -> Int64[Tensor, "K d"] | None:
        """All points, or None where there are more than ``most`` (or finding them takes long).

        Grows the points coordinate by coordinate, and drops those that no further coordinate can
        bring back.
        """
        left = torch.cat([self.G, self.A, -self.A])
        right = torch.cat([self.h, self.b, -self.b])
        slack = SLACK * torch.cat([left.abs(), right[:, None].abs()], 1).amax(1)
        ends = left * (torch.tensor(self.size) - 1)
        best = ends.clamp(max=0).flip(1).cumsum(1).flip(1)  # of coordinates i, i + 1, ...
        points, used = torch.zeros(1, 0, dtype=torch.long), torch.zeros(1, len(left)).double()
        for i, n in enumerate(self.size):
            if len(points) * n > UNFINISHED * most:
                return None
            k = torch.arange(n).repeat(len(points))
            points = torch.cat([points.repeat_interleave(n, 0), k[:, None]], 1)
            used = used.repeat_interleave(n, 0) + k[:, None] * left[:, i]
            rest = best[:, i + 1] if i + 1 < len(self.size) else 0 * right
            possible = (used + rest <= right + slack).all(1)
            points, used = points[possible], used[possible]
        return points if len(points) <= most else None


class Counts(nn.Module, ABC):
    """The points of a ``CountRows``, which has at least one."""

    exact: bool  # whether ``nearest`` is the nearest point in Euclidean distance

    @abstractmethod
    def bounds(self) -> tuple[Int64[Tensor, "d"], Int64[Tensor, "d"]]:
        """The least and the largest count of each coordinate."""

    @abstractmethod
    def sample(self, n: int, generator: Generator | None) -> Int64[Tensor, "n d"]: ...

    @abstractmethod
    def nearest(self, z: Float[Tensor, "n d"], step: Float[Tensor, "d"]) -> Int64[Tensor, "n d"]:
        """The point nearest to z, where coordinate i is measured in units of step_i."""


class RowCounts(Counts):
    """Counts under a single row; draws are uniform, the nearest point is exact."""

    exact = True
    ways: Tensor

    def __init__(self, row: UnitRow, ways: Float[Tensor, "d1 U1"]) -> None:
        super().__init__()
        self.row = row
        self.register_buffer("ways", ways)

    def bounds(self) -> tuple[Tensor, Tensor]:
        row = self.row
        if not row.equal:  # the other coordinates may use nothing
            most = [
                n - 1 if c == 0 else min(n - 1, row.units // c)
                for c, n in zip(row.price, row.size, strict=True)
            ]
            ends = row.turn(torch.stack([torch.zeros(len(most)).long(), torch.tensor(most)]))
            return ends.amin(0), ends.amax(0)
        count = torch.eye(len(row.size))[..., None] * torch.arange(max(row.size))  # (d, d, K)
        ends = row.allocate(torch.cat([count, -count]).double(), convex=True)
        low, high = (end.diagonal() for end in ends.chunk(2))
        return low, high

    def sample(self, n: int, generator: Generator | None) -> Tensor:
        rows = max(1, BLOCK // max(self.row.size))
        parts = [min(rows, n - i) for i in range(0, max(n, 1), rows)]
        ways = self.ways.double()
        return torch.cat([self.row.draw(ways, part, generator) for part in parts])

    def nearest(self, z: Tensor, step: Tensor) -> Tensor:
        k = torch.arange(max(self.row.size), device=z.device, dtype=torch.float64)
        rows = max(1, BLOCK // (len(self.row.size) * len(k)))
        parts = []
        for part in z.split(rows):
            away = step[:, None] * (k - part[..., None])
            # a square less a constant: far points keep the digits that tell counts apart
            cost = step[:, None] * k * (away - step[:, None] * part[..., None])
            parts.append(self.row.allocate(cost, convex=True))
        return torch.cat(parts)


class ListedCounts(Counts):
    """A list of all points; draws are uniform, the nearest point is exact."""

    exact = True
    points: Tensor

    def __init__(self, points: Int64[Tensor, "K d"]) -> None:
        super().__init__()
        self.register_buffer("points", points)

    def bounds(self) -> tuple[Tensor, Tensor]:
        return self.points.amin(0), self.points.amax(0)

    def sample(self, n: int, generator: Generator | None) -> Tensor:
        device = self.points.device
        return self.points[
            torch.randint(len(self.points), (n,), generator=generator, device=device)
        ]

    def nearest(self, z: Tensor, step: Tensor) -> Tensor:
        near = Finite(self.points * step).project(z * step)
        return (near / step).round().long()
