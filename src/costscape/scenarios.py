"""Weighted outcomes, and the expected cost of an action.

Every model of the library gives outcomes y_s with probabilities w_s(x). The expected cost is

    g(x, a) = sum_s w_s(x) f(y_s, a),

whichever model gives them, and one set of solvers serves all models.

Shapes: B contexts x, J actions each, S scenarios, d decision variables.
"""

from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from costscape.expectation import CACHE, Function, weighted, weighted_rows
from costscape.task import Task

EVALUATE = 50  # multiplications in a matrix product that take as long as one evaluation of f


@dataclass(frozen=True)
class Scenarios:
    """Outcome ``values[b, s]`` has probability ``weights[b, s]``.

    Args:
        weights: (B, S).
        values: (B, S, *y_shape), or (1, S, *y_shape) where all x share their outcomes.
        own: bool, default False. True if a single x does not share its outcomes, so that it is
            decided as among others.

    >>> len(Scenarios(torch.full((5, 2), 0.5), torch.zeros(1, 2, 3)))
    5
    """

    weights: Float[Tensor, "B S"]
    values: Float[Tensor, "..."]
    own: bool = False

    def __len__(self) -> int:
        return len(self.weights)

    @property
    def shared(self) -> bool:
        """Whether all x have the same outcomes, and differ in their weights only."""
        return not self.own and self.values.shape[0] == 1

    def rows(self, i: slice | Int64[Tensor, "n"]) -> "Scenarios":
        """Some of the x; a tensor of indices may repeat them."""
        if self.shared:
            return Scenarios(self.weights[i], self.values)
        return Scenarios(self.weights[i], self.values[i], own=True)

    def by_coordinate(self) -> "Scenarios":
        """The same, with all outcomes of one coordinate side by side in memory, which is fast."""
        if self.values.ndim != 3:
            return self
        return replace(self, values=self.values.mT.contiguous().mT)

    def pruned(self, eps: float) -> "Scenarios":
        """The same without the lightest outcomes, at most eps of the weight of each x.

        The best action without them costs at most eps times the spread of f more than the best.
        The outcomes of one x do not depend on other x: where only some x need an outcome, it has
        weight 0 for the others. Shared outcomes become each x's own where that takes fewer
        evaluations. Nothing changes if half of the outcomes or more would stay.
        """
        w, y = self.weights, self.values
        heavy = w >= _light(w, eps)
        most = int(heavy.sum(1).max()) if len(w) else 0
        needed = heavy.any(0).nonzero()[:, 0] if self.shared else None
        stay = most if needed is None else len(needed)
        if needed is not None and EVALUATE * len(w) * most < (EVALUATE + len(w)) * stay:
            needed, stay = None, most
        if 2 * stay > w.shape[1]:
            return self
        if needed is not None:
            few = w[:, needed].where(heavy[:, needed], 0.0)
            return Scenarios(few, y[:, needed])
        w, k = w.where(heavy, 0.0).topk(most, 1)
        rows = torch.arange(len(k), device=k.device)[:, None]
        return Scenarios(w, y[0][k] if self.shared else y[rows, k], own=True)

    def thinned(self, most: int) -> "Scenarios":
        """At most ``most`` scenarios for each x, of equal weight where there were more.

        Systematic resampling (Kitagawa, 1996): scenario s is taken once for each of the points
        (i + 1/2) / most, i = 0 .. most - 1, in its part of the cumulated weights.
        """
        w, y = self.weights, self.values
        if w.shape[1] <= most:
            return self
        ends = w.double().cumsum(1)
        points = (torch.arange(most, device=w.device, dtype=ends.dtype) + 0.5) / most
        index = torch.searchsorted(ends / ends[:, -1:], points.expand(len(w), -1).contiguous())
        rows = torch.arange(len(w), device=w.device)[:, None]
        values = y[0][index] if len(y) == 1 else y[rows, index]
        return Scenarios(w.new_full(index.shape, 1 / most), values, own=True)


