"""People n who travel, on a GPU: one kernel for all steps, one for their slopes.

    dn/dt = n G,    X1 = n,  X2 = n + h/2 X1 G,  X3 = n + h/2 X2 G,  X4 = n + h X3 G
                    n <- n + h/6 (X1 + 2 X2 + 2 X3 + X4) G

A program is one travel pattern; the rest is as in ``seirv_kernels``.
"""

# ruff: noqa: ANN001, ANN201
from typing import no_type_check

from costscape.problems.vaccine_doses.kernel_parts import compiled, move, tl


@compiled
@no_type_check
def forward(
    flow, start, rates, stages, period, days, steps, K: tl.constexpr, WIDE: tl.constexpr
):  # fmt: skip
    """X1 to X4 of each step into stages (P, days * steps, 4, K), from start (K)."""
    p = tl.program_id(0).to(tl.int64)
    k = tl.arange(0, WIDE)
    here = k < K
    tile = k[:, None] * K + k[None, :]
    inside = here[:, None] & here[None, :]
    h = tl.load(rates)
    n = tl.load(start + k, here, 0.0)
    for day in range(days):
        G = tl.load(flow + (p * period + day % period) * K * K + tile, inside, 0.0)
        for step in range(steps):
            row = stages + (p * days * steps + day * steps + step) * 4 * K + k
            tl.store(row, n, here)
            a = move(n, G)
            x = n + h / 2 * a
            tl.store(row + K, x, here)
            b = move(x, G)
            x = n + h / 2 * b
            tl.store(row + 2 * K, x, here)
            c = move(x, G)
            x = n + h * c
            tl.store(row + 3 * K, x, here)
            n += h / 6 * (a + 2 * b + 2 * c + move(x, G))


@compiled
@no_type_check
def backward(
    back, g_stages, rates, slopes, period, days, steps, K: tl.constexpr, WIDE: tl.constexpr
):  # fmt: skip
    """From the derivatives in X1 to X4 to those in X1 G to X4 G; back is the transposed flow."""
    p = tl.program_id(0).to(tl.int64)
    k = tl.arange(0, WIDE)
    here = k < K
    tile = k[:, None] * K + k[None, :]
    inside = here[:, None] & here[None, :]
    h = tl.load(rates)
    g = tl.load(g_stages + k, here, 0.0) * 0.0
    for i in range(days * steps):
        at = days * steps - 1 - i
        G = tl.load(back + (p * period + at // steps % period) * K * K + tile, inside, 0.0)
        row = (p * days * steps + at) * 4 * K + k
        q = h / 6 * g
        tl.store(slopes + row + 3 * K, q, here)
        r4 = tl.load(g_stages + row + 3 * K, here, 0.0) + move(q, G)
        q = h / 3 * g + h * r4
        tl.store(slopes + row + 2 * K, q, here)
        r3 = tl.load(g_stages + row + 2 * K, here, 0.0) + move(q, G)
        q = h / 3 * g + h / 2 * r3
        tl.store(slopes + row + K, q, here)
        r2 = tl.load(g_stages + row + K, here, 0.0) + move(q, G)
        q = h / 6 * g + h / 2 * r2
        tl.store(slopes + row, q, here)
        g += r2 + r3 + r4 + tl.load(g_stages + row, here, 0.0) + move(q, G)
