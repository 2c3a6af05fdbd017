"""sum_s w_s f(y_s, a) for many x and actions, in parts that fit where they are computed."""

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from math import prod
from typing import Any, cast

import torch
from jaxtyping import Float
from torch import Tensor
from torch.utils.checkpoint import checkpoint

Function = Callable[[Tensor, Tensor], Tensor]

# bytes one evaluation of f may take before it is split
CACHE = 2**20  # on a CPU, where larger temporaries cost four times as much for each number
GRADIENT = 2**27  # on a CPU with gradients, which a split computes twice
PART = 2**24  # of such a split
GPU = 2**31
COPIES = 4  # temporaries of one argument

# glibc returns freed memory to the system, which hands it out anew page by page, a quarter of a
# larger step's time; once a block of almost 32 MiB has been freed it keeps twice as much for the
# next use
torch.empty(2**25 - 2**16, dtype=torch.uint8)


def weighted(
    f: Function,
    a: Float[Tensor, "#B J d"],
    w: Float[Tensor, "B S"],
    y: Float[Tensor, "..."],
    numbers: int | None = None,
    memory: int | None = None,
) -> Float[Tensor, "..."]:
    """(B, J), or (B, J, d) for an f of terms; y is (B or 1, S, *y_shape).

    ``numbers`` is how many f keeps at once for one pair of y and a, None for a guess; ``memory``
    the bytes it may take, None for what suits the device. What takes more is split along S, J or
    B, and gradients recompute each part.
    """
    width = _width(a, y, numbers) * a.element_size()
    most = max(1, (memory or _bound(a)) // width)
    if _evaluations(a, y) <= most:
        return _weighted(f, a, w, y)
    graded = torch.is_grad_enabled() and any(v.requires_grad for v in (a, w, y))
    if graded and a.device.type == "cpu" and not learns(f, a, y):
        part = most if numbers else min(most, max(1, PART // width))
        return _Recomputed.apply(f, part, a, w, y)  # type: ignore[no-any-return,no-untyped-call]
    return _split(f, a, w, y, most)


def pulled_back(
    f: Function,
    a: Float[Tensor, "#B J d"],
    w: Float[Tensor, "B S"],
    y: Float[Tensor, "..."],
    grad: Float[Tensor, "..."],
    numbers: int | None = None,
    memory: int | None = None,
) -> tuple[Float[Tensor, "B S"], Float[Tensor, "..."]]:
    """The gradients of w and y, from that of ``weighted``; by parts, and without its value."""
    width = _width(a, y, numbers) * a.element_size()
    part = max(1, (memory or (GRADIENT if numbers else PART)) // width)
    _, of_w, of_y = _by_parts(f, part, (a, w, y), (False, True, True), grad)
    assert of_w is not None
    assert of_y is not None
    return of_w, of_y


def fits(a: Tensor, rows: int, y: Tensor, numbers: int | None, memory: int | None) -> bool:
    """Whether a gradient on a CPU takes so many rows at once, each with outcomes like y."""
    one = a.shape[1] * y.shape[1] * _width(a[:1], y[:1], numbers) * a.element_size()
    return rows * one <= (memory or GRADIENT)


def _width(a: Tensor, y: Tensor, numbers: int | None) -> int:
    """How many numbers one pair takes, its part of what f makes of y alone among them."""
    of_y = prod(y.shape[2:])
    if numbers is None:  # a few temporaries as wide as the wider of its two arguments
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


def learns(f: Function, a: Tensor, y: Tensor) -> bool:
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
        if torch.is_grad_enabled():  # a gradient of the gradient will be asked for
            a, w, y = inputs
            out = _split(ctx.f, a, w, y, ctx.most)
            return None, None, *_pulled(out, inputs, needed, grad, create_graph=True)
        return None, None, *_by_parts(ctx.f, ctx.most, inputs, needed, grad)


def _by_parts(
    f: Function, most: int, inputs: Sequence[Tensor], needed: Sequence[bool], grad: Tensor
) -> list[Tensor | None]:
    """The gradients of a, w and y that are needed, each part's written where it belongs."""
    a, _, y = inputs
    whole = [torch.zeros_like(v) if n else None for v, n in zip(inputs, needed, strict=True)]
    for i, j, s in _parts(a, y, most):
        at = (i, j), (i, s), (i, s)
        args = [_at(v, *k).detach() for v, k in zip(inputs, at, strict=True)]
        with torch.enable_grad():
            for v, n in zip(args, needed, strict=True):
                v.requires_grad_(n)
            out = _weighted(f, *args)
        for total, k, part in zip(whole, at, _pulled(out, args, needed, grad[i, j]), strict=True):
            if total is not None and part is not None:
                _at(total, *k).add_(part)
    return whole


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
