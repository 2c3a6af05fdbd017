"""What may happen, and what each action costs on average.

Every model in the library says the same kind of thing about x: outcome y_s has
probability w_s(x). The expected cost is then one weighted sum,

    g(x, a) = sum_s w_s(x) f(y_s, a),

whichever model made the weights, and one set of solvers serves them all.

Shapes: B contexts x, J actions each, S scenarios, d decision variables.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Protocol, cast, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from costscape.tasks import SeparableTask, Task

Function = Callable[[Tensor, Tensor], Tensor]

# bytes one evaluation of f may take before it is split
CACHE = 2**23  # on a CPU, where larger temporaries cost ten times as much for each number
GRADIENT = 2**27  # on a CPU with gradients, which a split computes twice
GPU = 2**31


@dataclass(frozen=True)
class Scenarios:
    """Outcome ``values[b, s]`` has probability ``weights[b, s]``.

    ``values`` is (B, S, *y_shape), or (1, S, *y_shape) when every x shares its outcomes.
    """

    weights: Float[Tensor, "B S"]
    values: Float[Tensor, "..."]

    def __len__(self) -> int:
        return len(self.weights)

    @property
    def shared(self) -> bool:
        """Whether all x have the same outcomes, and differ in their weights alone."""
        return len(self.values) == 1

    def rows(self, i: slice) -> "Scenarios":
        return Scenarios(self.weights[i], self.values if self.shared else self.values[i])


def union(parts: list[Scenarios]) -> Scenarios:
    """The equal mixture of several scenario sets for the same x; g is then their mean."""
    if len(parts) == 1:
        return parts[0]
    values = [p.values for p in parts]
    if len({len(v) for v in values}) > 1:
        rows = max(len(v) for v in values)
        values = [v.expand(rows, *v.shape[1:]) for v in values]
    weights = torch.cat([p.weights for p in parts], 1) / len(parts)
    return Scenarios(weights, torch.cat(values, 1))


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

    Actions (1, J, d) are shared by all x; with shared values too, f is evaluated J x S times, not
    B x J x S times, and g is one matrix product. Where one evaluation of f would take more than
    ``memory`` bytes (None: 8 MiB on a CPU, 128 MiB with gradients, 2 GiB on a GPU) it is split
    along S, J or B, and gradients recompute each part.
    """

    task: Task
    scenarios: Scenarios
    memory: int | None = None

    def __len__(self) -> int:
        return len(self.scenarios)

    @property
    def separable(self) -> bool:
        return isinstance(self.task, SeparableTask)

    @property
    def convex(self) -> bool:
        return self.task.convex

    @property
    def shared(self) -> bool:
        return self.scenarios.shared

    def __call__(self, a: Float[Tensor, "#B J d"]) -> Float[Tensor, "B J"]:
        return self._mean(self.task.cost, a)

    def terms(self, a: Float[Tensor, "#B J d"]) -> Float[Tensor, "B J d"]:
        """The d summands of g(x, a), for a SeparableTask."""
        assert isinstance(self.task, SeparableTask)
        return self._mean(self.task.terms, a)

    def rows(self, i: slice) -> "ExpectedCost":
        return ExpectedCost(self.task, self.scenarios.rows(i), self.memory)

    def _mean(self, f: Function, a: Tensor) -> Tensor:
        w, y = self.scenarios.weights, self.scenarios.values
        # f makes a few temporaries as wide as the wider of its two arguments, if it says nothing
        numbers = self.task.width or 4 * max(a.shape[-1], prod(y.shape[2:]))
        width = numbers * a.element_size()
        most = max(1, (self.memory or _bound(a)) // width)
        if _evaluations(a, y) <= most:
            return _weighted(f, a, w, y)
        return _split(f, a, w, y, most)


def _bound(a: Tensor) -> int:
    if a.is_cuda:
        return GPU
    return GRADIENT if torch.is_grad_enabled() else CACHE


def _evaluations(a: Tensor, y: Tensor) -> int:
    return max(len(a), len(y)) * a.shape[1] * y.shape[1]


def _split(f: Function, a: Tensor, w: Tensor, y: Tensor, most: int) -> Tensor:
    """Halve the longest of S, J, B until f is evaluated at most ``most`` times at once."""
    if _evaluations(a, y) <= most:
        if torch.is_grad_enabled():
            return cast(
                Tensor,
                checkpoint(_weighted, f, a, w, y, use_reentrant=False, preserve_rng_state=False),
            )
        return _weighted(f, a, w, y)
    b, j, s = max(len(a), len(y)), a.shape[1], y.shape[1]
    if s >= max(b, j):
        h = s // 2
        left = _split(f, a, w[:, :h], y[:, :h], most)
        return left + _split(f, a, w[:, h:], y[:, h:], most)
    if j >= b:
        h = j // 2
        return torch.cat([_split(f, part, w, y, most) for part in (a[:, :h], a[:, h:])], 1)
    h = b // 2
    parts = [
        _split(f, a if len(a) == 1 else a[i], w[i], y if len(y) == 1 else y[i], most)
        for i in (slice(0, h), slice(h, None))
    ]
    return torch.cat(parts)


def _weighted(f: Function, a: Tensor, w: Tensor, y: Tensor) -> Tensor:
    cost = f(y.unsqueeze(1), a.unsqueeze(2))  # (1 or B, J, S, ...)
    if len(cost) == 1:
        return torch.einsum("bs,js...->bj...", w, cost[0])
    if cost.ndim == 3:
        return torch.einsum("bs,bjs->bj", w, cost)
    # einsum would copy the costs to put S last, which takes longer than the sum
    return torch.matmul(w[:, None, None], cost).squeeze(-2)
