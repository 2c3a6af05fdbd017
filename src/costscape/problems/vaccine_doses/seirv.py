"""Simulate an epidemic in K regions between which people travel: SEIRV, as fixed-step RK4.

Susceptible, exposed, infectious, recovered, vaccinated; per region k, n = S + E + I + R + V:

    dS/dt = - beta S I / n - u S              + travel(S)
    dE/dt =   beta S I / n - u E - sigma E    + travel(E)
    dI/dt =   sigma E - gamma I               + travel(I)
    dR/dt =   gamma I                         + travel(R)
    dV/dt =   u (S + E)                       + travel(V)

    travel(X)[k] = sum_i m[i, k] X[i] - sum_j m[k, j] X[k],    u = min(doses / (S + E), 1 / day)

(the paper's Appendix, COVID-19 Vaccine Distribution; Li et al., Science 2020). m[i, j] is the
share of a day's trips from i that end in j, i != j. The paper has u = doses / (S + E), which makes
people negative where doses are many; the minimum gives at most the doses that S + E can take.

Compartments are shares of each region's people at the start, so that small epidemics keep their
digits; travel from i to k then carries N[i] / N[k].
"""

from collections.abc import Callable
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from costscape.problems.vaccine_doses import seirv_fused
from costscape.problems.vaccine_doses.seirv_fused import SMALLEST, Course

WEEK = 7
GROUP = {"cpu": 500, "cuda": 20_000}  # simulations at once: fits a cache, fills a GPU


def trip_shares(od: Float[Tensor, "*batch K K"]) -> Float[Tensor, "*batch K K"]:
    """Return m[i, j] = od[i, j] / sum_j od[i, j] with a zero diagonal.

    - ``od``: trips from region i to region j, at least 0. Trips within a region count in the sum,
      negative counts are taken as 0, and nobody leaves a region without trips.
    """
    trips = od.clamp(min=0)
    total = trips.sum(-1, keepdim=True)
    share = trips / torch.where(total > 0, total, 1)
    return share - torch.diag_embed(share.diagonal(dim1=-2, dim2=-1))


