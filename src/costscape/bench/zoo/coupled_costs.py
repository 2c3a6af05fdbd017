"""Costs that no sum over coordinates gives, with their best actions in hindsight.

Each class is a cost (y, a) -> (*batch). On a box with 0 <= y <= upper, a = y is best in hindsight
unless the class says otherwise.
"""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Transfer:
    """Newsvendors that send surplus to where it is short, at ``move`` a unit.

    Convex where move <= short + spare.
    """

    short: float
    spare: float
    move: float

    def __call__(self, y: Tensor, a: Tensor) -> Tensor:
        short, spare = (y - a).relu().sum(-1), (a - y).relu().sum(-1)
        moved = torch.minimum(short, spare)
        return self.move * moved + self.short * (short - moved) + self.spare * (spare - moved)


@dataclass(frozen=True)
class OfTotal:
    """sum (y-a)^2 + short (sum y - sum a)+^2: the total must not be short. Convex.

    On a Budget the point nearest to y >= 0 is best in hindsight: of all points with its total it
    is nearest to y, and both summands fall as the total rises to that of y.
    """

    short: float

    def __call__(self, y: Tensor, a: Tensor) -> Tensor:
        r = y - a
        return (r**2).sum(-1) + self.short * r.sum(-1).relu() ** 2


@dataclass(frozen=True)
class Growth:
    """-log(1 + a . y): minus the growth of money split over assets of returns y > -1. Convex."""

    def __call__(self, y: Tensor, a: Tensor) -> Tensor:
        return -torch.log1p((y * a).sum(-1))

    def hindsight(self, y: Tensor) -> Tensor:
        """All money in the asset of the highest return."""
        return torch.nn.functional.one_hot(y.argmax(-1), y.shape[-1]).to(y.dtype)


@dataclass(frozen=True)
class Trucks:
    """fee for each truck of ``load`` units in all, and 10 for each unit short, 1 for each spare.

    Constant between full trucks, so only for finite lists.
    """

    load: float
    fee: float

    def __call__(self, y: Tensor, a: Tensor) -> Tensor:
        trucks = torch.ceil(a.sum(-1) / self.load - 1e-6)
        r = y - a
        return self.fee * trucks + (10 * r.relu() + (-r).relu()).sum(-1)


@dataclass(frozen=True)
class Pathways:
    """sum_kj y_k table[k][j] a_j: y is a class and a a choice, both one-hot. Linear in a."""

    table: tuple[tuple[float, ...], ...]

    def __call__(self, y: Tensor, a: Tensor) -> Tensor:
        costs = torch.tensor(self.table, dtype=a.dtype, device=a.device)
        return ((y @ costs) * a).sum(-1)
