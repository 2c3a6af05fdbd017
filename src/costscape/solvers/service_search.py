"""The cheapest action that keeps a service level: min g(x, a) over a in C with v(x, a) <= 0.

v is what is missing of a probability (``ServiceLimit``), not convex in a even where h is.
There are three ways, by what is known of the problem:

1. A Finite list, or a Whole set of few points: every action is tried. Exact.
2. g is a sum over coordinates, C a box, and constraint i depends on a_i only: each coordinate is
   searched by itself, on a grid that is refined around its best point. Exact for convex g where
   the a_i that keep the level are an interval; else global up to the cells of the grid.
3. Otherwise: two starts, moved into the level and improved step by step inside it. Local.

All answers are checked on the scenarios.
"""

from dataclasses import dataclass
from typing import cast

import torch
from jaxtyping import Bool, Float, Int64
from torch import Generator, Tensor

from costscape.risk.surfaces import RiskCost, ServiceLimit
from costscape.scenarios import ExpectedCost
from costscape.sets import ConstraintSet, Finite, Whole
from costscape.solvers.exhaustive import Exhaustive
from costscape.solvers.projected_adam import ProjectedAdam
from costscape.solvers.solver import Solver
from costscape.solvers.whole_search import WholeSearch

Surface = ExpectedCost | RiskCost

POINTS, FINE = 65, 17  # of the first grid of a coordinate, and of the finer ones
REFINE = 6  # finer grids: the last has cells of 1e-7 of the box
VALUES = 2_000  # of a coordinate in whole units that are all tried
PAIRS = 8  # of actions that show whether a constraint depends on one coordinate only
BISECT = 20
EDGES, STARTS = 64, 6  # sampled directions in which the level ends, and starts of the search
MULTIPLIERS = 8  # bisections of the price of h
ROUNDS = 60  # of the local search
LONGEST, SHORTEST = 0.25, 1e-5  # its moves, as shares of the width of C
BLOCK = 2**22  # numbers of one evaluation of all actions


@dataclass(frozen=True)
class Served:
    """An action for each row.

    ``kept`` says whether it keeps the level. Where it does not, the action is the safest one
    found: no action with a lower v is known.
    """

    action: Float[Tensor, "B d"]
    kept: Bool[Tensor, "B"]


def minimise_within(
    g: Surface, v: ServiceLimit, feasible: ConstraintSet, solver: Solver
) -> Served:
    """The best action found for each row of g that keeps v <= 0."""
    with torch.no_grad():
        if Exhaustive().refuses(g, feasible) is None:
            return _of_list(g, v, _points(feasible))
        if _by_coordinate(g, v, feasible):
            return _coordinates(cast(ExpectedCost, g), v, feasible)
        return _search(g, v, feasible, solver)


# ---- 1. every action


def _points(feasible: ConstraintSet) -> Tensor:
    if isinstance(feasible, Whole):
        return cast(Tensor, feasible.points(Exhaustive().most))
    return cast(Finite, feasible).actions


