"""Bid wind energy for tomorrow, with a reserve to fall back on.

Per hour, y the energy made, a the energy bid, r the reserve, over = a - r - y:

    f = up over + up_squared over^2 + deploy r + fine    if over > 0       (the reserve is short)
        deploy (a - y)                                   if a - r <= y <= a
        down (y - a)                                     if y > a          (sold at a discount)

and the profit is price y - holding r - f (the paper's Appendix, Wind Power Bidding; there up,
up_squared, down, deploy, fine, price, holding are dP_up1, dP_up2, dP_down, mu, F, P, nu). f
jumps by ``fine`` where the reserve runs out, so it is neither convex nor continuous in a.

With b = a - r, what is bid beyond the reserve, f + holding r is a sum of two functions,

    [holding a + deploy (a-y)+ + down (y-a)+]
    + [-holding b + (up - deploy) (b-y)+ + up_squared (b-y)+^2 + fine 1(b > y)],

and the mean of the first has the slope (deploy + down) P(y <= a) + holding - down. It never falls
where holding >= down: the least a, which is the least reserve, is then best for every b. Where
holding < down, a likes to be the (down - holding) / (deploy + down) quantile of y.
"""

from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor

from costscape.problems.two_sided import check_prices, standard_normal
from costscape.sets.box import Box
from costscape.task import SeparableTask, Task


def wind_bidding(
    hours: int = 12,
    reserve: float = 0.15,
    *,
    deploy: float = 110.0,
    up: float = 200.0,
    up_squared: float = 100.0,
    down: float = 20.0,
    fine: float = 10.0,
    cap: float = 4.0,
) -> SeparableTask:
    """Minimise f over bids 0 <= a <= cap, the reserve being the same in every hour.

    Prices are per unit of energy, whatever the unit of y; defaults are the paper's. Its reserve is
    the least allowed, which is optimal where holding >= down; wind_bidding_with_reserve decides
    the reserve too. Had y been known, the best bid is y itself.
    """
    cost = _Bid(_Prices(deploy, up, up_squared, down, fine), reserve)
    box = Box(0.0, cap, dim=hours)
    return SeparableTask(
        cost,
        box,
        hindsight=partial(torch.clip, min=0.0, max=float(box.upper[0])),
        normal=cost.mean,
    )


def wind_bidding_with_reserve(
    hours: int = 12,
    *,
    reserve_min: float = 0.15,
    reserve_max: float = 4.0,
    holding: float = 20.0,
    deploy: float = 110.0,
    up: float = 200.0,
    up_squared: float = 100.0,
    down: float = 20.0,
    fine: float = 10.0,
    cap: float = 4.0,
) -> Task:
    """Minimise f + holding r over the bids and the reserve of every hour, side by side.

    a = (bids, reserves), 2 x hours numbers: ``bids, reserves = a.chunk(2, -1)``. Bids are in
    [0, cap], reserves in [reserve_min, reserve_max]; y has one number an hour. Defaults are the
    paper's. The two numbers of an hour interact, so this is no SeparableTask. Where holding >=
    down the reserve is best at its least, and wind_bidding, which is solved exactly, decides as
    well; this task is for a reserve that is cheaper to hold than surplus is to sell.
    """
    if not 0 <= reserve_min <= reserve_max:
        raise ValueError(
            f"wind_bidding_with_reserve needs 0 <= reserve_min <= reserve_max, but got "
            f"{reserve_min} and {reserve_max}. Give the two ends of what the market allows."
        )
    prices = _Prices(deploy, up, up_squared, down, fine, holding)
    lower = torch.tensor([0.0, reserve_min]).repeat_interleave(hours)
    upper = torch.tensor([cap, reserve_max]).repeat_interleave(hours)
    # the ends as the set holds them, rounded, so that hindsight is within it
    cost = _BidAndReserve(prices, float(lower[-1]), float(upper[-1]), float(upper[0]))
    return Task(cost, Box(lower, upper), hindsight=cost.hindsight, normal=cost.mean)


