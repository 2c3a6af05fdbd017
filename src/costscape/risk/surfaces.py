"""What solvers are given: the risk of the cost, and the values that a service level limits.

Both need all scenarios of a row at once, so that memory is bounded by parts of the rows and of
the actions only. With gradients, each part is computed again in the backward pass.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

import torch
from jaxtyping import Float
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from costscape.chance import Chance
from costscape.expectation import CACHE, COPIES, GPU, GRADIENT, Function
from costscape.risk.calibration import Levels, rank
from costscape.risk.measures import CVaR, Risk
from costscape.scenarios import Scenarios
from costscape.task import Refusal, Task

SORT = 8  # numbers that sorting a cost takes
ROUNDING = 1e-6  # of the weights

Summary = Callable[
    [Tensor, Tensor], Tensor
]  # values (#B, J, S, ...), weights (B, S) -> (B, J, ..)


@dataclass(frozen=True)
class RiskCost:
    """rho(f(y_1, a), ..., f(y_S, a)) for a batch of x: actions (B, J, d) -> risks (B, J).

    Args:
        task: Task. Gives f.
        scenarios: Scenarios. Gives the outcomes and weights of each of the B contexts x.
        risk: Risk. The measure rho.
        memory: int, default None. Bytes that one evaluation may take before it is split; None for
            what suits the device, as for ``ExpectedCost``.

    A risk is no sum over the coordinates of a, also where f is.

    >>> import costscape as cs
    >>> import torch
    >>> task = cs.SeparableTask(lambda y, a: (y - a).abs(), cs.Box(0.0, 9.0, dim=1), convex=True)
    >>> outcomes = cs.Scenarios(torch.tensor([[0.25, 0.75]]), torch.tensor([[[0.0], [4.0]]]))
    >>> cs.RiskCost(task, outcomes, cs.WorstCase())(torch.tensor([[[0.0], [3.0]]]))
    tensor([[4., 3.]])
    """

    task: Task
    scenarios: Scenarios
    risk: Risk
    memory: int | None = None

    def __len__(self) -> int:
        return len(self.scenarios)

    @property
    def separable(self) -> bool:
        return False

    @property
    def convex(self) -> bool:
        return self.task.convex and self.risk.convex

    @property
    def shared(self) -> bool:
        return False  # sorting takes as long as f

    def __call__(self, a: Float[Tensor, "#B J d"]) -> Float[Tensor, "B J"]:
        return summarised(
            self.task.cost, self.risk, a, self.scenarios, self.task.width, self.memory
        )

    def terms(self, a: Float[Tensor, "#B J d"]) -> Float[Tensor, "B J d"]:
        raise Refusal("A risk of the cost has no terms: it is no sum over the coordinates of a.")

    def rows(self, i: slice) -> "RiskCost":
        return RiskCost(self.task, self.scenarios.rows(i), self.risk, self.memory)


@dataclass(frozen=True)
class ServiceLimit:
    """v(x, a) (B, J, k): what is missing of the level of each constraint, <= 0 where it is kept.

    Args:
        chance: Chance. The constraint.
        task: Task. Gives the number of axes of y.
        scenarios: Scenarios. Gives the outcomes and weights of each of the B contexts x.
        levels: tuple of Levels, default (). Recalibrated levels of the k constraints; without
            them, v is the level less the weight of scenarios with h <= 0.

    >>> import costscape as cs
    >>> import torch
    >>> task = cs.Task(lambda y, a: a.sum(-1), cs.Box(0.0, 9.0, dim=1))
    >>> outcomes = cs.Scenarios(torch.full((1, 4), 0.25), torch.tensor([[[1.0], [2], [3], [4]]]))
    >>> limit = ServiceLimit(cs.Chance(lambda y, a: y - a, 0.75), task, outcomes)
    >>> limit(torch.tensor([[[2.0], [3.0]]]))[0, :, 0].round(decimals=2)
    tensor([0.2500, -0.0000])
    """

    chance: Chance
    task: Task
    scenarios: Scenarios
    levels: tuple[Levels, ...] = ()

    def __call__(self, a: Float[Tensor, "#B J d"]) -> Float[Tensor, "B J k"]:
        return self._summarised(self._shortfalls, a)

    def tail(self, a: Float[Tensor, "#B J d"]) -> Float[Tensor, "B J k"]:
        """CVaR of h at the level: where it is <= 0 the level is kept; convex in a where h is."""
        return self._summarised(self._tails, a)

    def probability(self, a: Float[Tensor, "#B J d"]) -> Float[Tensor, "B J k"]:
        """P(h <= 0): the weight of scenarios, or the recalibrated frequency."""
        return self._summarised(self._holds, a)

    def rows(self, i: slice) -> "ServiceLimit":
        return ServiceLimit(self.chance, self.task, self.scenarios.rows(i), self.levels)

    def _summarised(self, summary: Summary, a: Tensor) -> Tensor:
        def h(y: Tensor, a: Tensor) -> Tensor:
            return self.chance.values(y, a, 3)

        return summarised(h, summary, a, self.scenarios, self.task.width, None)

    def _shortfalls(self, h: Tensor, w: Tensor) -> Tensor:
        return self._each(h, lambda i, part: self._shortfall(part, w, i))

    def _tails(self, h: Tensor, w: Tensor) -> Tensor:
        measure = CVaR(self.chance.level)
        risks = [measure.recalibrated(levels) for levels in self.levels]
        return self._each(h, lambda i, part: (risks[i] if risks else measure)(part, w))

    def _holds(self, h: Tensor, w: Tensor) -> Tensor:
        return self._each(h, lambda i, part: self._probability(part, w, i))

    def _each(self, h: Tensor, of: Callable[[int, Tensor], Tensor]) -> Tensor:
        if self.levels and len(self.levels) != h.shape[-1]:
            raise ValueError(
                f"h returned {h.shape[-1]} constraints, but {len(self.levels)} in calibrate. "
                f"Call calibrate(X, Y, chance=...) with this Chance."
            )
        return torch.stack([of(i, h[..., i]) for i in range(h.shape[-1])], -1)

    def _shortfall(self, h: Tensor, w: Tensor, i: int) -> Tensor:
        if self.levels:
            wanted = self.levels[i].to_scenarios(self.chance.level)
            return wanted - rank(h, w[:, None], 0.0, self.levels[i].scale, last=True)
        return self.chance.level - ROUNDING - self._probability(h, w, i)

    def _probability(self, h: Tensor, w: Tensor, i: int) -> Tensor:
        if self.levels:
            u = rank(h, w[:, None], 0.0, self.levels[i].scale, last=True)
            return self.levels[i].to_frequency(u)
        return (w[:, None] * (h <= 0)).sum(-1) / w.sum(-1)[:, None]


def summarised(
    f: Function,
    summary: Summary,
    a: Float[Tensor, "#B J d"],
    scenarios: Scenarios,
    numbers: int | None = None,
    memory: int | None = None,
) -> Float[Tensor, "B J ..."]:
    """``summary`` of f over the scenarios of each row, in parts that fit ``memory``."""
    w, y = scenarios.weights, scenarios.values
    grad = torch.is_grad_enabled() and a.requires_grad
    bound = memory or (GPU if a.is_cuda else GRADIENT if grad else CACHE)
    width = SORT + (numbers or COPIES * max(a.shape[-1], prod(y.shape[2:])))
    most = max(1, bound // (width * a.element_size() * y.shape[1]))
    return _parts(f, summary, a, w, y, most, grad and len(w) * a.shape[1] > most)


def _parts(
    f: Function, summary: Summary, a: Tensor, w: Tensor, y: Tensor, most: int, recompute: bool
) -> Tensor:
    """Halve the longer of B and J until at most ``most`` pairs are evaluated at once."""
    b, j = len(w), a.shape[1]
    if b * j <= most or max(b, j) < 2:
        if not recompute:
            return _part(f, summary, a, w, y)
        value: Tensor = checkpoint(
            _part, f, summary, a, w, y, use_reentrant=False, preserve_rng_state=False
        )
        return value
    if j >= b:
        halves = [_parts(f, summary, h, w, y, most, recompute) for h in a.tensor_split(2, 1)]
        return torch.cat(halves, 1)
    halves = [
        _parts(
            f,
            summary,
            a if len(a) == 1 else a[i],
            w[i],
            y if len(y) == 1 else y[i],
            most,
            recompute,
        )
        for i in (slice(0, b // 2), slice(b // 2, None))
    ]
    return torch.cat(halves)


def _part(f: Function, summary: Summary, a: Tensor, w: Tensor, y: Tensor) -> Tensor:
    return summary(f(y.unsqueeze(1), a.unsqueeze(2)), w)
