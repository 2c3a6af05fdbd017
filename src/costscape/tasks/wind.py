"""Bid wind energy for tomorrow, with a reserve to fall back on.

Per hour, y the energy made, a the energy bid, r the reserve, over = a - r - y:

    f = up over + up_squared over^2 + deploy r + fine    if over > 0       (the reserve is short)
        deploy (a - y)                                   if a - r <= y <= a
        down (y - a)                                     if y > a          (sold at a discount)

and the profit is price y - holding r - f (the paper's Appendix, Wind Power Bidding; there up,
up_squared, down, deploy, fine, price, holding are dP_up1, dP_up2, dP_down, mu, F, P, nu). f
jumps by ``fine`` where the reserve runs out, so it is neither convex nor continuous in a.
"""

from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor

from costscape.sets.box import Box
from costscape.tasks.base import SeparableTask
from costscape.tasks.prices import check_prices
from costscape.tasks.two_sided import standard_normal


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
    the least allowed, which is optimal: with a - r kept, the mean of f + holding r changes with r
    at the rate (deploy + down) P(y <= a) + holding - down, never negative where holding >= down.
    Had y been known, the best bid is y itself.
    """
    cost = _Bid(reserve, deploy, up, up_squared, down, fine)
    return SeparableTask(
        cost,
        Box(0.0, cap, dim=hours),
        hindsight=partial(torch.clip, min=0.0, max=cap),
        normal=cost.mean,
    )


def profit(
    task: SeparableTask,
    y: Float[Tensor, "*#batch d"],
    a: Float[Tensor, "*#batch d"],
    *,
    price: float = 100.0,
    holding: float = 20.0,
) -> Float[Tensor, "*batch"]:
    """The money a bid earns over all hours: sum_i price y_i - holding r - f(y_i, a_i).

    ``price`` pays each unit of energy made, ``holding`` each unit kept in reserve.
    """
    if not isinstance(task.f_terms, _Bid):
        raise TypeError(
            f"profit needs a task made by wind_bidding, which knows its reserve, but got one "
            f"whose terms are {task.f_terms!r}. For your own task, subtract its cost yourself."
        )
    return (price * y - holding * task.f_terms.reserve).sum(-1) - task.cost(y, a)


@dataclass(frozen=True)
class _Bid:
    """A class, not a closure, so that the task can be pickled."""

    reserve: float
    deploy: float
    up: float
    up_squared: float
    down: float
    fine: float

    def __post_init__(self) -> None:
        check_prices("wind_bidding", vars(self))

    def __call__(
        self, y: Float[Tensor, "*#batch d"], a: Float[Tensor, "*#batch d"]
    ) -> Float[Tensor, "*batch d"]:
        short = a - y
        over = short - self.reserve
        penalty = (self.up * over + self.up_squared * over**2 + self.fine) * (over > 0)
        return penalty + self.deploy * short.clamp(0, self.reserve) + self.down * (-short).relu()

    def mean(self, m: Tensor, s: Tensor, a: Tensor) -> Tensor:
        """E f for y ~ N(m, s^2), with clamp(a - y, 0, r) = (a - y)+ - over+."""
        z = (a - m) / s
        phi, below, above = standard_normal(z)
        short, spare = s * (phi + z * below), s * (phi - z * above)
        z = (a - self.reserve - m) / s
        phi, below, _ = standard_normal(z)
        over, over_squared = s * (phi + z * below), s**2 * ((1 + z**2) * below + z * phi)
        penalty = self.up * over + self.up_squared * over_squared + self.fine * below
        return penalty + self.deploy * (short - over) + self.down * spare
