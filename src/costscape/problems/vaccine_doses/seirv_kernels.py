"""SEIRV on a GPU: one kernel for all steps of many simulations, one for their slopes.

The formulas are those of ``seirv``, whose torch operations are 50,000 small kernels for one slope
of a wave; this file is its two large ones. A program simulates one dose plan under one travel
pattern. Its state is three vectors of K numbers in registers: S, E and I. The people n, which
doses do not change, are given for each Xi below, as contact = beta / n (``people_kernels``). The
day's flow is a tile of K x K. Regions are padded to a power of two; in those added flow, contact,
S, E and I are 0.

    X1 = x,  X2 = x + h/2 k1,  X3 = x + h/2 k2,  X4 = x + h k3,    ki = slope(Xi)
    x <- x + h/6 (k1 + 2 k2 + 2 k3 + k4)
"""

# ruff: noqa: ANN001, ANN201, ANN202
from typing import no_type_check

from costscape.problems.vaccine_doses.kernel_parts import compiled, move, tl


@compiled
@no_type_check
def _slope(S, E, I, flow, contact, given, floor, sigma, gamma):
    """The slopes of S, E and I, and new infections; u = given / max(S + E, floor)."""
    new = contact * S * I
    u = given / tl.maximum(S + E, floor)
    kS = move(S, flow) - new - u * S
    kE = move(E, flow) + new - u * E - sigma * E
    kI = move(I, flow) + sigma * E - gamma * I
    return kS, kE, kI, new


@compiled
@no_type_check
def _ahead(S, E, I, h, kS, kE, kI):
    return S + h * kS, E + h * kE, I + h * kI


@compiled
@no_type_check
def _adjoint(S, E, I, qS, qE, qI, q_new, back, contact, given, floor, sigma, gamma):
    """From q, the derivatives in the slopes, to those in S, E, I, the doses and the contact.

    ``back`` is the transposed flow.
    """
    people = tl.maximum(S + E, floor)
    u = given / people
    moved = qE - qS + q_new
    # u (S + E) stops growing with the doses at u = 1, and u stops falling with S + E at floor
    per_dose = -(qS * S + qE * E) / people
    per_person = tl.where(floor < S + E, -u * per_dose, 0.0)
    gS = move(qS, back) + moved * contact * I - u * qS + per_person
    gE = move(qE, back) - u * qE + sigma * (qI - qE) + per_person
    gI = move(qI, back) + moved * contact * S - gamma * qI
    return gS, gE, gI, tl.where(people > given, per_dose, 0.0), moved * S * I


@compiled
@no_type_check
def _write(row, here, K: tl.constexpr, S, E, I):
    tl.store(row, S, here)
    tl.store(row + K, E, here)
    tl.store(row + 2 * K, I, here)


@compiled
@no_type_check
def forward(
    flow, doses, contact, start, rates, infected, kept,
    plans, period, days, dose_days, steps,
    K: tl.constexpr, WIDE: tl.constexpr, KEEP: tl.constexpr,
):  # fmt: skip
    """Program p * plans + f simulates plan f under pattern p.

    flow (P, T, K, K), doses and infected (P, F, K), contact (P, days * steps, 4, K), start (3, K)
    of S, E and I, rates of h, sigma, gamma and the smallest S + E. kept (P, F, days * steps, 3, K)
    is the state before each step, written if KEEP.
    """
    me = tl.program_id(0).to(tl.int64)
    p = me // plans
    k = tl.arange(0, WIDE)
    here = k < K
    tile = k[:, None] * K + k[None, :]
    inside = here[:, None] & here[None, :]
    h, sigma, gamma = tl.load(rates), tl.load(rates + 1), tl.load(rates + 2)
    S = tl.load(start + k, here, 0.0)
    E = tl.load(start + K + k, here, 0.0)
    I = tl.load(start + 2 * K + k, here, 0.0)
    plan = tl.load(doses + me * K + k, here, 0.0)
    so_far = plan * 0.0
    for day in range(days):
        G = tl.load(flow + (p * period + day % period) * K * K + tile, inside, 0.0)
        given = tl.where(day < dose_days, plan, 0.0)
        floor = tl.maximum(given, tl.load(rates + 3))
        for step in range(steps):
            at = day * steps + step
            if KEEP:
                _write(kept + (me * days * steps + at) * 3 * K + k, here, K, S, E, I)
            row = contact + (p * days * steps + at) * 4 * K + k
            c1, c2 = tl.load(row, here, 0.0), tl.load(row + K, here, 0.0)
            c3, c4 = tl.load(row + 2 * K, here, 0.0), tl.load(row + 3 * K, here, 0.0)
            aS, aE, aI, a = _slope(S, E, I, G, c1, given, floor, sigma, gamma)
            xS, xE, xI = _ahead(S, E, I, h / 2, aS, aE, aI)
            bS, bE, bI, b = _slope(xS, xE, xI, G, c2, given, floor, sigma, gamma)
            xS, xE, xI = _ahead(S, E, I, h / 2, bS, bE, bI)
            cS, cE, cI, c = _slope(xS, xE, xI, G, c3, given, floor, sigma, gamma)
            xS, xE, xI = _ahead(S, E, I, h, cS, cE, cI)
            dS, dE, dI, d = _slope(xS, xE, xI, G, c4, given, floor, sigma, gamma)
            S += h / 6 * (aS + 2 * bS + 2 * cS + dS)
            E += h / 6 * (aE + 2 * bE + 2 * cE + dE)
            I += h / 6 * (aI + 2 * bI + 2 * cI + dI)
            so_far += h / 6 * (a + 2 * b + 2 * c + d)
    tl.store(infected + me * K + k, so_far, here)


