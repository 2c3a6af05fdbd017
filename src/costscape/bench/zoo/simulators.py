"""Costs that step through time: a stock that is carried over, and a queue.

The action of step t is a_t >= 0, the outcome y_t in [0, cap] of a box [0, cap]^d.
"""

from dataclasses import dataclass

import torch
from torch import Tensor


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
