"""An epidemic in K regions between which people travel: SEIRV, as fixed-step RK4.

Susceptible, exposed, infectious, recovered, vaccinated; per region k, n = S + E + I + R + V:

    dS/dt = - beta S I / n - u S              + travel(S)
    dE/dt =   beta S I / n - u E - sigma E    + travel(E)
    dI/dt =   sigma E - gamma I               + travel(I)
    dR/dt =   gamma I                         + travel(R)
    dV/dt =   u (S + E)                       + travel(V)

    travel(X)[k] = sum_i m[i, k] X[i] - sum_j m[k, j] X[k],    u = min(doses / (S + E), 1 / day)

(the paper's Appendix, COVID-19 Vaccine Distribution; Li et al., Science 2020). m[i, j] is the
share of a day's trips from i that end in j, i != j. u keeps S and E from running out: the doses
of a day are at most the people who can still take one. The paper has u = doses / (S + E), which
makes people negative where doses are many.

Compartments are shares of each region's people at the start, so that small epidemics keep their
digits; travel from i to k then carries N[i] / N[k].
"""

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any, cast

import torch
from jaxtyping import Float
from torch import Tensor
from torch.utils.checkpoint import checkpoint

WEEK = 7
KEPT = 2**28  # bytes kept for gradients, above which weeks are computed again


def trip_shares(od: Float[Tensor, "*batch K K"]) -> Float[Tensor, "*batch K K"]:
    """m[i, j] = od[i, j] / sum_j od[i, j], with a zero diagonal.

    Trips of a region to itself count in the sum. Negative counts, such as a network may think of,
    are taken as 0, and a region without trips stays at home.
    """
    trips = od.clamp(min=0)
    total = trips.sum(-1, keepdim=True)
    share = trips / torch.where(total > 0, total, 1)
    return share - torch.diag_embed(share.diagonal(dim1=-2, dim2=-1))


def as_shares(y: Float[Tensor, "*batch K K"]) -> Float[Tensor, "*batch K K"]:
    """y as shares of trips, whatever a network thought of.

    Negative shares and the diagonal become 0; a row of sum above 1 is divided by its sum.
    """
    share = y.clamp(min=0)
    share = share - torch.diag_embed(share.diagonal(dim1=-2, dim2=-1))
    return share / share.sum(-1, keepdim=True).clamp(min=1)


def simulate(
    start: Float[Tensor, "5 K"],
    m: Float[Tensor, "*#batch T K K"],
    doses: Float[Tensor, "*#batch K"],
    *,
    beta: Float[Tensor, "K"],
    population: Float[Tensor, "K"],
    sigma: float = 1 / 5,
    gamma: float = 1 / 10,
    days: int = WEEK,
    dose_days: int = WEEK,
    steps: int = 2,
    fused: bool = False,
) -> tuple[Float[Tensor, "*batch K"], Float[Tensor, "*batch 5 K"]]:
    """The infected (people, by region of infection) within ``days``, and the shares at the end.

    ``start`` holds S, E, I, R, V as shares of ``population``; ``doses`` are people a day, given
    during the first ``dose_days`` days; day t travels by m[t mod T]. ``steps`` of RK4 a day: two
    are within 1e-5 of the exact solution for rates below 0.5 a day, and within 5e-3 in regions
    whose people run out, where the slope has a kink; one makes compartments negative there.
    Batch axes broadcast, and m is
    never copied along those it lacks: with m (S, T, K, K) and doses (J, 1, K) a step is S products
    of (5 J, K) by (K, K). Where gradients would keep more than 256 MiB, only the state at each
    week's end is kept, and weeks are computed again on the way back. ``fused`` compiles a step
    with torch.compile, a minute before the first one and several times faster from then on.
    """
    batch = torch.broadcast_shapes(m.shape[:-3], doses.shape[:-1])
    by_day = _columns(m, len(batch), 3)
    free = [i for i in range(len(batch)) if by_day.shape[i] == 1]
    order = [i for i in range(len(batch)) if by_day.shape[i] > 1] + free
    kept = len(batch) - len(free)
    # (P, T, K, K) and (P, F, K): P simulations of different m, F of the same
    by_day = by_day.permute(*order, -3, -2, -1).flatten(0, -4) if batch else by_day[None]
    given = (doses / population).expand(*batch, -1).permute(*order, -1)
    sizes = given.shape[:-1]
    given = given.reshape(sizes[:kept].numel(), sizes[kept:].numel(), -1)

    flow = _generator(by_day, population)
    state = start.unsqueeze(1).expand(*given.shape[:1], -1, given.shape[1], -1)
    infected = torch.zeros_like(given)
    rates = _rates(sigma, gamma, given)
    heavy = 4 * 10 * steps * days * state.numel() * state.element_size()  # ten for each slope
    several = torch.is_grad_enabled() and days > WEEK and heavy > KEPT
    for first in range(0, days, WEEK):
        span = range(first, min(first + WEEK, days))
        args = (state, infected, flow, given, beta, *rates, span, dose_days, steps, fused)
        state, infected = (
            cast(
                tuple[Tensor, Tensor],
                checkpoint(_run, *args, use_reentrant=False, preserve_rng_state=False),
            )
            if several
            else _run(*args)
        )
    back = [order.index(i) for i in range(len(batch))]
    infected = (infected * population).reshape(*sizes, -1).permute(*back, -1)
    end = state.movedim(1, -2).reshape(*sizes, *start.shape).permute(*back, -2, -1)
    return infected, end