@compiled
@no_type_check
def backward(
    flow, back, doses, contact, rates, kept, g_infected, g_doses, states, slopes, g_contact,
    plans, period, days, dose_days, steps,
    K: tl.constexpr, WIDE: tl.constexpr, FLOW: tl.constexpr,
):  # fmt: skip
    """g_doses (P, F, K) from g_infected (P, F, K); the rest is as in ``forward``.

    If FLOW, the Xi and the derivatives qi in their slopes are written into states and slopes
    (P, T, F, weeks * steps, 4, 3, K), weeks being the days over T, rounded up, and the axes of 4
    and 3 those of i and of S, E and I. The derivative in the flow is the sum of X' q. That in the
    contact, g_contact (P, F, days * steps, 4, K), is written, too, for each plan.
    """
    me = tl.program_id(0).to(tl.int64)
    p, f = me // plans, me % plans
    k = tl.arange(0, WIDE)
    here = k < K
    tile = k[:, None] * K + k[None, :]
    inside = here[:, None] & here[None, :]
    h, sigma, gamma = tl.load(rates), tl.load(rates + 1), tl.load(rates + 2)
    plan = tl.load(doses + me * K + k, here, 0.0)
    each = h / 6 * tl.load(g_infected + me * K + k, here, 0.0)
    gS, gE, gI, g_plan = plan * 0.0, plan * 0.0, plan * 0.0, plan * 0.0
    weeks = (days + period - 1) // period
    for i in range(days * steps):
        at = days * steps - 1 - i
        day = at // steps
        square = (p * period + day % period) * K * K + tile
        given = tl.where(day < dose_days, plan, 0.0)
        floor = tl.maximum(given, tl.load(rates + 3))
        row = contact + (p * days * steps + at) * 4 * K + k
        c1, c2 = tl.load(row, here, 0.0), tl.load(row + K, here, 0.0)
        c3, c4 = tl.load(row + 2 * K, here, 0.0), tl.load(row + 3 * K, here, 0.0)
        row = kept + (me * days * steps + at) * 3 * K + k
        S = tl.load(row, here, 0.0)
        E = tl.load(row + K, here, 0.0)
        I = tl.load(row + 2 * K, here, 0.0)

        G = tl.load(flow + square, inside, 0.0)
        kS, kE, kI, _ = _slope(S, E, I, G, c1, given, floor, sigma, gamma)
        bS, bE, bI = _ahead(S, E, I, h / 2, kS, kE, kI)
        kS, kE, kI, _ = _slope(bS, bE, bI, G, c2, given, floor, sigma, gamma)
        cS, cE, cI = _ahead(S, E, I, h / 2, kS, kE, kI)
        kS, kE, kI, _ = _slope(cS, cE, cI, G, c3, given, floor, sigma, gamma)
        dS, dE, dI = _ahead(S, E, I, h, kS, kE, kI)
        place = ((p * period + day % period) * plans + f) * weeks + day // period
        block = (place * steps + at % steps) * 12 * K + k
        if FLOW:
            _write(states + block, here, K, S, E, I)
            _write(states + block + 3 * K, here, K, bS, bE, bI)
            _write(states + block + 6 * K, here, K, cS, cE, cI)
            _write(states + block + 9 * K, here, K, dS, dE, dI)

        # q4 = h/6 g,  q3 = h/3 g + h r4,  q2 = h/3 g + h/2 r3,  q1 = h/6 g + h/2 r2,
        # ri = adjoint(Xi, qi),  g <- g + r1 + r2 + r3 + r4
        G = tl.load(back + square, inside, 0.0)
        touch = g_contact + (me * days * steps + at) * 4 * K + k
        pS, pE, pI = h / 6 * gS, h / 6 * gE, h / 6 * gI
        rS, rE, rI, g, met = _adjoint(
            dS, dE, dI, pS, pE, pI, each, G, c4, given, floor, sigma, gamma
        )
        gS, gE, gI = gS + rS, gE + rE, gI + rI
        if FLOW:
            _write(slopes + block + 9 * K, here, K, pS, pE, pI)
            tl.store(touch + 3 * K, met, here)
        qS, qE, qI = _ahead(2 * pS, 2 * pE, 2 * pI, h, rS, rE, rI)
        rS, rE, rI, r, met = _adjoint(
            cS, cE, cI, qS, qE, qI, 2 * each, G, c3, given, floor, sigma, gamma
        )
        gS, gE, gI, g = gS + rS, gE + rE, gI + rI, g + r
        if FLOW:
            _write(slopes + block + 6 * K, here, K, qS, qE, qI)
            tl.store(touch + 2 * K, met, here)
        qS, qE, qI = _ahead(2 * pS, 2 * pE, 2 * pI, h / 2, rS, rE, rI)
        rS, rE, rI, r, met = _adjoint(
            bS, bE, bI, qS, qE, qI, 2 * each, G, c2, given, floor, sigma, gamma
        )
        gS, gE, gI, g = gS + rS, gE + rE, gI + rI, g + r
        if FLOW:
            _write(slopes + block + 3 * K, here, K, qS, qE, qI)
            tl.store(touch + K, met, here)
        qS, qE, qI = _ahead(pS, pE, pI, h / 2, rS, rE, rI)
        rS, rE, rI, r, met = _adjoint(S, E, I, qS, qE, qI, each, G, c1, given, floor, sigma, gamma)
        gS, gE, gI, g = gS + rS, gE + rE, gI + rI, g + r
        if FLOW:
            _write(slopes + block, here, K, qS, qE, qI)
            tl.store(touch, met, here)
        g_plan += tl.where(day < dose_days, g, 0.0)
    tl.store(g_doses + me * K + k, g_plan, here)
