"""The expected cost sum_s w_s f(y_s, a) for many x and actions, computed in parts that fit memory.

    E[f(y, a) | x]  =  sum_s w_s(x) f(y_s(x), a)

One evaluation of f holds B x J x S costs and some temporaries of their width. What takes more than
a bound is halved along S, J or B. With gradients, each part is computed again in the backward
pass (``torch.utils.checkpoint``), so that memory does not grow with the number of parts.
"""

from collections.abc import Callable
from math import prod

import torch
from jaxtyping import Float
from torch import Tensor
from torch.utils.checkpoint import checkpoint

Function = Callable[[Tensor, Tensor], Tensor]

# bytes that one evaluation of f may take before it is split
CACHE = 2**20  # on a CPU, where larger temporaries cost four times as much for each number
SEARCH = 2**22  # on a CPU, where whole x are computed at a time
GRADIENT = 2**27  # on a CPU with gradients, since a split computes f twice
PART = 2**24  # of each part of such a split
GPU = 2**31
COPIES = 4  # temporaries of one argument


def weighted(
    f: Function,
    a: Float[Tensor, "#B J d"],
    w: Float[Tensor, "B S"],
    y: Float[Tensor, "..."],
    numbers: int | None = None,
    memory: int | None = None,
) -> Float[Tensor, "..."]:
    """Return the expected cost (B, J), or (B, J, d) for an f that returns terms by coordinate.

    Args:
        f: the cost, or its terms by coordinate.
        a: actions, shared by all x where the first axis has length 1.
        w: weights of the scenarios.
        y: outcomes (B or 1, S, *y_shape), shared by all x where the first axis has length 1.
        numbers: how many numbers f holds at once for one pair of y and a; None estimates four
            times the wider of the two.
        memory: bytes that one evaluation may take; None takes what suits the device.
    """
    width = _width(a, y, numbers) * a.element_size()
    most = max(1, (memory or _bound(a)) // width)
    if _evaluations(a, y) <= most:
        return _weighted(f, a, w, y)
    if torch.is_grad_enabled() and a.device.type == "cpu" and numbers is None:
        most = min(most, max(1, PART // width))
    return _split(f, a, w, y, most)


def weighted_rows(
    f: Function,
    a: Float[Tensor, "#B J d"],
    w: Float[Tensor, "B S"],
    y: Float[Tensor, "..."],
    numbers: int | None = None,
    memory: int | None = None,
) -> Float[Tensor, "B J d"]:
    """``weighted`` of terms by coordinate, faster where each x has its own outcomes.

    Only whole x are computed at a time, and the J x d sums over S of each x are one product.
    Sums are rounded otherwise than by ``weighted``. Without gradients.
    """
    width = _width(a, y, numbers) * a.element_size()
    bound = memory or (GPU if a.is_cuda else SEARCH * torch.get_num_threads())
    rows = bound // (width * a.shape[1] * y.shape[1])
    if rows == 0 or len(y) == 1 < len(w):
        return weighted(f, a, w, y, numbers, memory)
    if rows >= len(w):
        return _terms(f, a, w, y)
    parts = [slice(i, i + rows) for i in range(0, len(w), rows)]
    return torch.cat([_terms(f, a if len(a) == 1 else a[i], w[i], y[i]) for i in parts])


def _terms(f: Function, a: Tensor, w: Tensor, y: Tensor) -> Tensor:
    cost = f(y.unsqueeze(1), a.unsqueeze(2))
    B, J, S, d = cost.shape
    if len(w) != B:
        return _total(cost, w)
    # outcomes side by side in memory make costs that lie by coordinate, then by action
    first = cost.permute(0, 3, 1, 2)
    if first.is_contiguous():
        return torch.bmm(first.view(B, d * J, S), w.unsqueeze(-1)).view(B, d, J).mT
    return torch.bmm(cost.mT.reshape(B, J * d, S), w.unsqueeze(-1)).view(B, J, d)


def _width(a: Tensor, y: Tensor, numbers: int | None) -> int:
    """How many numbers one pair takes, including its part of what f computes of y alone."""
    of_y = prod(y.shape[2:])
    if numbers is None:
        return COPIES * max(a.shape[-1], of_y)
    return numbers + COPIES * of_y * len(y) * y.shape[1] // max(1, _evaluations(a, y))


def _bound(a: Tensor) -> int:
    if a.is_cuda:
        return GPU
    return GRADIENT if torch.is_grad_enabled() else CACHE


def _evaluations(a: Tensor, y: Tensor) -> int:
    return max(len(a), len(y)) * a.shape[1] * y.shape[1]


def _split(f: Function, a: Tensor, w: Tensor, y: Tensor, most: int) -> Tensor:
    """Halve the longest of S, J, B until f is evaluated at most ``most`` times at once."""
    if _evaluations(a, y) <= most:
        if not torch.is_grad_enabled():
            return _weighted(f, a, w, y)
        cost: Tensor = checkpoint(
            _weighted, f, a, w, y, use_reentrant=False, preserve_rng_state=False
        )
        return cost
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
    return _total(f(y.unsqueeze(1), a.unsqueeze(2)), w)


def _total(cost: Tensor, w: Tensor) -> Tensor:
    """The sum over S of costs (1 or B, J, S, ...)."""
    if len(cost) == 1:
        return torch.einsum("bs,js...->bj...", w, cost[0])
    if cost.ndim == 3:
        return torch.einsum("bs,bjs->bj", w, cost)
    # einsum would copy the costs to put S last, which takes longer than the sum
    return torch.matmul(w[:, None, None], cost).squeeze(-2)
