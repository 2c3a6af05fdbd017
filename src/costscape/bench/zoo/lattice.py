"""Precise minimisers of sums of convex terms over a total or over ramp limits.

    min sum_i g_i(a_i)   where sum a <= total or = total,   or   |a_i - a_(i+1)| <= ramp

Tabulate each g_i on a few points, solve the tabulated problem exactly (sort the slopes, or dynamic
programming along i), then repeat on finer points around the solution. The error of a table with
spacing h is at most h^2 g_i'' / 8 for each smooth g_i.
"""

from typing import cast

import torch
from jaxtyping import Float64
from torch import Tensor

from costscape.scenarios import ExpectedCost, Scenarios
from costscape.sets import Budget, ConstraintSet, Simplex

FIRST, REACH, SHRINK = 65, 8, 4.0  # points of the first table; then +-8 points, 4 times as fine
REPEATS = 6  # most tables of one spacing, while a solution lies on the edge of its table
ROWS = 256  # solved at once
Table = tuple[Tensor, Tensor]  # points and costs, both (B, J, d)


def minimise_on_lattice(
    g: ExpectedCost, start: Tensor | None, *, ramp: float | None, scales: int
) -> Float64[Tensor, "B d"]:
    """Minimise the expected cost of a SeparableTask for each row, in double precision.

    ``ramp`` is the limit of a Polytope made by ``ramp_limits``, None for a Budget or a Simplex.
    The last spacing is 1/64 of the width of the set, divided by 4^scales. ``start`` saves the
    first tables where actions near the best are known.
    """
    feasible = g.task.feasible
    if ramp is None and not isinstance(feasible, Budget | Simplex):
        raise TypeError(
            f"minimise_on_lattice needs a Budget, a Simplex or a ramp limit, but got a "
            f"{type(feasible).__name__} without one."
        )
    s = g.scenarios
    exact = g.on(Scenarios(s.weights.double(), s.values.double(), s.own))
    found = []
    with torch.no_grad():
        for i in range(0, len(g), ROWS):
            rows = slice(i, i + ROWS)
            near = None if start is None else start[rows].double()
            found.append(_descend(exact.rows(rows), near, ramp, scales))
    return torch.cat(found)


def _descend(g: ExpectedCost, a: Tensor | None, ramp: float | None, scales: int) -> Tensor:
    feasible = g.task.feasible
    lower, upper = (v.double() for v in feasible.bounds)
    width, first = (upper - lower) / (FIRST - 1), scales // 2
    if a is None:
        first = 0
        at = lower + width * torch.arange(FIRST).to(width)[:, None]
        at = at.clamp(max=upper).expand(len(g), -1, -1)
        a = _solve((at, g.terms(at)), feasible, ramp)
    around = torch.arange(-REACH, REACH + 1).to(width)[:, None]
    for scale in range(first, scales):
        step = width / SHRINK ** (scale + 1)
        for _ in range(REPEATS):
            at = (a[:, None] + step * around).clamp(lower, upper)
            before, a = a, _solve((at, g.terms(at)), feasible, ramp)
            if ((a - before).abs() < (REACH - 0.5) * step).all():
                break
    return a


def _solve(table: Table, feasible: ConstraintSet, ramp: float | None) -> Tensor:
    if ramp is not None:
        return _along_ramps(table, ramp)
    total = float(cast(Budget | Simplex, feasible).total)
    return _within_total(table, total, exactly=isinstance(feasible, Simplex))


def _within_total(table: Table, total: float, exactly: bool) -> Tensor:
    """Buy the cells with the least slopes first, in part where the total runs out."""
    at, cost = table
    width = at.diff(dim=1)
    empty = width <= 0
    slope = (cost.diff(dim=1) / width).masked_fill(empty, -torch.inf)
    slope = slope.cummax(1).values.flatten(1)  # convex but for rounding
    width = width.masked_fill(empty, 0.0).flatten(1)
    wanted = width if exactly else width.where(slope < 0, 0.0)
    order = slope.argsort(dim=-1, stable=True)
    wanted = wanted.gather(1, order)
    left = total - at[:, 0].sum(-1, keepdim=True) - (wanted.cumsum(-1) - wanted)
    bought = torch.zeros_like(wanted).scatter(1, order, wanted.minimum(left.clamp(min=0)))
    return at[:, 0] + bought.view_as(at[:, 1:]).sum(1)


def _along_ramps(table: Table, ramp: float) -> Tensor:
    """Dynamic programming along the coordinates, over all pairs of neighbouring points."""
    at, cost = table
    slack = ramp * (1 + 1e-9)
    least, came = cost[..., 0], []
    for i in range(1, at.shape[-1]):
        apart = (at[:, :, None, i - 1] - at[:, None, :, i]).abs() > slack
        least, k = least[:, :, None].masked_fill(apart, torch.inf).min(1)
        least = least + cost[..., i]
        came.append(k)
    k = least.argmin(1, keepdim=True)
    chosen = [k]
    for before in reversed(came):
        chosen.append(k := before.gather(1, k))
    return at.gather(1, torch.stack(chosen[::-1], -1))[:, 0]
