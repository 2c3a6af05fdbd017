"""What may happen, and what each action costs on average.

Every model in the library says the same kind of thing about x: outcome y_s has
probability w_s(x). The expected cost is then one weighted sum,

    g(x, a) = sum_s w_s(x) f(y_s, a),

whichever model made the weights, and one set of solvers serves them all.

Shapes: B contexts x, J actions each, S scenarios, d decision variables.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any, Protocol, cast, runtime_checkable

import torch
from jaxtyping import Float, Int64
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from costscape.tasks import SeparableTask, Task

Function = Callable[[Tensor, Tensor], Tensor]

# bytes one evaluation of f may take before it is split
CACHE = 2**20  # on a CPU, where larger temporaries cost four times as much for each number
GRADIENT = 2**27  # on a CPU with gradients, which a split computes twice
PART = 2**24  # of such a split
GPU = 2**31

EVALUATE = 50  # multiplications in a matrix product that take as long as one evaluation of f


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

    def pick(self, i: Int64[Tensor, "n"]) -> "Scenarios":
        """Some of the x, in any order, as often as they are named."""
        return Scenarios(self.weights[i], self.values if self.shared else self.values[i])

    def by_coordinate(self) -> "Scenarios":
        """The same numbers, with all outcomes of one coordinate side by side in memory.

        What f computes from them lies in memory as they do, and long runs are quick to compute
        where y meets a, and to sum.
        """
        if self.values.ndim != 3:
            return self
        return Scenarios(self.weights, self.values.mT.contiguous().mT)

    def pruned(self, eps: float) -> "Scenarios":
        """The same without the lightest outcomes, at most eps in all for each x.

        g(x, a) - g(x, a') moves by at most eps max_s |f(y_s, a) - f(y_s, a')|: what is best
        without them costs at most eps times the spread of f more than what is best. What is kept
        for one x does not depend on the others: an outcome that only some need weighs 0 for the
        rest. Outcomes that were shared come as each x's own where that is less to evaluate. All
        is left as it is if half of the outcomes or more would stay.
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
        return Scenarios(w, y[0][k] if self.shared else y[rows, k])


