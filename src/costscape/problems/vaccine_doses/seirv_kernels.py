"""Steps of RK4 for SEIRV and their adjoint, as two Triton kernels: formulas of ``seirv_steps``.

A program simulates one dose plan under one mobility from the first step to the last. Its state
(n, S, E, I) is four vectors of K numbers in registers, the day's G a tile of K x K, and
x @ G = sum_i x[i] G[i, :]. Regions are padded to a power of two: in those added G, S, E, I and
beta are 0 and n is 1.

Triton is imported with this file, so that nothing else imports this file before a GPU needs it.
Without Triton the file can be read, and the kernels cannot be called.
"""

# ruff: noqa: ANN001, ANN201, ANN202
from inspect import signature
from types import SimpleNamespace
from typing import Any, no_type_check

try:
    import triton  # type: ignore[import-not-found, import-untyped, unused-ignore]
    import triton.language as tl  # type: ignore[import-not-found, import-untyped, unused-ignore]
except ImportError:
    triton, tl = None, SimpleNamespace(constexpr=Any)


def _jit(f: Any) -> Any:
    """One kernel for all lengths and addresses: a new one could not be made within a graph."""
    named = [v for v in signature(f).parameters if v not in f.__annotations__]
    # lengths that are 1, and addresses that 16 divides, would be kernels of their own
    every = {"do_not_specialize": named, "do_not_specialize_on_alignment": named}
    return triton and triton.jit(f, **every)


@_jit
@no_type_check
def _products(n, S, E, I, beta, given, floor):
    """beta / n, new, max(S + E, doses) and minus the rate of doses."""
    force = beta / n
    most = tl.maximum(S + E, floor)
    return force, S * I * force, most, -given / most


@_jit
@no_type_check
def _travel(x, G):
    return tl.sum(x[:, None] * G, 0)


@_jit
@no_type_check
def _slope(n, S, E, I, G, beta, given, floor, h, sigma, gamma):
    """k of each, and new; G is times h."""
    _, new, _, u = _products(n, S, E, I, beta, given, floor)
    kS = _travel(S, G) + h * (u * S - new)
    kE = _travel(E, G) + h * (new + u * E - sigma * E)
    kI = _travel(I, G) + h * (sigma * E - gamma * I)
    return _travel(n, G), kS, kE, kI, new


@_jit
@no_type_check
def _ahead(n, S, E, I, c, kn, kS, kE, kI):
    return n + c * kn, S + c * kS, E + c * kE, I + c * kI


@_jit
@no_type_check
def _step(n, S, E, I, infected, G, beta, given, floor, h, sigma, gamma):
    kn, kS, kE, kI, new = _slope(n, S, E, I, G, beta, given, floor, h, sigma, gamma)
    en, eS, eE, eI = _ahead(n, S, E, I, 1 / 6, kn, kS, kE, kI)
    infected += h / 6 * new
    xn, xS, xE, xI = _ahead(n, S, E, I, 0.5, kn, kS, kE, kI)

    kn, kS, kE, kI, new = _slope(xn, xS, xE, xI, G, beta, given, floor, h, sigma, gamma)
    en, eS, eE, eI = _ahead(en, eS, eE, eI, 1 / 3, kn, kS, kE, kI)
    infected += h / 3 * new
    xn, xS, xE, xI = _ahead(n, S, E, I, 0.5, kn, kS, kE, kI)

    kn, kS, kE, kI, new = _slope(xn, xS, xE, xI, G, beta, given, floor, h, sigma, gamma)
    en, eS, eE, eI = _ahead(en, eS, eE, eI, 1 / 3, kn, kS, kE, kI)
    infected += h / 3 * new
    xn, xS, xE, xI = _ahead(n, S, E, I, 1.0, kn, kS, kE, kI)

    kn, kS, kE, kI, new = _slope(xn, xS, xE, xI, G, beta, given, floor, h, sigma, gamma)
    en, eS, eE, eI = _ahead(en, eS, eE, eI, 1 / 6, kn, kS, kE, kI)
    return en, eS, eE, eI, infected + h / 6 * new


@_jit
@no_type_check
def _load(at, k, here, K: tl.constexpr):
    n = tl.load(at + k, here, 1.0)
    S = tl.load(at + K + k, here, 0.0)
    E = tl.load(at + 2 * K + k, here, 0.0)
    return n, S, E, tl.load(at + 3 * K + k, here, 0.0)


@_jit
@no_type_check
def _store(at, k, here, n, S, E, I, K: tl.constexpr):
    tl.store(at + k, n, here)
    tl.store(at + K + k, S, here)
    tl.store(at + 2 * K + k, E, here)
    tl.store(at + 3 * K + k, I, here)


