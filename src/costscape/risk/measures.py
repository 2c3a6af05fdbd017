"""Risk measures: pure functions of the costs of scenarios and their weights.

    rho_b(a)  =  rho(costs[b, a, :], weights[b, :])

Each is differentiable in the costs. A measure that is convex and never falls when a cost rises
keeps a convex cost convex: rho(f(y_1, .), ..., f(y_S, .)) is then convex in a.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float
from torch import Tensor

from costscape.training.settings import BelowOne, Checked, NotNegative, Positive

if TYPE_CHECKING:
    from costscape.risk.calibration import Levels

TAIL = 1e-6  # the least tail of a recalibrated CVaR


class Risk(Checked, ABC):
    """The base of all risk measures. A measure is a frozen dataclass; this base has no settings.

    >>> import costscape as cs
    >>> isinstance(cs.CVaR(0.9), cs.Risk)
    True
    """

    @property
    @abstractmethod
    def convex(self) -> bool:
        """Whether the risk of a convex cost is convex in the action."""

    @abstractmethod
    def __call__(
        self, costs: Float[Tensor, "#B J S"], weights: Float[Tensor, "B S"]
    ) -> Float[Tensor, "B J"]:
        """The risk of each action; costs (1, J, S) are shared by all rows."""

    def recalibrated(self, levels: "Levels") -> "Risk":
        """The same risk where the levels of the scenarios' costs are known to be off."""
        return self


@dataclass(frozen=True)
class CVaR(Risk):
    """The mean of the worst share 1 - level of the costs.

    Args:
        level: float in [0, 1), default 0.9. 0 is the mean.

    By Rockafellar and Uryasev (2000) it is min_t t + sum_s w_s (f_s - t)+ / (1 - level), and the
    best t is a quantile: the costs are sorted and the worst of them averaged.

    >>> import torch
    >>> costs, weights = torch.tensor([[[1.0, 2.0, 3.0, 10.0]]]), torch.full((1, 4), 0.25)
    >>> CVaR(0.5)(costs, weights)
    tensor([[6.5000]])
    """

    level: BelowOne = 0.9

    @property
    def convex(self) -> bool:
        return True

    def __call__(
        self, costs: Float[Tensor, "#B J S"], weights: Float[Tensor, "B S"]
    ) -> Float[Tensor, "B J"]:
        tail = 1 - self.level
        worst, order = costs.sort(-1, descending=True)
        w = along(weights, order)
        # of each scenario, the weight within the tail; in double, since tails may be short
        used = w.double().cumsum(-1).clamp(max=tail)
        inside = used.diff(dim=-1, prepend=torch.zeros_like(used[..., :1]))
        inside = inside / used[..., -1:]  # weights may sum to a little less than 1
        return (inside.to(costs) * worst).sum(-1)

    def recalibrated(self, levels: "Levels") -> "CVaR":
        """The tail begins at the recalibrated quantile."""
        return replace(self, level=min(max(levels.to_scenarios(self.level), 0.0), 1 - TAIL))


@dataclass(frozen=True)
class Entropic(Risk):
    """log(sum_s w_s exp(theta f_s)) / theta: large costs count more, in a smooth way.

    Args:
        theta: float > 0, in 1 / the unit of the cost. For small theta it is about the mean plus
            theta / 2 times the variance; for large theta it is the worst cost.

    >>> import torch
    >>> Entropic(1.0)(torch.tensor([[[0.0, 2.0]]]), torch.full((1, 2), 0.5)).round(decimals=3)
    tensor([[1.4340]])
    """

    theta: Positive

    @property
    def convex(self) -> bool:
        return True

    def __call__(
        self, costs: Float[Tensor, "#B J S"], weights: Float[Tensor, "B S"]
    ) -> Float[Tensor, "B J"]:
        w = weights / weights.sum(-1, keepdim=True)
        return torch.logsumexp(self.theta * costs + w.log()[:, None], -1) / self.theta


@dataclass(frozen=True)
class MeanDeviation(Risk):
    """mean + weight E (f - mean)+, the mean and a share of the mean cost above the mean.

    Args:
        weight: float >= 0, default 1.0. Up to 1 the risk of a convex cost is convex.

    E (f - mean)+ is half of the mean absolute deviation.

    >>> import torch
    >>> MeanDeviation(0.5)(torch.tensor([[[0.0, 2.0]]]), torch.full((1, 2), 0.5))
    tensor([[1.2500]])
    """

    weight: NotNegative = 1.0

    @property
    def convex(self) -> bool:
        return self.weight <= 1

    def __call__(
        self, costs: Float[Tensor, "#B J S"], weights: Float[Tensor, "B S"]
    ) -> Float[Tensor, "B J"]:
        w = (weights / weights.sum(-1, keepdim=True))[:, None]
        mean = (w * costs).sum(-1)
        return mean + self.weight * (w * (costs - mean[..., None]).relu()).sum(-1)


@dataclass(frozen=True)
class WorstCase(Risk):
    """The largest cost of all scenarios that count.

    Args:
        least: float, default 1e-6. Scenarios of this weight or less do not count: the weights of
            a softmax or a kernel are never 0.

    >>> import torch
    >>> WorstCase()(torch.tensor([[[1.0, 5.0, 9.0]]]), torch.tensor([[0.5, 0.5, 0.0]]))
    tensor([[5.]])
    """

    least: BelowOne = 1e-6

    @property
    def convex(self) -> bool:
        return True

    def __call__(
        self, costs: Float[Tensor, "#B J S"], weights: Float[Tensor, "B S"]
    ) -> Float[Tensor, "B J"]:
        # the heaviest counts always, should all be light
        counts = (weights > self.least) | (weights == weights.amax(-1, keepdim=True))
        return costs.masked_fill(~counts[:, None], -torch.inf).amax(-1)


def along(weights: Float[Tensor, "B S"], order: Tensor) -> Float[Tensor, "B J S"]:
    """The weights in the order of sorted costs, whose indices are (1 or B, J, S)."""
    shape = (len(weights), *order.shape[1:])
    return weights[:, None].expand(shape).gather(-1, order.expand(shape))
