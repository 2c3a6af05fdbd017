"""One hour of n LSTMs, and its adjoint, as two Triton kernels: formulas of ``stacked``.

A program does some rows of the batch and some hidden units of one network, all four gates of them:
the product with the hour before, then the cell. An hour is a launch, since each needs all units of
the hour before. Sums are in a fixed order: the same bits every time.

Triton is imported with this file, so that nothing else imports this file before a GPU needs it.
Without Triton the file can be read, and the kernels cannot be called.
"""

# ruff: noqa: ANN001, ANN202
from types import SimpleNamespace
from typing import Any, no_type_check

import torch
from torch import Tensor

from costscape.training.cuda.triton_support import on

try:
    import triton  # type: ignore[import-not-found, import-untyped, unused-ignore]
    import triton.language as tl  # type: ignore[import-not-found, import-untyped, unused-ignore]
except ImportError:
    triton, tl = None, SimpleNamespace(constexpr=Any)

ROWS, UNITS = 32, 16  # of a program
DEPTH, DEPTH_BACK = 64, 128  # of a product, at once
OPTIONS = {"num_warps": 4, "num_stages": 4}
HOPPER = (9, 0)  # from here on an hour's programs may start while those of the hour before end


def forward(pre: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """W x + b (n, T, B, 4H), which becomes the gates; c and h (n, T, B, H)."""
    n, T, B, H = *pre.shape[:3], v.shape[2]
    c = pre.new_empty(n, T, B, H)
    h, v = torch.empty_like(c), v.contiguous()
    with on(pre):
        for t in range(T):
            _forward[_grid(n, B, H)](
                pre, v, c, h, t, T, B,
                H=H, FIRST=t == 0, DEPTH=_depth(DEPTH, H), **_shape(pre, t > 0),
            )  # fmt: skip
    return pre, c, h


def backward(dh: Tensor, v: Tensor, gates: Tensor, c: Tensor) -> Tensor:
    """The adjoint of W x + b, (n, T, B, 4H), from that of h, or of its last hour alone."""
    n, T, B, H = c.shape
    d, dc, v = torch.empty_like(gates), c.new_empty(n, B, H), v.contiguous()
    with on(c):
        for t in reversed(range(T)):
            _backward[_grid(n, B, H)](
                dh, v, gates, c, d, dc, t, T, B,
                H=H, FIRST=t == 0, LAST=t + 1 == T, EVERY=dh.ndim == 4,
                DEPTH=_depth(DEPTH_BACK, 4 * H), **_shape(c, t + 1 < T),
            )  # fmt: skip
    return d


def _grid(n: int, B: int, H: int) -> tuple[int, int, int]:
    return H // UNITS, -(-B // ROWS), n


def _depth(most: int, total: int) -> int:
    """The largest power of two that divides the total and is not above the most."""
    return min(most, total & -total)


def _shape(like: Tensor, follows: bool) -> dict[str, Any]:
    """``follows``: the launch before is of the same kernel."""
    rounds = torch.backends.cudnn.rnn.fp32_precision == "tf32"  # type: ignore[attr-defined]
    precision = "tf32" if rounds else "ieee"
    # those of several networks fill the GPU anyway, and would only be in each other's way
    early = len(like) == 1 and like.is_cuda and torch.cuda.get_device_capability() >= HOPPER
    shape = {"ROWS": ROWS, "UNITS": UNITS, "PRECISION": precision, "EARLY": early, **OPTIONS}
    return {**shape, "launch_pdl": follows} if early else shape


def _jit(f: Any) -> Any:
    """One kernel for all hours and batch sizes: lengths 1, say, would be kernels of their own."""
    return triton and triton.jit(f, do_not_specialize=["t", "T", "B"])


@_jit
@no_type_check
def _tanh(x):
    return 2 * tl.sigmoid(2 * x) - 1


@_jit
@no_type_check
def _forward(
    gates, v, c, h, t, T, B,
    H: tl.constexpr, FIRST: tl.constexpr, DEPTH: tl.constexpr,
    ROWS: tl.constexpr, UNITS: tl.constexpr, PRECISION: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    if EARLY:
        tl.extra.cuda.gdc_launch_dependents()
        tl.extra.cuda.gdc_wait()  # all of the hour before is written now
    j = tl.program_id(0) * UNITS + tl.arange(0, UNITS)
    b = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    member = tl.program_id(2).to(tl.int64)
    inside = (b < B)[:, None]
    now = ((member * T + t) * B + b)[:, None]
    at = gates + now * (4 * H) + j[None, :]
    i = tl.load(at, mask=inside, other=0.0)
    f = tl.load(at + H, mask=inside, other=0.0)
    g = tl.load(at + 2 * H, mask=inside, other=0.0)
    o = tl.load(at + 3 * H, mask=inside, other=0.0)
    own = now * H + j[None, :]
    if not FIRST:
        k = tl.arange(0, DEPTH)
        left = h + (now - B) * H + k[None, :]
        right = v + member * (4 * H * H) + j[None, :] * H + k[:, None]
        for deep in range(0, H, DEPTH):
            x = tl.load(left + deep, mask=inside, other=0.0)
            i = tl.dot(x, tl.load(right + deep), i, input_precision=PRECISION)
            f = tl.dot(x, tl.load(right + H * H + deep), f, input_precision=PRECISION)
            g = tl.dot(x, tl.load(right + 2 * H * H + deep), g, input_precision=PRECISION)
            o = tl.dot(x, tl.load(right + 3 * H * H + deep), o, input_precision=PRECISION)
    i, f, g, o = tl.sigmoid(i), tl.sigmoid(f), _tanh(g), tl.sigmoid(o)
    cell = i * g
    if not FIRST:
        cell += f * tl.load(c + own - B * H, mask=inside, other=0.0)
    tl.store(at, i, mask=inside)
    tl.store(at + H, f, mask=inside)
    tl.store(at + 2 * H, g, mask=inside)
    tl.store(at + 3 * H, o, mask=inside)
    tl.store(c + own, cell, mask=inside)
    tl.store(h + own, o * _tanh(cell), mask=inside)


@_jit
@no_type_check
def _backward(
    dh, v, gates, c, d, dc, t, T, B,
    H: tl.constexpr, FIRST: tl.constexpr, LAST: tl.constexpr, EVERY: tl.constexpr,
    DEPTH: tl.constexpr, ROWS: tl.constexpr, UNITS: tl.constexpr, PRECISION: tl.constexpr,
    EARLY: tl.constexpr,
):  # fmt: skip
    if EARLY:
        tl.extra.cuda.gdc_launch_dependents()
        tl.extra.cuda.gdc_wait()  # all of the hour before is written now
    j = tl.program_id(0) * UNITS + tl.arange(0, UNITS)
    b = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    member = tl.program_id(2).to(tl.int64)
    inside = (b < B)[:, None]
    now = ((member * T + t) * B + b)[:, None]
    own = now * H + j[None, :]
    alone = (member * B + b)[:, None] * H + j[None, :]  # where there is one hour
    if EVERY:
        into = tl.load(dh + own, mask=inside, other=0.0)
    elif LAST:
        into = tl.load(dh + alone, mask=inside, other=0.0)
    else:
        into = tl.zeros((ROWS, UNITS), dtype=tl.float32)
    if not LAST:
        k = tl.arange(0, DEPTH)
        left = d + (now + B) * (4 * H) + k[None, :]
        right = v + member * (4 * H * H) + k[:, None] * H + j[None, :]
        for deep in range(0, 4 * H, DEPTH):
            x = tl.load(left + deep, mask=inside, other=0.0)
            into = tl.dot(x, tl.load(right + deep * H), into, input_precision=PRECISION)
    at = now * (4 * H) + j[None, :]
    i = tl.load(gates + at, mask=inside, other=0.0)
    f = tl.load(gates + at + H, mask=inside, other=0.0)
    g = tl.load(gates + at + 2 * H, mask=inside, other=0.0)
    o = tl.load(gates + at + 3 * H, mask=inside, other=0.0)
    bent = _tanh(tl.load(c + own, mask=inside, other=0.0))
    down = into * o * (1 - bent * bent)
    held = dc + alone
    if not LAST:
        down += tl.load(held, mask=inside, other=0.0)
    before = tl.zeros_like(f)
    if not FIRST:
        before = tl.load(c + own - B * H, mask=inside, other=0.0)
    tl.store(d + at, down * g * i * (1 - i), mask=inside)
    tl.store(d + at + H, down * before * f * (1 - f), mask=inside)
    tl.store(d + at + 2 * H, down * i * (1 - g * g), mask=inside)
    tl.store(d + at + 3 * H, into * bent * o * (1 - o), mask=inside)
    tl.store(held, down * f, mask=inside)