@_jit
@no_type_check
def forward(
    flow, doses, start, people, beta, infected, end, kept,
    T, P, F, days, dose_days, steps, stride, h, sigma, gamma, least,
    K: tl.constexpr, WIDE: tl.constexpr, KEEP: tl.constexpr,
):  # fmt: skip
    """One program for each p and f. kept[i // stride] (P, F, 4, K) is n, S, E, I before step i."""
    at = tl.program_id(0).to(tl.int64)
    p, f = at // F, at % F
    k = tl.arange(0, WIDE)
    here = k < K
    tile = k[:, None] * K + k[None, :]
    inside = here[:, None] & here[None, :]
    n = tl.load(people + k, here, 1.0)
    S = tl.load(start + k, here, 0.0)
    E = tl.load(start + K + k, here, 0.0)
    I = tl.load(start + 2 * K + k, here, 0.0)
    ill = tl.load(beta + k, here, 0.0)
    plan = tl.load(doses + at * K + k, here, 0.0)
    floor = tl.maximum(plan, least)
    so_far = tl.zeros([WIDE], tl.float32)
    for day in range(days):
        G = tl.load(flow + ((day % T) * P + p) * K * K + tile, inside, 0.0) * h
        given = tl.where(day < dose_days, plan, 0.0)
        for j in range(steps):
            if KEEP:
                i = day * steps + j
                row = (i // stride).to(tl.int64)
                if i % stride == 0:
                    _store(kept + (row * P * F + at) * 4 * K, k, here, n, S, E, I, K)
            n, S, E, I, so_far = _step(n, S, E, I, so_far, G, ill, given, floor, h, sigma, gamma)
    tl.store(infected + at * K + k, so_far, here)
    last = end + (p * 3 * F + f) * K + k
    tl.store(last, S, here)
    tl.store(last + F * K, E, here)
    tl.store(last + 2 * F * K, I, here)


@_jit
@no_type_check
def _back(
    n, S, E, I, qn, qS, qE, qI, g_infected, back, beta, given, floor, h, sigma, gamma,
    PEOPLE: tl.constexpr,
):  # fmt: skip
    """From q, the adjoint of k, to that of where the slope was taken, of -doses and of beta."""
    force, _, most, u = _products(n, S, E, I, beta, given, floor)
    hS, hE, hI = h * qS, h * qE, h * qI
    g_new = hE - hS + g_infected
    # no slope where the doses of a day are more than the people, u = 1
    part = tl.where(most > given, (hS * S + hE * E) / most, 0.0)
    gS = _travel(qS, back) + u * (hS - part) + g_new * force * I
    gE = _travel(qE, back) + u * (hE - part) + sigma * (hI - hE)
    gI = _travel(qI, back) + g_new * force * S - gamma * hI
    gn, g_force = qn, qn
    if PEOPLE:
        g_force = g_new * S * I / n
        gn = _travel(qn, back) - g_force * force
    return gn, gS, gE, gI, part, g_force


@_jit
@no_type_check
def _outer(square, n, S, E, I, qn, qS, qE, qI):
    """q' x, the adjoint of G transposed: ``_travel`` has q along the rows as well."""
    square += qn[:, None] * n[None, :]
    square += qS[:, None] * S[None, :]
    square += qE[:, None] * E[None, :]
    return square + qI[:, None] * I[None, :]


@_jit
@no_type_check
def backward(
    flow, back, doses, beta, kept, g_infected, g_end, g_doses, g_flow, g_rest,
    T, P, F, parts, days, dose_days, steps, rows, stride, h, sigma, gamma, least,
    K: tl.constexpr, WIDE: tl.constexpr, AGAIN: tl.constexpr, PEOPLE: tl.constexpr,
    FLOW: tl.constexpr,
):  # fmt: skip
    """One program for each p and part of the f, one f after the other.

    ``back`` is G transposed, and so is g_flow (parts, T, P, K, K), which is added to. AGAIN:
    ``kept`` has stride - 1 rows more, for the states between. g_rest (P, F, 5, K) is of n, S, E,
    I and beta.
    """
    me = tl.program_id(0).to(tl.int64)
    p, mine = me // parts, me % parts
    k = tl.arange(0, WIDE)
    here = k < K
    tile = k[:, None] * K + k[None, :]
    inside = here[:, None] & here[None, :]
    ill = tl.load(beta + k, here, 0.0)
    N = days * steps
    for f in range(mine, F, parts):
        at = p * F + f
        plan = tl.load(doses + at * K + k, here, 0.0)
        floor = tl.maximum(plan, least)
        gi = h * tl.load(g_infected + at * K + k, here, 0.0)
        last = g_end + (p * 3 * F + f) * K + k
        gS = tl.load(last, here, 0.0)
        gE = tl.load(last + F * K, here, 0.0)
        gI = tl.load(last + 2 * F * K, here, 0.0)
        gn = tl.zeros([WIDE], tl.float32)
        g_plan = tl.zeros([WIDE], tl.float32)
        g_ill = tl.zeros([WIDE], tl.float32)
        for r in range(rows):
            first = (rows - 1 - r) * stride
            until = tl.minimum(first + stride, N)
            if AGAIN:
                row = (rows - 1 - r).to(tl.int64)
                n, S, E, I = _load(kept + (row * P * F + at) * 4 * K, k, here, K)
                for i in range(first, until - 1):
                    day = i // steps
                    G = tl.load(flow + ((day % T) * P + p) * K * K + tile, inside, 0.0) * h
                    given = tl.where(day < dose_days, plan, 0.0)
                    n, S, E, I, _ = _step(n, S, E, I, n, G, ill, given, floor, h, sigma, gamma)
                    row = (rows + i - first).to(tl.int64)
                    _store(kept + (row * P * F + at) * 4 * K, k, here, n, S, E, I, K)
                tl.debug_barrier()
            for j in range(until - first):
                i = until - 1 - j
                day = i // steps
                square = ((day % T) * P + p) * K * K
                row = tl.where(i == first, rows - 1 - r, rows + i - first - 1).to(tl.int64)
                n, S, E, I = _load(kept + (row * P * F + at) * 4 * K, k, here, K)
                dosed = day < dose_days
                given = tl.where(dosed, plan, 0.0)

                # the four states at which slopes are taken
                G = tl.load(flow + square + tile, inside, 0.0) * h
                an, aS, aE, aI, _ = _slope(n, S, E, I, G, ill, given, floor, h, sigma, gamma)
                an, aS, aE, aI = _ahead(n, S, E, I, 0.5, an, aS, aE, aI)
                bn, bS, bE, bI, _ = _slope(an, aS, aE, aI, G, ill, given, floor, h, sigma, gamma)
                bn, bS, bE, bI = _ahead(n, S, E, I, 0.5, bn, bS, bE, bI)
                cn, cS, cE, cI, _ = _slope(bn, bS, bE, bI, G, ill, given, floor, h, sigma, gamma)
                cn, cS, cE, cI = _ahead(n, S, E, I, 1.0, cn, cS, cE, cI)

                G = tl.load(back + square + tile, inside, 0.0) * h
                # n's adjoint is 0 throughout unless PEOPLE
                qn, qS, qE, qI = gn / 6, gS / 6, gE / 6, gI / 6
                if FLOW:
                    g_square = tl.zeros([WIDE, WIDE], tl.float32)
                    g_square = _outer(g_square, cn, cS, cE, cI, qn, qS, qE, qI)
                xn, xS, xE, xI, part, g_force = _back(
                    cn, cS, cE, cI, qn, qS, qE, qI, gi / 6, G, ill, given, floor,
                    h, sigma, gamma, PEOPLE,
                )  # fmt: skip
                tn, tS, tE, tI = _ahead(gn, gS, gE, gI, 1.0, xn, xS, xE, xI)
                g_given, forces = part, g_force

                qn, qS, qE, qI = gn / 3 + xn, gS / 3 + xS, gE / 3 + xE, gI / 3 + xI
                if FLOW:
                    g_square = _outer(g_square, bn, bS, bE, bI, qn, qS, qE, qI)
                xn, xS, xE, xI, part, g_force = _back(
                    bn, bS, bE, bI, qn, qS, qE, qI, gi / 3, G, ill, given, floor,
                    h, sigma, gamma, PEOPLE,
                )  # fmt: skip
                tn, tS, tE, tI = _ahead(tn, tS, tE, tI, 1.0, xn, xS, xE, xI)
                g_given, forces = g_given + part, forces + g_force

                qn, qS, qE, qI = _ahead(gn / 3, gS / 3, gE / 3, gI / 3, 0.5, xn, xS, xE, xI)
                if FLOW:
                    g_square = _outer(g_square, an, aS, aE, aI, qn, qS, qE, qI)
                xn, xS, xE, xI, part, g_force = _back(
                    an, aS, aE, aI, qn, qS, qE, qI, gi / 3, G, ill, given, floor,
                    h, sigma, gamma, PEOPLE,
                )  # fmt: skip
                tn, tS, tE, tI = _ahead(tn, tS, tE, tI, 1.0, xn, xS, xE, xI)
                g_given, forces = g_given + part, forces + g_force

                qn, qS, qE, qI = _ahead(gn / 6, gS / 6, gE / 6, gI / 6, 0.5, xn, xS, xE, xI)
                if FLOW:
                    g_square = _outer(g_square, n, S, E, I, qn, qS, qE, qI)
                xn, xS, xE, xI, part, g_force = _back(
                    n, S, E, I, qn, qS, qE, qI, gi / 6, G, ill, given, floor,
                    h, sigma, gamma, PEOPLE,
                )  # fmt: skip
                _, gS, gE, gI = _ahead(tn, tS, tE, tI, 1.0, xn, xS, xE, xI)
                g_plan -= tl.where(dosed, g_given + part, 0.0)
                if PEOPLE:
                    gn = tn + xn
                    g_ill += forces + g_force
                if FLOW:
                    into = g_flow + mine * T * P * K * K + square + tile
                    tl.store(into, tl.load(into, inside, 0.0) + h * g_square, inside)
                    tl.debug_barrier()
        tl.store(g_doses + at * K + k, g_plan, here)
        if PEOPLE:
            rest = g_rest + at * 5 * K
            _store(rest, k, here, gn, gS, gE, gI, K)
            tl.store(rest + 4 * K + k, g_ill, here)
