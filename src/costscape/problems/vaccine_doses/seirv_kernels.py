"""SEIRV on a GPU: one kernel for all steps of many simulations, one for their slopes.

The formulas are those of ``seirv``, whose torch operations are 50,000 small kernels for one slope
of a wave; this file is its two large ones. A program simulates one dose plan under one travel
pattern. Its state is four vectors of K numbers in registers: n = S + E + I + R + V, which doses do
not change, S, E and I. The day's flow is a tile of K x K. Regions are padded to a power of two; in
those added flow, S, E, I and beta are 0 and n is 1.

    X1 = x,  X2 = x + h/2 k1,  X3 = x + h/2 k2,  X4 = x + h k3,    ki = slope(Xi)
    x <- x + h/6 (k1 + 2 k2 + 2 k3 + k4)

Triton is imported with this file and comes with torch's builds for CUDA. Without it the kernels
are plain functions, which tests run with a stand-in for ``tl``.
"""

# ruff: noqa: ANN001, ANN201, ANN202
from types import SimpleNamespace
from typing import Any, no_type_check

try:
    import triton  # type: ignore[import-not-found, import-untyped, unused-ignore]
    import triton.language as tl  # type: ignore[import-not-found, import-untyped, unused-ignore]
except ImportError:
    triton, tl = None, SimpleNamespace(constexpr=Any)


def _compiled(f: Any) -> Any:
    """One kernel for all lengths and addresses: a second one cannot be compiled in a recording."""
    if triton is None:
        return f
    # triton would compile anew for lengths of 1 and for addresses that 16 divides
    named = [name for name in f.__code__.co_varnames[: f.__code__.co_argcount] if name.islower()]
    return triton.jit(f, do_not_specialize=named, do_not_specialize_on_alignment=named)


@_compiled
@no_type_check
def _move(x, flow):
    """x @ flow"""
    return tl.sum(x[:, None] * flow, 0)


@_compiled
@no_type_check
def _slope(n, S, E, I, flow, beta, given, floor, sigma, gamma):
    """The slopes of n, S, E and I, and new infections; u = given / max(S + E, floor)."""
    new = beta * S * I / n
    u = given / tl.maximum(S + E, floor)
    kS = _move(S, flow) - new - u * S
    kE = _move(E, flow) + new - u * E - sigma * E
    kI = _move(I, flow) + sigma * E - gamma * I
    return _move(n, flow), kS, kE, kI, new


@_compiled
@no_type_check
def _ahead(n, S, E, I, h, kn, kS, kE, kI):
    return n + h * kn, S + h * kS, E + h * kE, I + h * kI


@_compiled
@no_type_check
def _adjoint(n, S, E, I, qn, qS, qE, qI, q_new, back, beta, given, floor, sigma, gamma):
    """From q, the derivatives in the slopes, to those in n, S, E, I and the doses.

    ``back`` is the transposed flow.
    """
    people = tl.maximum(S + E, floor)
    u = given / people
    force = (qE - qS + q_new) * beta / n
    # u (S + E) stops growing with the doses at u = 1, and u stops falling with S + E at floor
    per_dose = -(qS * S + qE * E) / people
    per_person = tl.where(floor < S + E, -u * per_dose, 0.0)
    gn = _move(qn, back) - force * S * I / n
    gS = _move(qS, back) + force * I - u * qS + per_person
    gE = _move(qE, back) - u * qE + sigma * (qI - qE) + per_person
    gI = _move(qI, back) + force * S - gamma * qI
    return gn, gS, gE, gI, tl.where(people > given, per_dose, 0.0)


@_compiled
@no_type_check
def _write(row, here, K: tl.constexpr, n, S, E, I):
    tl.store(row, n, here)
    tl.store(row + K, S, here)
    tl.store(row + 2 * K, E, here)
    tl.store(row + 3 * K, I, here)