def as_shares(y: Float[Tensor, "*batch K K"]) -> Float[Tensor, "*batch K K"]:
    """Return any numbers, such as a network's output, as valid shares of trips.

    Negative numbers and the diagonal become 0; a row with a sum above 1 is divided by its sum.
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
    """Return the people infected in each region within ``days``, and the shares at the end.

    - ``start``: S, E, I, R, V as shares of ``population``.
    - ``m``: shares of trips; day t has the travel of m[t mod T].
    - ``doses``: people a day, during the first ``dose_days`` days.
    - ``beta``, ``sigma``, ``gamma``: rates a day of transmission, onset and recovery.
    - ``steps``: RK4 steps a day. Two are within 1e-5 of the exact solution for rates below 0.5 a
      day, and within 5e-3 in regions whose people run out, where the slope has a kink; one makes
      compartments negative there.

    Batch axes broadcast, and m is never copied along the axes it lacks. Gradients are torch's own;
    where there is more than one week or group of simulations, each is computed again in the
    backward pass, which bounds the memory to that of one week of one group and a state for each.
    """
    flow, given, restored = _by_pattern(m, doses, population)
    x = torch.cat([start, torch.zeros_like(start[:1])]).unsqueeze(1)
    most = GROUP.get(given.device.type, GROUP["cpu"])
    recompute = days > WEEK or given.shape[:-1].numel() > most
    run = partial(_run, x, beta, sigma, gamma, days, dose_days, steps, recompute)
    rows = max(1, most // max(1, given.shape[1]))
    groups = zip(flow.split(rows), given.split(rows), strict=True)
    end = torch.cat([torch.cat([run(f, d) for d in g.split(most, 1)], 2) for f, g in groups])
    end = restored(end.movedim(1, -2))
    return end[..., 5, :] * population, end[..., :5, :]


def new_infections(
    start: Float[Tensor, "5 K"],
    m: Float[Tensor, "*#batch T K K"],
    doses: Float[Tensor, "*#batch K"],
    beta: Float[Tensor, "K"],
    population: Float[Tensor, "K"],
    course: Course,
) -> Float[Tensor, "*batch K"]:
    """Return the first result of ``simulate``, whose other arguments are in ``course``.

    On a GPU, where only trips and doses need gradients, all steps are one kernel and their
    gradients another.
    """
    if not seirv_fused.serves(doses, start, beta, population):
        return simulate(start, m, doses, beta=beta, population=population, **vars(course))[0]
    flow, given, restored = _by_pattern(m, doses, population)
    return restored(seirv_fused.new_infections(flow, given, start, beta, course)) * population


def _by_pattern(
    m: Tensor, doses: Tensor, population: Tensor
) -> tuple[Float[Tensor, "P T K K"], Float[Tensor, "P F K"], Callable[[Tensor], Tensor]]:
    """Return P travel patterns, the F plans under each, and what restores the axes of a batch.

    d(shares)/dt = shares @ pattern: arrivals less departures. Plans are shares of people.
    """
    K = len(population)
    batch = torch.broadcast_shapes(m.shape[:-3], doses.shape[:-1])
    m = m.reshape((1,) * (len(batch) + 3 - m.ndim) + m.shape)
    order = sorted(range(len(batch)), key=lambda axis: m.shape[axis] == 1)
    by_day = m.permute(*order, -3, -2, -1).reshape(-1, *m.shape[-3:])
    given = (doses / population).expand(*batch, K).permute(*order, -1)
    sizes = given.shape[:-1]
    given = given.reshape(len(by_day), sizes.numel() // max(1, len(by_day)), K)
    flow = by_day * population.unsqueeze(-1) / population - torch.diag_embed(by_day.sum(-1))

    def restored(result: Float[Tensor, "P F *rest"]) -> Tensor:
        rest = result.shape[2:]
        back = [order.index(axis) for axis in range(len(batch))]
        last = range(len(batch), len(batch) + len(rest))
        return result.reshape(*sizes, *rest).permute(*back, *last)

    return flow, given, restored


def _run(
    x: Tensor,
    beta: Tensor,
    sigma: float,
    gamma: float,
    days: int,
    dose_days: int,
    steps: int,
    recompute: bool,
    flow: Float[Tensor, "P T K K"],
    doses: Float[Tensor, "P F K"],
) -> Float[Tensor, "P 6 F K"]:
    """Return S, E, I, R, V and the infected so far after ``days``, from x (6, 1, K)."""
    flows = flow.unbind(1)

    def advance(x: Tensor, first: int) -> Tensor:
        for day in range(first, min(first + WEEK, days)):
            given = doses if day < dose_days else None
            slope = partial(_slope, flows[day % len(flows)], given, beta, sigma, gamma)
            for _ in range(steps):
                x = _rk4_step(slope, x, 1 / steps)
        return x

    x = x.expand(len(doses), -1, doses.shape[1], -1)
    for first in range(0, days, WEEK):
        if recompute and torch.is_grad_enabled():
            x = checkpoint(advance, x, first, use_reentrant=False, preserve_rng_state=False)
        else:
            x = advance(x, first)
    return x


def _rk4_step(slope: "partial[Tensor]", x: Tensor, h: float) -> Tensor:
    k1 = slope(x)
    k2 = slope(x + h / 2 * k1)
    k3 = slope(x + h / 2 * k2)
    k4 = slope(x + h * k3)
    return x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def _slope(
    flow: Float[Tensor, "P K K"],
    doses: Float[Tensor, "P F K"] | None,
    beta: Tensor,
    sigma: float,
    gamma: float,
    x: Float[Tensor, "P 6 F K"],
) -> Float[Tensor, "P 6 F K"]:
    """Return dx/dt by the equations above; the sixth row counts infections where they happen."""
    people = x[:, :5]
    S, E, I = x[:, 0], x[:, 1], x[:, 2]
    new, onset, recovery = beta * S * I / people.sum(1), sigma * E, gamma * I
    dS, dE, dV = -new, new - onset, torch.zeros_like(new)
    if doses is not None:
        u = (doses / (S + E).clamp(min=SMALLEST)).clamp(max=1)
        dS, dE, dV = dS - u * S, dE - u * E, u * (S + E)
    local = torch.stack([dS, dE, onset - recovery, recovery, dV], 1)
    moved = torch.baddbmm(local.flatten(1, 2), people.flatten(1, 2), flow).view_as(people)
    return torch.cat([moved, new.unsqueeze(1)], 1)