def _of_list(g: Surface, v: ServiceLimit, actions: Float[Tensor, "K d"]) -> Served:
    rows = max(1, BLOCK // len(actions))
    parts = []
    for i in range(0, len(g), rows):
        part = slice(i, i + rows)
        worst = v.rows(part)(actions[None]).amax(-1)
        cost = g.rows(part)(actions[None]).masked_fill(worst > 0, torch.inf)
        kept = (worst <= 0).any(1)
        parts.append((torch.where(kept, cost.argmin(1), worst.argmin(1)), kept))
    at, kept = (torch.cat(list(each)) for each in zip(*parts, strict=True))
    return Served(actions[at], kept)


# ---- 2. coordinate by coordinate


def _by_coordinate(g: Surface, v: ServiceLimit, feasible: ConstraintSet) -> bool:
    """Whether g is a sum, C a box, and constraint i changes with a_i only, on some actions."""
    if not (g.separable and feasible.by_coordinate):
        return False
    if isinstance(feasible, Whole) and not 1 <= _values(feasible) <= VALUES:
        return False
    rng = Generator(feasible.bounds[0].device).manual_seed(0)
    one, other = feasible.sample(2 * PAIRS, rng).split(PAIRS)
    row = v.rows(slice(0, 1))
    held = row(one[None])[0]  # (PAIRS, k)
    d = feasible.dim
    if held.shape[-1] != d:
        return False
    eye = torch.eye(d, dtype=torch.bool, device=one.device)
    mixed = torch.where(eye, one[:, None], other[:, None])  # a_i of one, the rest of the other
    values = row(mixed.flatten(0, 1)[None])[0].reshape(PAIRS, d, d)
    return bool(torch.equal(values.diagonal(dim1=1, dim2=2), held))


def _coordinates(g: ExpectedCost, v: ServiceLimit, feasible: ConstraintSet) -> Served:
    lower, upper = feasible.bounds
    if isinstance(feasible, Whole):
        count = torch.arange(_values(feasible), device=lower.device)[:, None]
        grid, rounds = torch.minimum(lower + count * feasible.step, upper)[None], 0
    else:
        grid, rounds = _grid(lower[None], upper[None], POINTS), REFINE
    a = _best(g, v, grid)
    width = (upper - lower) / (POINTS - 1)
    for _ in range(rounds):
        grid = _grid((a - width).maximum(lower), (a + width).minimum(upper), FINE)
        a = _best(g, v, torch.cat([a[:, None], grid], 1))  # the best so far stays
        width = 2 * width / (FINE - 1)
    a = feasible.project(a)
    return Served(a, (v(a[:, None])[:, 0] <= 0).all(-1))


def _values(feasible: Whole) -> int:
    """How many values a coordinate has at most; 0 where one is continuous."""
    return int((feasible.last - feasible.first).max()) + 1 if (feasible.step > 0).all() else 0


def _grid(low: Tensor, high: Tensor, points: int) -> Float[Tensor, "B points d"]:
    t = torch.linspace(0, 1, points, device=low.device, dtype=low.dtype)[:, None]
    return torch.lerp(low[:, None], high[:, None], t)


def _best(g: ExpectedCost, v: ServiceLimit, grid: Tensor) -> Float[Tensor, "B d"]:
    """The best value of each coordinate that keeps its constraint, or else the safest one."""
    limit = v(grid)
    cost = g.terms(grid).masked_fill(limit > 0, torch.inf)
    kept = (limit <= 0).any(1)
    at = torch.where(kept, cost.argmin(1), limit.argmin(1))[:, None]  # (B, 1, d)
    return grid.expand(len(at), -1, -1).gather(1, at)[:, 0]


# ---- 3. search


def _search(g: Surface, v: ServiceLimit, feasible: ConstraintSet, solver: Solver) -> Served:
    cheapest = solver.minimise(g, feasible, len(g)).action
    if bool((v(cheapest[:, None])[:, 0] <= 0).all()):
        return Served(cheapest, torch.ones(len(g), dtype=torch.bool, device=cheapest.device))
    safe = _safest(v, feasible, cheapest)
    if isinstance(feasible, Whole):
        return _whole(g, v, feasible, safe)
    kept = (v(safe[:, None])[:, 0] <= 0).all(-1)
    goals = torch.stack([cheapest, _priced(g, v, feasible, safe)], 1)
    edges = _edges(v, feasible, safe, goals)
    best = g(edges).topk(min(STARTS, edges.shape[1]), largest=False).indices
    starts = _pick(edges, best)
    ends = _improve(g, v, feasible, starts, cheapest)
    action = _pick(ends, g(ends).argmin(1))
    return Served(torch.where(kept[:, None], action, safe), kept)


def _safest(v: ServiceLimit, feasible: ConstraintSet, also: Tensor) -> Tensor:
    """The least v among the least tail of h, the ends of C, samples, and ``also``."""
    base = feasible.base if isinstance(feasible, Whole) else feasible
    tail = ProjectedAdam(starts=1).minimise(lambda a: v.tail(a).amax(-1), base, len(also)).action
    rng = Generator(also.device).manual_seed(0)
    ends = feasible.project(torch.stack(feasible.bounds))
    tried = torch.cat([ends, feasible.sample(62, rng)])[None].expand(len(also), -1, -1)
    found = feasible.project(tail) if isinstance(feasible, Whole) else tail
    tried = torch.cat([also[:, None], found[:, None], tried], 1)
    return _pick(tried, v(tried).amax(-1).argmin(1))


def _edges(
    v: ServiceLimit, feasible: ConstraintSet, safe: Tensor, goals: Float[Tensor, "B n d"]
) -> Float[Tensor, "B J d"]:
    """Points where the level ends, on the ways from ``safe`` to the goals and to samples."""
    rng = Generator(safe.device).manual_seed(3)
    sampled = feasible.sample(EDGES, rng).expand(len(safe), -1, -1)
    goals, start = torch.cat([goals, sampled], 1), safe[:, None]
    kept = (v(goals) <= 0).all(-1)
    low, high = kept.to(goals), torch.ones_like(goals[..., 0])
    for _ in range(BISECT):
        t = (low + high) / 2
        kept = (v(torch.lerp(start, goals, t[..., None])) <= 0).all(-1)
        low, high = torch.where(kept, t, low), torch.where(kept, high, t)
    return torch.lerp(start, goals, low[..., None])


def _priced(g: Surface, v: ServiceLimit, feasible: ConstraintSet, safe: Tensor) -> Tensor:
    """argmin g + price * tail of h, at about the least price at which v <= 0.

    The tail is convex where h is; the price of each row is found by bisection.
    """
    rng = Generator(safe.device).manual_seed(1)
    tried = feasible.sample(64, rng)[None]
    unit = g(tried).std(1) / v.tail(tried).amax(-1).std(1).clamp(min=1e-12)
    low, high = torch.full_like(unit, -7.0), torch.full_like(unit, 7.0)  # exponents of 2
    solver, a, best = ProjectedAdam(starts=1).coarse(), safe, safe
    for _ in range(MULTIPLIERS):
        price = (unit * 2 ** ((low + high) / 2))[:, None]

        def priced(a: Tensor, price: Tensor = price) -> Tensor:
            return g(a) + price * v.tail(a).amax(-1)

        a = solver.minimise(priced, feasible, len(g), a).action
        kept = (v(a[:, None])[:, 0] <= 0).all(-1)
        best = torch.where(kept[:, None], a, best)
        middle = (low + high) / 2
        low, high = torch.where(kept, low, middle), torch.where(kept, middle, high)
    return best


def _improve(
    g: Surface, v: ServiceLimit, feasible: ConstraintSet, a: Float[Tensor, "B n d"], goal: Tensor
) -> Float[Tensor, "B n d"]:
    """Take the best of many moves that keep the level, with shorter ones where none is better."""
    lower, upper = feasible.bounds
    rng = Generator(a.device).manual_seed(2)
    axes = torch.eye(feasible.dim, device=a.device, dtype=a.dtype)
    cost, length = g(a), torch.full_like(a[..., 0], LONGEST)
    for _ in range(ROUNDS):
        random = torch.randn(
            2 * feasible.dim + 4, feasible.dim, generator=rng, device=a.device, dtype=a.dtype
        )
        moves = (torch.cat([axes, -axes, random]) * (upper - lower)).expand(*a.shape[:2], -1, -1)
        moves = torch.cat([moves, (goal[:, None] - a)[:, :, None]], 2)
        near = feasible.project(a[:, :, None] + length[..., None, None] * moves)
        flat = near.flatten(1, 2)
        now = g(flat).masked_fill((v(flat) > 0).any(-1), torch.inf).reshape(near.shape[:3])
        least, at = now.min(2)
        better = least < cost
        found = near.gather(2, at[..., None, None].expand(-1, -1, 1, a.shape[-1]))[:, :, 0]
        a, cost = torch.where(better[..., None], found, a), torch.minimum(least, cost)
        length = (length * torch.where(better, 1.5, 0.5)).clamp(max=LONGEST)
        if bool((length < SHORTEST).all()):
            break
    return a


def _whole(g: Surface, v: ServiceLimit, feasible: Whole, safe: Tensor) -> Served:
    """Local search over whole units; outside the level, actions cost more than ``safe``."""
    most = g(safe[:, None])

    def limited(a: Tensor) -> Tensor:
        worst = v(a).amax(-1)
        return torch.where(worst > 0, most + worst, g(a))

    relaxed = _search(g, v, feasible.base, ProjectedAdam()).action
    found = WholeSearch().minimise(limited, feasible, len(g), relaxed).action
    worse = (v(found[:, None])[:, 0] > 0).any(-1)
    a = torch.where(worse[:, None], safe, found)
    return Served(a, (v(a[:, None])[:, 0] <= 0).all(-1))


def _pick(a: Float[Tensor, "B J d"], at: Int64[Tensor, "B *n"]) -> Float[Tensor, "B *n d"]:
    rows = torch.arange(len(a), device=a.device)
    return a[rows if at.ndim == 1 else rows[:, None], at]
