"""Costs of the zoo, with their best actions in hindsight. To add one, add a function of (y, a).

Separable ones return the summands (*batch, d), each least at a_i = y_i. The others return
(*batch); on a box with 0 <= y <= upper, a = y is best unless the class has a ``hindsight``.
"""

from collections.abc import Sequence
from dataclasses import dataclass

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


def fined(y: Tensor, a: Tensor, short: float, spare: float, fine: float, slack: float) -> Tensor:
    """short (y-a)+ + spare (a-y)+ + fine where y exceeds a by more than ``slack``."""
    r = y - a
    return short * r.relu() + spare * (-r).relu() + fine * (r > slack).to(r.dtype)


def traded(y: Tensor, a: Tensor, wear: float) -> Tensor:
    """y a + wear a^2: buy a at the price y (sell for a < 0); moving a wears the storage."""
    return y * a + wear * a**2


def stepped(y: Tensor, a: Tensor, crate: float, fee: float, short: float, spare: float) -> Tensor:
    """fee ceil(a / crate) + short (y-a)+ + spare (a-y)+: whole crates are paid for."""
    r = y - a
    return fee * torch.ceil(a / crate - 1e-6) + short * r.relu() + spare * (-r).relu()


def transfer(y: Tensor, a: Tensor, short: float, spare: float, move: float) -> Tensor:
    """Newsvendors that send surplus to where it is short, at ``move`` a unit.

    Convex where move <= short + spare.
    """
    missing, surplus = (y - a).relu().sum(-1), (a - y).relu().sum(-1)
    moved = torch.minimum(missing, surplus)
    return move * moved + short * (missing - moved) + spare * (surplus - moved)


def of_total(y: Tensor, a: Tensor, short: float) -> Tensor:
    """sum (y-a)^2 + short (sum y - sum a)+^2: the total must not be short. Convex.

    On a Budget the point nearest to y >= 0 is best in hindsight: of all points with its total it
    is nearest to y, and both summands fall as the total rises to that of y.
    """
    r = y - a
    return (r**2).sum(-1) + short * r.sum(-1).relu() ** 2


def trucks(y: Tensor, a: Tensor, load: float, fee: float) -> Tensor:
    """fee for each truck of ``load`` units in all, and 10 for each unit short, 1 for each spare.

    Constant between full trucks, so only for finite lists.
    """
    r = y - a
    count = torch.ceil(a.sum(-1) / load - 1e-6)
    return fee * count + (10 * r.relu() + (-r).relu()).sum(-1)


def pathways(y: Tensor, a: Tensor, table: Sequence[Sequence[float]]) -> Tensor:
    """sum_kj y_k table[k][j] a_j: y is a class and a a choice, both one-hot. Linear in a."""
    return ((y @ torch.tensor(table, dtype=a.dtype, device=a.device)) * a).sum(-1)


def queue(y: Tensor, a: Tensor, staff: float, wait: float, left: float) -> Tensor:
    """Jobs waiting q <- (q + y_t - a_t)+; a_t jobs can be served at ``staff`` each.

    Waiting costs ``wait`` (q + q^2) after each step, jobs left at the end ``left`` each. Convex.
    """
    q = y.new_zeros(())
    cost = staff * a.sum(-1)
    for t in range(a.shape[-1]):
        q = (q + y[..., t] - a[..., t]).relu()
        cost = cost + wait * (q + q**2)
    return cost + left * q


@dataclass(frozen=True)
class Growth:
    """-log(1 + a . y): minus the growth of money split over assets of returns y > -1. Convex."""

    def __call__(self, y: Tensor, a: Tensor) -> Tensor:
        return -torch.log1p((y * a).sum(-1))

    def hindsight(self, y: Tensor) -> Tensor:
        """All money in the asset of the highest return."""
        return torch.nn.functional.one_hot(y.argmax(-1), y.shape[-1]).to(y.dtype)


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