@_compiled
@no_type_check
def forward(
    flow, doses, start, beta, rates, infected, kept,
    patterns, plans, period, days, dose_days, steps,
    K: tl.constexpr, WIDE: tl.constexpr, KEEP: tl.constexpr,
):  # fmt: skip
    """Program p * plans + f simulates plan f under pattern p.

    flow (P, T, K, K), doses and infected (P, F, K), start (4, K) of n, S, E and I, rates of h,
    sigma, gamma and the smallest S + E. kept (days * steps, P, F, 4, K) is the state before each
    step, written if KEEP.
    """
    me = tl.program_id(0).to(tl.int64)
    k = tl.arange(0, WIDE)
    here = k < K
    tile = k[:, None] * K + k[None, :]
    inside = here[:, None] & here[None, :]
    h, sigma, gamma = tl.load(rates), tl.load(rates + 1), tl.load(rates + 2)
    n = tl.load(start + k, here, 1.0)
    S = tl.load(start + K + k, here, 0.0)
    E = tl.load(start + 2 * K + k, here, 0.0)
    I = tl.load(start + 3 * K + k, here, 0.0)
    rate = tl.load(beta + k, here, 0.0)
    plan = tl.load(doses + me * K + k, here, 0.0)
    so_far = plan * 0.0
    for day in range(days):
        G = tl.load(flow + (me // plans * period + day % period) * K * K + tile, inside, 0.0)
        given = tl.where(day < dose_days, plan, 0.0)
        floor = tl.maximum(given, tl.load(rates + 3))
        for step in range(steps):
            if KEEP:
                row = kept + ((day * steps + step) * patterns * plans + me) * 4 * K + k
                _write(row, here, K, n, S, E, I)
            an, aS, aE, aI, a = _slope(n, S, E, I, G, rate, given, floor, sigma, gamma)
            xn, xS, xE, xI = _ahead(n, S, E, I, h / 2, an, aS, aE, aI)
            bn, bS, bE, bI, b = _slope(xn, xS, xE, xI, G, rate, given, floor, sigma, gamma)
            xn, xS, xE, xI = _ahead(n, S, E, I, h / 2, bn, bS, bE, bI)
            cn, cS, cE, cI, c = _slope(xn, xS, xE, xI, G, rate, given, floor, sigma, gamma)
            xn, xS, xE, xI = _ahead(n, S, E, I, h, cn, cS, cE, cI)
            dn, dS, dE, dI, d = _slope(xn, xS, xE, xI, G, rate, given, floor, sigma, gamma)
            n += h / 6 * (an + 2 * bn + 2 * cn + dn)
            S += h / 6 * (aS + 2 * bS + 2 * cS + dS)
            E += h / 6 * (aE + 2 * bE + 2 * cE + dE)
            I += h / 6 * (aI + 2 * bI + 2 * cI + dI)
            so_far += h / 6 * (a + 2 * b + 2 * c + d)
    tl.store(infected + me * K + k, so_far, here)


@_compiled
@no_type_check
def backward(
    flow, back, doses, beta, rates, kept, g_infected, g_doses, states, slopes,
    patterns, plans, period, days, dose_days, steps,
    K: tl.constexpr, WIDE: tl.constexpr, FLOW: tl.constexpr,
):  # fmt: skip
    """g_doses (P, F, K) from g_infected (P, F, K); the rest is as in ``forward``.

    If FLOW, the Xi and the derivatives qi in their slopes are written into states and slopes
    (P, T, F, weeks * steps, 4, 4, K), weeks being the days over T, rounded up, and the axes of 4
    those of i and of n, S, E and I. The derivative in the flow is the sum of X' q.
    """
    me = tl.program_id(0).to(tl.int64)
    p, f = me // plans, me % plans
    k = tl.arange(0, WIDE)
    here = k < K
    tile = k[:, None] * K + k[None, :]
    inside = here[:, None] & here[None, :]
    h, sigma, gamma = tl.load(rates), tl.load(rates + 1), tl.load(rates + 2)
    rate = tl.load(beta + k, here, 0.0)
    plan = tl.load(doses + me * K + k, here, 0.0)
    each = h / 6 * tl.load(g_infected + me * K + k, here, 0.0)
    gn, gS, gE, gI, g_plan = plan * 0.0, plan * 0.0, plan * 0.0, plan * 0.0, plan * 0.0
    weeks = (days + period - 1) // period
    for i in range(days * steps):
        at = days * steps - 1 - i
        day = at // steps
        square = (p * period + day % period) * K * K + tile
        given = tl.where(day < dose_days, plan, 0.0)
        floor = tl.maximum(given, tl.load(rates + 3))
        row = kept + (at * patterns * plans + me) * 4 * K + k
        n = tl.load(row, here, 1.0)
        S = tl.load(row + K, here, 0.0)
        E = tl.load(row + 2 * K, here, 0.0)
        I = tl.load(row + 3 * K, here, 0.0)

        G = tl.load(flow + square, inside, 0.0)
        kn, kS, kE, kI, _ = _slope(n, S, E, I, G, rate, given, floor, sigma, gamma)
        bn, bS, bE, bI = _ahead(n, S, E, I, h / 2, kn, kS, kE, kI)
        kn, kS, kE, kI, _ = _slope(bn, bS, bE, bI, G, rate, given, floor, sigma, gamma)
        cn, cS, cE, cI = _ahead(n, S, E, I, h / 2, kn, kS, kE, kI)
        kn, kS, kE, kI, _ = _slope(cn, cS, cE, cI, G, rate, given, floor, sigma, gamma)
        dn, dS, dE, dI = _ahead(n, S, E, I, h, kn, kS, kE, kI)
        place = ((p * period + day % period) * plans + f) * weeks + day // period
        block = (place * steps + at % steps) * 16 * K + k
        if FLOW:
            _write(states + block, here, K, n, S, E, I)
            _write(states + block + 4 * K, here, K, bn, bS, bE, bI)
            _write(states + block + 8 * K, here, K, cn, cS, cE, cI)
            _write(states + block + 12 * K, here, K, dn, dS, dE, dI)

        # q4 = h/6 g,  q3 = h/3 g + h r4,  q2 = h/3 g + h/2 r3,  q1 = h/6 g + h/2 r2,
        # ri = adjoint(Xi, qi),  g <- g + r1 + r2 + r3 + r4
        G = tl.load(back + square, inside, 0.0)
        pn, pS, pE, pI = h / 6 * gn, h / 6 * gS, h / 6 * gE, h / 6 * gI
        rn, rS, rE, rI, g = _adjoint(
            dn, dS, dE, dI, pn, pS, pE, pI, each, G, rate, given, floor, sigma, gamma
        )
        gn, gS, gE, gI = gn + rn, gS + rS, gE + rE, gI + rI
        if FLOW:
            _write(slopes + block + 12 * K, here, K, pn, pS, pE, pI)
        qn, qS, qE, qI = _ahead(2 * pn, 2 * pS, 2 * pE, 2 * pI, h, rn, rS, rE, rI)
        rn, rS, rE, rI, r = _adjoint(
            cn, cS, cE, cI, qn, qS, qE, qI, 2 * each, G, rate, given, floor, sigma, gamma
        )
        gn, gS, gE, gI, g = gn + rn, gS + rS, gE + rE, gI + rI, g + r
        if FLOW:
            _write(slopes + block + 8 * K, here, K, qn, qS, qE, qI)
        qn, qS, qE, qI = _ahead(2 * pn, 2 * pS, 2 * pE, 2 * pI, h / 2, rn, rS, rE, rI)
        rn, rS, rE, rI, r = _adjoint(
            bn, bS, bE, bI, qn, qS, qE, qI, 2 * each, G, rate, given, floor, sigma, gamma
        )
        gn, gS, gE, gI, g = gn + rn, gS + rS, gE + rE, gI + rI, g + r
        if FLOW:
            _write(slopes + block + 4 * K, here, K, qn, qS, qE, qI)
        qn, qS, qE, qI = _ahead(pn, pS, pE, pI, h / 2, rn, rS, rE, rI)
        rn, rS, rE, rI, r = _adjoint(
            n, S, E, I, qn, qS, qE, qI, each, G, rate, given, floor, sigma, gamma
        )
        gn, gS, gE, gI, g = gn + rn, gS + rS, gE + rE, gI + rI, g + r
        if FLOW:
            _write(slopes + block, here, K, qn, qS, qE, qI)
        g_plan += tl.where(day < dose_days, g, 0.0)
    tl.store(g_doses + me * K + k, g_plan, here)