def profit(
    task: Task,
    y: Float[Tensor, "*#batch h"],
    a: Float[Tensor, "*#batch d"],
    *,
    price: float = 100.0,
    holding: float | None = None,
) -> Float[Tensor, "*batch"]:
    """The money a decision earns over all hours: sum_i price y_i - holding r_i - f(y_i, a_i).

    ``price`` pays each unit of energy made, ``holding`` each unit kept in reserve: None is the
    paper's 20 for wind_bidding, and the task's own for wind_bidding_with_reserve, whose cost has
    it already.
    """
    if isinstance(task, SeparableTask) and isinstance(task.f_terms, _Bid):
        held = (20.0 if holding is None else holding) * task.f_terms.reserve
        return (price * y - held).sum(-1) - task.cost(y, a)
    if not isinstance(task.f, _BidAndReserve):
        terms = task.f_terms if isinstance(task, SeparableTask) else task.f
        raise TypeError(
            f"profit needs a task made by wind_bidding or wind_bidding_with_reserve, which knows "
            f"its reserve, but got one whose terms are {terms!r}. For your own task, subtract its "
            f"cost yourself."
        )
    if holding is not None:
        raise ValueError(
            f"A task made by wind_bidding_with_reserve pays for holding in its cost, at "
            f"{task.f.prices.holding:g}, but got holding={holding:g} again. Leave it out, or make "
            f"the task with that price."
        )
    return price * y.sum(-1) - task.cost(y, a)


@dataclass(frozen=True)
class _Prices:
    """f of one hour for any reserve, plus holding r."""

    deploy: float
    up: float
    up_squared: float
    down: float
    fine: float
    holding: float = 0.0

    def __post_init__(self) -> None:
        check_prices("wind_bidding", vars(self))

    def cost(self, y: Tensor, a: Tensor, r: Tensor | float) -> Tensor:
        """In few operations: the reserve used is short+ - over+, what is spare short+ - short."""
        missing = a - y
        short, over = missing.relu(), (missing - r).relu()
        penalty = over * (self.up_squared * over + (self.up - self.deploy))
        penalty = torch.add(penalty, over.sign(), alpha=self.fine)
        used = torch.add(penalty, short, alpha=self.deploy + self.down)
        cost = torch.add(used, missing, alpha=-self.down)
        return cost + self.holding * r if self.holding else cost

    def mean(self, m: Tensor, s: Tensor, a: Tensor, r: Tensor | float) -> Tensor:
        """E f for y ~ N(m, s^2), with clamp(a - y, 0, r) = (a - y)+ - over+."""
        z = (a - m) / s
        phi, below, above = standard_normal(z)
        short, spare = s * (phi + z * below), s * (phi - z * above)
        z = (a - r - m) / s
        phi, below, _ = standard_normal(z)
        over, over_squared = s * (phi + z * below), s**2 * ((1 + z**2) * below + z * phi)
        penalty = self.up * over + self.up_squared * over_squared + self.fine * below
        return penalty + self.deploy * (short - over) + self.down * spare + self.holding * r


@dataclass(frozen=True)
class _Bid:
    """A class, not a closure, so that the task can be pickled."""

    prices: _Prices
    reserve: float

    def __post_init__(self) -> None:
        check_prices("wind_bidding", {"reserve": self.reserve})

    def __call__(
        self, y: Float[Tensor, "*#batch d"], a: Float[Tensor, "*#batch d"]
    ) -> Float[Tensor, "*batch d"]:
        return self.prices.cost(y, a, self.reserve)

    def mean(self, m: Tensor, s: Tensor, a: Tensor) -> Tensor:
        return self.prices.mean(m, s, a, self.reserve)


@dataclass(frozen=True)
class _BidAndReserve:
    prices: _Prices
    least: float
    most: float
    cap: float

    def __call__(
        self, y: Float[Tensor, "*#batch h"], a: Float[Tensor, "*#batch d"]
    ) -> Float[Tensor, "*batch"]:
        return self.prices.cost(y, *a.chunk(2, -1)).sum(-1)

    def mean(self, m: Tensor, s: Tensor, a: Tensor) -> Tensor:
        return self.prices.mean(m, s, *a.chunk(2, -1)).sum(-1)

    def hindsight(self, y: Float[Tensor, "*batch h"]) -> Float[Tensor, "*batch d"]:
        """The bid y, or the nearest allowed, and the least reserve that is worth its price.

        More than the least can only pay where the plant draws energy (y < 0): the reserve then
        covers all of -y, or it leaves over = (deploy + holding - up) / (2 up_squared).
        """
        p, bid = self.prices, y.clip(0.0, self.cap)
        bend = p.deploy + p.holding - p.up
        left = bend / (2 * p.up_squared) if bend > 0 and p.up_squared > 0 else 0.0
        tried = torch.stack([torch.full_like(y, self.least), bid - y, bid - y - left])
        tried = tried.clip(self.least, self.most)
        k = p.cost(y, bid, tried).argmin(0, keepdim=True)
        return torch.cat([bid, tried.gather(0, k)[0]], -1)
