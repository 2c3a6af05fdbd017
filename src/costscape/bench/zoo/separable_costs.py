"""Costs that are sums over coordinates; each summand is least at a_i = y_i.

To add one, add a function of (y, a) that returns the summands.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from costscape.problems.two_sided import TwoSided

PRICE = 10.0  # of one unit short and one unit spare together


def newsvendor(ratio: float, squared: float = 0.0) -> TwoSided:
    """10 (ratio (y-a)+ + (1-ratio) (a-y)+) + squared (y-a)^2, ratio being the critical ratio."""
    return TwoSided(PRICE * ratio, PRICE * (1 - ratio), squared, squared, 0.0)


def asymmetric(short: float, spare: float) -> TwoSided:
    """short (y-a)+^2 + spare (a-y)+^2."""
    return TwoSided(0.0, 0.0, short, spare, 0.0)


class Priced(nn.Module):
    """A two-sided cost with one price for each coordinate."""

    prices: Tensor

    def __init__(self, cost: TwoSided, prices: Sequence[float]) -> None:
        super().__init__()
        self.cost = cost
        self.register_buffer("prices", torch.tensor(prices))

    def forward(self, y: Tensor, a: Tensor) -> Tensor:
        return self.prices * self.cost(y, a)

    def mean(self, m: Tensor, s: Tensor | float, a: Tensor) -> Tensor:
        return self.prices * self.cost.mean(m, s, a)


@dataclass(frozen=True)
class Fined:
    """short (y-a)+ + spare (a-y)+ + fine where y exceeds a by more than ``slack``."""

    short: float
    spare: float
    fine: float
    slack: float

    def __call__(self, y: Tensor, a: Tensor) -> Tensor:
        r = y - a
        late = (r > self.slack).to(r.dtype)
        return self.short * r.relu() + self.spare * (-r).relu() + self.fine * late


@dataclass(frozen=True)
class Traded:
    """y a + wear a^2: buy a at the price y (sell for a < 0); moving a wears the storage."""

    wear: float

    def __call__(self, y: Tensor, a: Tensor) -> Tensor:
        return y * a + self.wear * a**2


@dataclass(frozen=True)
class Stepped:
    """fee ceil(a / crate) + short (y-a)+ + spare (a-y)+: whole crates are paid for."""

    crate: float
    fee: float
    short: float
    spare: float

    def __call__(self, y: Tensor, a: Tensor) -> Tensor:
        r = y - a
        crates = torch.ceil(a / self.crate - 1e-6)
        return self.fee * crates + self.short * r.relu() + self.spare * (-r).relu()