def _light(w: Tensor, eps: float) -> Tensor:
    """A threshold for each x: the weights below it sum to at most eps. A power of 2 times eps / S.

    Bisection reads the weights four times, which is faster than sorting them.
    """
    thresholds = []
    for part in w.split(max(1, CACHE // (w.element_size() * w.shape[1]))):
        tau = torch.full_like(part[:, :1], eps / w.shape[1])
        for power in (8, 4, 2, 1):
            more = tau * 2**power
            below = part.masked_fill(part >= more, 0.0).sum(1, keepdim=True)
            tau = torch.where(below <= eps, more, tau)
        thresholds.append(tau)
    return torch.cat(thresholds)


def union(parts: list[Scenarios], shares: list[float] | None = None) -> Scenarios:
    """The mixture of several scenario sets for the same x; g is then their weighted mean.

    ``shares`` are the weights of the parts, equal by default.
    """
    if len(parts) == 1:
        return parts[0]
    shares = shares or [1 / len(parts)] * len(parts)
    rows = max(p.values.shape[0] for p in parts)  # len() would fix the rows of an exported model
    values = [p.values.expand(rows, *p.values.shape[1:]) for p in parts]
    weights = torch.cat([share * p.weights for p, share in zip(parts, shares, strict=True)], 1)
    return Scenarios(weights, torch.cat(values, 1), own=not all(p.shared for p in parts))


@runtime_checkable
class Surface(Protocol):
    """An objective that may be a sum over coordinates, g = sum_i g_i(x, a_i), and says so."""

    @property
    def separable(self) -> bool: ...

    @property
    def convex(self) -> bool: ...

    @property
    def shared(self) -> bool:
        """Whether actions shared by all x cost hardly more than those of one x."""

    def terms(self, a: Tensor) -> Tensor:
        """Actions (B or 1, J, d) -> the d summands (B, J, d)."""

    def rows(self, i: slice) -> "Surface":
        """The same for some of the x."""


@dataclass(frozen=True)
class ExpectedCost:
    """g(x, a) for a batch of x: call it with actions (B, J, d) for costs (B, J).

    Args:
        task: Task. Gives f.
        scenarios: Scenarios. Gives the outcomes and weights of each of the B contexts x.
        memory: int, default None. Bytes that one evaluation of f may take before it is split along
            S, J or B; then gradients recompute each part. None for 1 MiB on a CPU, 128 MiB with
            gradients, 2 GiB on a GPU.

    Actions (1, J, d) are shared by all x; with shared values too, f is evaluated J x S times, not
    B x J x S times, and g is one matrix product.

    >>> import costscape as cs
    >>> import torch
    >>> task = cs.SeparableTask(lambda y, a: (y - a).abs(), cs.Box(0.0, 9.0, dim=1), convex=True)
    >>> outcomes = cs.Scenarios(torch.tensor([[0.25, 0.75]]), torch.tensor([[[0.0], [4.0]]]))
    >>> g = cs.ExpectedCost(task, outcomes)
    >>> g(torch.tensor([[[0.0], [4.0]]]))
    tensor([[3., 1.]])
    """

    task: Task
    scenarios: Scenarios
    memory: int | None = None

    @staticmethod
    def at(task: Task, x: Float[Tensor, "B ..."], scenarios: Scenarios) -> "ExpectedCost":
        """g at rows x: with a cost of x, each row's outcomes carry its context."""
        if task.joins:
            values = task.join(x, scenarios.values)
            scenarios = Scenarios(scenarios.weights, values, own=True)
        return ExpectedCost(task, scenarios)

    def __len__(self) -> int:
        return len(self.scenarios)

    @property
    def separable(self) -> bool:
        return self.task.separable

    @property
    def convex(self) -> bool:
        return self.task.convex

    @property
    def shared(self) -> bool:
        return self.scenarios.shared

    def __call__(self, a: Float[Tensor, "#B J d"]) -> Float[Tensor, "B J"]:
        return self.mean(self.task.cost, a)

    def terms(self, a: Float[Tensor, "#B J d"]) -> Float[Tensor, "B J d"]:
        """The d summands of g(x, a), for a task that is ``separable``."""
        return self.mean(self.task.terms, a)

    def search_terms(self, a: Float[Tensor, "#B J d"]) -> Float[Tensor, "B J d"]:
        """``terms``, faster and rounded otherwise; for searches without gradients."""
        w, y = self.scenarios.weights, self.scenarios.values
        return weighted_rows(self.task.terms, a, w, y, self.task.width, self.memory)

    def rows(self, i: slice) -> "ExpectedCost":
        return ExpectedCost(self.task, self.scenarios.rows(i), self.memory)

    def on(self, scenarios: Scenarios) -> "ExpectedCost":
        """The same cost, of other scenarios."""
        return ExpectedCost(self.task, scenarios, self.memory)

    def mean(self, f: Function, a: Float[Tensor, "#B J d"]) -> Float[Tensor, "..."]:
        """sum_s w_s f(y_s, a) of any f of outcomes and actions."""
        w, y = self.scenarios.weights, self.scenarios.values
        return weighted(f, a, w, y, self.task.width, self.memory)
