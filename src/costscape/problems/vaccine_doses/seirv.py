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

import torch
from jaxtyping import Float
from torch import Tensor

from costscape.problems.vaccine_doses.seirv_run import Run
from costscape.problems.vaccine_doses.seirv_steps import Plan

WEEK = 7
KEPT = 2**30  # bytes of states kept for gradients, above which some are computed again


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
) -> tuple[Float[Tensor, "*batch K"], Float[Tensor, "*batch 5 K"]]:
    """The infected (people, by region of infection) within ``days``, and the shares at the end.

    ``start`` holds S, E, I, R, V as shares of ``population``; ``doses`` are people a day, given
    during the first ``dose_days`` days; day t travels by m[t mod T]. ``steps`` of RK4 a day: two
    are within 1e-5 of the exact solution for rates below 0.5 a day, and within 5e-3 in regions
    whose people run out, where the slope has a kink; one makes compartments negative there.
    Batch axes broadcast, and m is never copied along those it lacks: with m (S, T, K, K) and
    doses (J, 1, K) a step is S products of (5 J + 1, K) by (K, K). Slopes of the first order are
    exact; for them the state of each step is kept, or of fewer where all are above 1 GiB.
    """
    return _simulate(
        start, start, m, doses, beta, population, sigma, gamma, days, dose_days, steps
    )


def new_infections(
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
) -> Float[Tensor, "*batch K"]:
    """The first of ``simulate``, without following the recovered and vaccinated: faster."""
    return _simulate(
        start, start[:3], m, doses, beta, population, sigma, gamma, days, dose_days, steps
    )[0]


def _simulate(
    start: Tensor,
    followed: Tensor,
    m: Tensor,
    doses: Tensor,
    beta: Tensor,
    population: Tensor,
    sigma: float,
    gamma: float,
    days: int,
    dose_days: int,
    steps: int,
) -> tuple[Tensor, Tensor]:
    batch = torch.broadcast_shapes(m.shape[:-3], doses.shape[:-1])
    by_day = _columns(m, len(batch), 3)
    free = [i for i in range(len(batch)) if by_day.shape[i] == 1]
    order = [i for i in range(len(batch)) if by_day.shape[i] != 1] + free
    kept = len(batch) - len(free)
    # (P, T, K, K) and (P, F, K): P simulations of different m, F of the same
    by_day = by_day.permute(*order, -3, -2, -1).flatten(0, -4) if batch else by_day[None]
    given = (doses / population).expand(*batch, -1).permute(*order, -1)
    sizes = given.shape[:-1]
    given = given.reshape(sizes[:kept].numel(), sizes[kept:].numel(), len(population))

    flow = _generator(by_day.movedim(1, 0).contiguous(), population)
    tensors = (flow, given, followed, start.sum(0), beta)
    sloped = torch.is_grad_enabled() and any(v.requires_grad for v in tensors)
    plan = Plan(sigma, gamma, days, dose_days, steps, KEPT if sloped else 0)
    infected, end = Run.apply(*tensors, plan)  # type: ignore[no-untyped-call]
    back = [order.index(i) for i in range(len(batch))]
    infected = (infected * population).reshape(*sizes, len(population)).permute(*back, -1)
    end = end.movedim(1, -2).reshape(*sizes, *followed.shape).permute(*back, -2, -1)
    return infected, end


def _columns(v: Tensor, ndim: int, inner: int) -> Tensor:
    """Leading axes of length one, up to ``ndim`` batch axes."""
    return v.reshape((1,) * (ndim + inner - v.ndim) + v.shape)


def _generator(m: Tensor, population: Tensor) -> Tensor:
    """G with d(shares)/dt = shares @ G: what arrives, less what leaves."""
    arrive = m * population.unsqueeze(-1) / population
    return arrive - torch.diag_embed(m.sum(-1))