def _columns(v: Tensor, ndim: int, inner: int) -> Tensor:
    """Leading axes of length one, up to ``ndim`` batch axes."""
    return v.reshape((1,) * (ndim + inner - v.ndim) + v.shape)


def _generator(m: Tensor, population: Tensor) -> Tensor:
    """G with d(shares)/dt = shares @ G: what arrives, less what leaves."""
    arrive = m * population.unsqueeze(-1) / population
    return arrive - torch.diag_embed(m.sum(-1))


def _run(
    state: Tensor,  # (P, 5, F, K)
    infected: Tensor,  # (P, F, K)
    flow: Tensor,  # (P, T, K, K)
    doses: Tensor,  # (P, F, K)
    beta: Tensor,
    rates: Tensor,
    turns: Tensor,
    span: range,
    dose_days: int,
    steps: int,
    fused: bool,
) -> tuple[Tensor, Tensor]:
    step = _fused_step() if fused else _step
    for day in span:
        now, given = flow[:, day % flow.shape[1]], doses if day < dose_days else None
        for _ in range(steps):
            state, infected = step(state, infected, now, given, beta, rates, turns, 1 / steps)
    return state, infected


def _step(
    state: Tensor,
    infected: Tensor,
    flow: Tensor,
    doses: Tensor | None,
    beta: Tensor,
    rates: Tensor,
    turns: Tensor,
    h: float,
) -> tuple[Tensor, Tensor]:
    """One step of RK4, and the infected within it."""
    k1, new1 = _slope(state, flow, doses, beta, rates, turns)
    k2, new2 = _slope(torch.add(state, k1, alpha=h / 2), flow, doses, beta, rates, turns)
    k3, new3 = _slope(torch.add(state, k2, alpha=h / 2), flow, doses, beta, rates, turns)
    k4, new4 = _slope(torch.add(state, k3, alpha=h), flow, doses, beta, rates, turns)
    return _sum(state, k1, k2, k3, k4, h), _sum(infected, new1, new2, new3, new4, h)


def _sum(x: Tensor, k1: Tensor, k2: Tensor, k3: Tensor, k4: Tensor, h: float) -> Tensor:
    ends = torch.add(x, k1 + k4, alpha=h / 6)
    return torch.add(ends, k2 + k3, alpha=h / 3)


@cache
def _fused_step() -> Callable[..., tuple[Tensor, Tensor]]:
    """The step compiled: about ten kernels in place of a hundred.

    Where compiling fails, as without a compiler, the plain step serves from then on.
    """
    from torch._dynamo.exc import BackendCompilerFailed  # takes a second

    compiled = torch.compile(_step, dynamic=True)
    failed = False

    def step(*args: Any) -> tuple[Tensor, Tensor]:
        nonlocal failed
        if not failed:
            try:
                return compiled(*args)
            except BackendCompilerFailed as error:
                failed = True
                warnings.warn(f"torch.compile failed, going on without it: {error}", stacklevel=2)
        return _step(*args)

    return step


def _slope(
    x: Tensor, flow: Tensor, doses: Tensor | None, beta: Tensor, rates: Tensor, turns: Tensor
) -> tuple[Tensor, Tensor]:
    """What is linear in x, travel and falling ill and healing, and what is not, as products."""
    change = torch.matmul(x.flatten(1, 2), flow).view_as(x)
    change = torch.add(change, torch.matmul(rates, x.flatten(2)).view_as(x))
    new = beta * x[:, 0] * x[:, 2] / x.sum(1)
    if doses is None:
        moved = new.unsqueeze(1)
        turns = turns[:, :1]
    else:
        # the floor only guards the slope of a quotient that the limit then overrules
        u = (doses / (x[:, 0] + x[:, 1]).clamp(min=1e-6)).clamp(max=1.0)
        moved = torch.cat([new.unsqueeze(1), u.unsqueeze(1) * x[:, :2]], 1)
    return torch.add(change, torch.matmul(turns, moved.flatten(2)).view_as(x)), new


def _rates(sigma: float, gamma: float, like: Tensor) -> tuple[Tensor, Tensor]:
    """dx = rates @ x + turns @ (new, u S, u E), rows S, E, I, R, V."""
    # filled number by number: to copy a list to a GPU would make the CPU wait
    rates, turns = like.new_zeros(5, 5), like.new_zeros(5, 3)
    rates[1, 1], rates[2, 1], rates[2, 2], rates[3, 2] = -sigma, sigma, -gamma, gamma
    turns[0, :2], turns[1, 0], turns[1, 2], turns[4, 1:] = -1, 1, -1, 1
    return rates, turns