def _light(w: Tensor, eps: float) -> Tensor:
    """A weight for each x, all below which are at most eps together; a power of 2 times eps / S.

    Bisection takes four looks at the weights, where sorting them would take as long as the rest.
    """
    most = []
    for part in w.split(max(1, CACHE // (w.element_size() * w.shape[1]))):
        tau = torch.full_like(part[:, :1], eps / w.shape[1])
        for power in (8, 4, 2, 1):
            more = tau * 2**power
            below = part.masked_fill(part >= more, 0.0).sum(1, keepdim=True)
            tau = torch.where(below <= eps, more, tau)
        most.append(tau)
    return torch.cat(most)


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
    ``memory`` bytes (None: 1 MiB on a CPU, 128 MiB with gradients, 2 GiB on a GPU) it is split
    along S, J or B, and gradients recompute each part. On a CPU what a gradient takes does not
    grow with B then, beyond weights, values and their gradients.
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

    def on(self, scenarios: Scenarios) -> "ExpectedCost":
        """The same cost, of other scenarios."""
        return ExpectedCost(self.task, scenarios, self.memory)

    def _mean(self, f: Function, a: Tensor) -> Tensor:
        w, y = self.scenarios.weights, self.scenarios.values
        # f makes a few temporaries as wide as the wider of its two arguments, if it says nothing
        numbers = self.task.width or 4 * max(a.shape[-1], prod(y.shape[2:]))
        width = numbers * a.element_size()
        most = max(1, (self.memory or _bound(a)) // width)
        if _evaluations(a, y) <= most:
            return _weighted(f, a, w, y)
        graded = torch.is_grad_enabled() and any(v.requires_grad for v in (a, w, y))
        if graded and a.device.type == "cpu" and not _learns(f, a, y):
            part = most if self.task.width else min(most, max(1, PART // width))
            return _Recomputed.apply(f, part, a, w, y)  # type: ignore[no-any-return,no-untyped-call]
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


def _learns(f: Function, a: Tensor, y: Tensor) -> bool:
    """Whether f itself holds something that gradients go to."""
    with torch.enable_grad():
        return f(y[:1, None, :1].detach(), a[:1, :1, None].detach()).requires_grad


class _Recomputed(torch.autograd.Function):
    """_weighted by parts that fit in the cache, each computed again on the way back.

    Nothing is kept but the arguments, and the gradients are written where they belong: memory
    does not grow with the number of parts.
    """

    @staticmethod
    def forward(ctx: Any, f: Function, most: int, a: Tensor, w: Tensor, y: Tensor) -> Tensor:
        ctx.save_for_backward(a, w, y)
        ctx.f, ctx.most = f, most
        out: Tensor | None = None
        for i, j, s in _parts(a, y, most):
            part = _weighted(f, _at(a, i, j), _at(w, i, s), _at(y, i, s))
            if out is None:
                rows = max(len(w), len(a), len(y))
                out = part.new_zeros(rows, a.shape[1], *part.shape[2:])
            out[i, j] += part
        assert out is not None
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        inputs, needed = ctx.saved_tensors, ctx.needs_input_grad[2:]
        a, w, y = inputs
        if torch.is_grad_enabled():  # a gradient of the gradient will be asked for
            out = _split(ctx.f, a, w, y, ctx.most)
            return None, None, *_pulled(out, inputs, needed, grad, create_graph=True)
        whole = [torch.zeros_like(v) if n else None for v, n in zip(inputs, needed, strict=True)]
        for i, j, s in _parts(a, y, ctx.most):
            at = (i, j), (i, s), (i, s)
            args = [_at(v, *k).detach() for v, k in zip(inputs, at, strict=True)]
            with torch.enable_grad():
                for v, n in zip(args, needed, strict=True):
                    v.requires_grad_(n)
                out = _weighted(ctx.f, *args)
            for total, k, part in zip(
                whole, at, _pulled(out, args, needed, grad[i, j]), strict=True
            ):
                if total is not None and part is not None:
                    _at(total, *k).add_(part)
        return None, None, *whole


def _pulled(
    out: Tensor,
    inputs: Sequence[Tensor],
    needed: Sequence[bool],
    grad: Tensor,
    create_graph: bool = False,
) -> list[Tensor | None]:
    """The gradient of each input that needs one; None where out does not depend on it."""
    if not out.requires_grad:
        return [None] * len(inputs)
    some = [v for v, n in zip(inputs, needed, strict=True) if n]
    found = iter(
        torch.autograd.grad(out, some, grad, create_graph=create_graph, allow_unused=True)
    )
    return [next(found) if n else None for n in needed]


def _at(v: Tensor, i: slice, j: slice) -> Tensor:
    """Some rows and columns; what all rows share stays."""
    return v[:, j] if len(v) == 1 else v[i, j]


def _parts(a: Tensor, y: Tensor, most: int) -> Iterator[tuple[slice, slice, slice]]:
    """B, J and S cut so that f is evaluated at most ``most`` times at once: B first, S last."""
    b, j, s = max(len(a), len(y)), a.shape[1], y.shape[1]
    s_part = min(s, most)
    j_part = min(j, max(1, most // s_part))
    rows = [slice(None)] if b == 1 else _slices(b, max(1, most // (s_part * j_part)))
    return product(rows, _slices(j, j_part), _slices(s, s_part))


def _slices(n: int, part: int) -> list[slice]:
    return [slice(i, min(n, i + part)) for i in range(0, n, part)]


def _weighted(f: Function, a: Tensor, w: Tensor, y: Tensor) -> Tensor:
    cost = f(y.unsqueeze(1), a.unsqueeze(2))  # (1 or B, J, S, ...)
    if len(cost) == 1:
        return torch.einsum("bs,js...->bj...", w, cost[0])
    if cost.ndim == 3:
        return torch.einsum("bs,bjs->bj", w, cost)
    # einsum would copy the costs to put S last, which takes longer than the sum
    return torch.matmul(w[:, None, None], cost).squeeze(-2)
