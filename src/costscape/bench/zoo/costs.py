"""Costs of the zoo, with their best actions in hindsight. To add one, add a class (y, a) -> cost.

Separable ones return the summands (*batch, d), each least at a_i = y_i. The others return
(*batch); on a box with 0 <= y <= upper, a = y is best unless the class has a ``hindsight``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from costscape.problems.two_sided import TwoSided

PRICE = 10.0  # of one unit short and one unit spare together


def newsvendor(ratio: float, squared: float = 0.0) -> TwoSided:
    """10 (ratio (y-a)+ + (1-ratio) (a-y)+) + squared (y-a)^2, ratio being the critical ratio."""
    return TwoSided(PRICE * ratio, PRICE * (1 - ratio), squared, squared)


def asymmetric(short: float, spare: float) -> TwoSided:
    """short (y-a)+^2 + spare (a-y)+^2."""
    return TwoSided(0.0, 0.0, short, spare)


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

    def cvxpy(self, y: Any, a: Any) -> Any:
        return self.cost.cvxpy_terms(y, a) @ self.prices.double().numpy()


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


@dataclass(frozen=True)
class CarriedStock:
    """Stock s <- (s + a_t - y_t)+ from ``start``; unmet demand is lost.

    Costs are ``buy`` a_t, ``hold`` for stock after each step and ``lost`` for each unit not
    delivered. Convex in a, since s is a maximum of sums of a and the lost units are
    s - (s_before + a_t - y_t).
    """

    start: float
    buy: float
    hold: float
    lost: float

    def __call__(self, y: Tensor, a: Tensor) -> Tensor:
        s = y.new_full((), self.start)
        cost = self.buy * a.sum(-1)
        for t in range(a.shape[-1]):
            net = s + a[..., t] - y[..., t]
            s = net.relu()
            cost = cost + self.hold * s + self.lost * (-net).relu()
        return cost

    def hindsight(self, y: Tensor) -> Tensor:
        """Buy at each step what the stock at hand does not cover (buy < lost)."""
        demand = y.cumsum(-1)
        covered = demand.clamp(max=self.start)
        return (demand - covered).diff(dim=-1, prepend=torch.zeros_like(y[..., :1]))


@dataclass(frozen=True)
class Queue:
    """Jobs waiting q <- (q + y_t - a_t)+; a_t jobs can be served at ``staff`` each.

    Waiting costs ``wait`` (q + q^2) after each step, jobs left at the end ``left`` each. Convex.
    """

    staff: float
    wait: float
    left: float

    def __call__(self, y: Tensor, a: Tensor) -> Tensor:
        q = y.new_zeros(())
        cost = self.staff * a.sum(-1)
        for t in range(a.shape[-1]):
            q = (q + y[..., t] - a[..., t]).relu()
            cost = cost + self.wait * (q + q**2)
        return cost + self.left * q
