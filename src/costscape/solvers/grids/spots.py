"""Points of a grid, moved into the cells beside them until these are narrow enough.

All in shares t of the box: a = lower + t (upper - lower).
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from costscape.scenarios import ExpectedCost, Surface
from costscape.sets import Box

FAR = 2.0**-18  # of the interval: below, only the best basin is refined


@dataclass(frozen=True)
class Spots:
    """n points for each x and coordinate, as shares t of the interval, and the cells' width."""

    t: Float[Tensor, "B n d"]
    cost: Float[Tensor, "B n d"]
    step: float

    def best(self) -> "Spots":
        cost, k = self.cost.min(1, keepdim=True)
        return Spots(self.t.gather(1, k), cost, self.step)

    def pick(self, b: Tensor, n: Tensor) -> "Spots":
        return Spots(self.t[b, n][:, None], self.cost[b, n][:, None], self.step)

    def put(self, b: Tensor, n: Tensor, part: "Spots") -> "Spots":
        """The same with others in the places b, n."""
        at = (b, n)
        t, cost = (
            old.index_put(at, new[:, 0])
            for old, new in zip((self.t, self.cost), (part.t, part.cost), strict=True)
        )
        return Spots(t, cost, part.step)


def in_shares(g: Surface, box: Box) -> Callable[[Tensor], Tensor]:
    width = box.upper - box.lower
    return lambda t: g.terms(box.lower + t * width)


def cut(
    cost: Callable[[Tensor], Tensor],
    spots: Spots,
    least: float,
    into: Callable[[float], int] = lambda ratio: 2,
) -> Spots:
    """Each point moved to the best of the points that cut the cells beside it, again and again."""
    t, best, step = spots.t, spots.cost, spots.step
    while step > least:
        parts = into(step / least)
        moves = torch.arange(1 - parts, parts, device=t.device).to(t) / parts
        moves = moves[moves != 0][:, None, None]
        tried = (t[:, None] + step * moves).clamp(0, 1)  # (B, moves, n, d)
        costs = cost(tried.flatten(1, 2)).unflatten(1, tried.shape[1:3])
        best, i = torch.cat([best[:, None], costs], 1).min(1)
        t = torch.cat([t[:, None], tried], 1).gather(1, i[:, None])[:, 0]
        step /= parts
    return Spots(t, best, step)


def halved(
    g: Surface, box: Box, spots: Spots, found: Bool[Tensor, "B n d"], least: float
) -> Spots:
    """The best spot of each x and coordinate, by halving their cells."""
    if found.shape[1] > 1:
        spots = _each(g, box, spots, found, max(least, FAR)).best()
    return cut(in_shares(g, box), spots, least).best()


def places(found: Bool[Tensor, "B n d"]) -> tuple[Int64[Tensor, "m"], Int64[Tensor, "m"]]:
    """Which x has a valley of which number, in some coordinate; each has a first."""
    some = found.any(-1)  # (B, n)
    some[:, 0] = True
    b, n = some.nonzero(as_tuple=True)
    return b, n


def _each(g: Surface, box: Box, spots: Spots, found: Tensor, least: float) -> Spots:
    """Halving, without the trouble for the valleys that an x does not have."""
    if not isinstance(g, ExpectedCost):
        return cut(in_shares(g, box), spots, least)
    b, n = places(found)
    if len(b) > len(found):
        g = g.on(g.scenarios.pick(b).by_coordinate())
    return spots.put(b, n, cut(in_shares(g, box), spots.pick(b, n), least))
