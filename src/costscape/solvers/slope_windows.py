"""Windows around the answer of a convex problem, that shrink to two cells in every round.

    minimise  sum_i g_i(t_i)  over shares t with rows between coordinates

Each round evaluates every g_i on a grid in a window, and takes its slope as a broken line through
the slopes of the cells. What remains is a problem with known slopes, which the caller solves.
Windows then shrink around the answer, or widen where it lies on an edge.

The rows' multipliers L give a bound by weak duality: for every t that meets the rows,

    sum_i g_i(t_i)  >=  sum_i min_t ( g_i(t) + p_i t ) - L . room,   p = L . use.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from costscape.sets.constraint_set import Polyhedral
from costscape.sets.validation import as_numpy
from costscape.solvers.duality_gap import excess
from costscape.solvers.share_rows import TINY, Array, Index, ShareCosts

ROUNDS = 16  # at most; windows that shrink in every round need five
FLAT = 2e-6  # differences of slopes, as a share of the largest one, that move no window
AT_EDGE = 0.999  # share of a window beyond which a point counts as on its edge
FASTER, WIDER = 8, 4  # windows shrink so much more, or widen so much
JUMP = 0.5  # of the rise of the slope over a cell, beyond which it holds a kink
WITHIN = 0.02  # share of a cell: a kink nearer to its end is left to the next cell
NEAR = np.array([-4.0, -1.0, 0.0, 1.0, 4.0])  # points around the answer, in last cells


@dataclass(frozen=True)
class Prices:
    """Shares t (B, d), multipliers of the rows (B, m), and how far slopes are from them (B, d).

    ``pull`` is a share of the largest slope; it is 0 where the answer would not leave the window.
    """

    t: Array
    price: Array
    pull: Array


Fill = Callable[[Array, Array], Prices]  # points (B, d, J) and their costs -> the best shares
Lines = Callable[[Array, Array], tuple[Array, Array]]  # points, slopes of cells -> nodes of a line


def narrow(
    costs: ShareCosts, fill: Fill, start: Prices, half: float, grid: int, halvings: int
) -> tuple[Prices, Index]:
    """The answer in windows that end 2^-halvings wide, and the x that have not settled.

    Args:
        costs: of shares.
        fill: solves for the best shares within windows.
        start: the middles of the first windows.
        half: half of the width of the first windows.
        grid: points in a window.
        halvings: of the intervals, until half of the width at which windows end.
    """
    t, price, pull = start.t.copy(), start.price.copy(), start.pull.copy()
    halves, rows = np.full_like(t, half), np.arange(len(t))
    offsets = np.linspace(-1, 1, grid)
    for _ in range(ROUNDS):
        window = t[rows][..., None] + halves[rows][..., None] * offsets
        window = np.minimum(np.maximum(window, 0.0), 1.0)
        now = fill(window, costs.at(window, rows))
        halves[rows] = next_half(halves[rows], 2 / (grid - 1), t[rows], now)
        t[rows], price[rows], pull[rows] = now.t, now.price, now.pull
        rows = rows[(halves[rows] > costs.least(halvings)).any(1)]
        if len(rows) == 0:
            break
    return Prices(t, price, pull), rows


def next_half(half: Array, cell: float, before: Array, now: Prices) -> Array:
    """Half widths of the next windows: a cell of this one or less, or wider beyond an edge.

    Coordinates move together, so where one is on an edge, no window of that x shrinks. Where the
    answer moved little, the slopes are straight and the next window is narrower still.

    Args:
        half: (B, d), half widths of these windows.
        cell: width of a cell, as a share of half.
        before: (B, d), the middles of the windows.
        now: the answer in them.
    """
    moved = np.abs(now.t - before)
    edge = (moved >= AT_EDGE * half) & (now.t > 0) & (now.t < 1) & (now.pull > FLAT)
    most = cell * half
    narrow: Array = np.minimum(np.maximum(4 * moved.max(1, keepdims=True), most / FASTER), most)
    if not edge.any():
        return narrow
    return np.where(edge.any(1, keepdims=True), np.where(edge, WIDER * half, half), narrow)


def cell_slopes(t: Array, g: Array) -> Array:
    """The slopes (B, d, J - 1) of the cells of grids t, which do not decrease."""
    width = t[..., 1:] - t[..., :-1]
    some = width > 0
    if some.all():
        slope = (g[..., 1:] - g[..., :-1]) / width
    else:  # cells cut off by a bound take a neighbour's slope
        slope = (g[..., 1:] - g[..., :-1]) / np.where(some, width, 1.0)
        first = np.take_along_axis(slope, some.argmax(-1)[..., None], -1)
        slope = np.where(some, slope, np.where(np.cumsum(some, -1) > 0, -np.inf, first))
    return np.maximum.accumulate(slope, -1)  # rounding may break the order of slopes


def nodes(t: Array, rate: Array) -> tuple[Array, Array]:
    """A broken line through the slopes of cells: at their middles and both ends of the window."""
    x = np.empty((*t.shape[:2], t.shape[2] + 1))
    x[..., 0], x[..., -1] = t[..., 0], t[..., -1]
    x[..., 1:-1] = (t[..., 1:] + t[..., :-1]) / 2
    at = np.empty_like(x)
    at[..., 1:-1] = rate
    at[..., 0] = 1.5 * rate[..., 0] - 0.5 * rate[..., 1]
    at[..., -1] = 1.5 * rate[..., -1] - 0.5 * rate[..., -2]
    return x, at


def kinked_nodes(t: Array, rate: Array) -> tuple[Array, Array]:
    """``nodes``, two for each cell: both at a kink that the cell holds, with the slopes beside it.

    The slopes of the cells on both sides, continued, and the mean slope of the cell say where in
    it the slope jumps. Cells without a jump have both nodes at their middle.
    """
    x, at = (np.repeat(v, 2, -1)[..., 1:-1] for v in nodes(t, rate))
    width, middle = t[..., 1:] - t[..., :-1], x[..., 1:-1:2]
    # how fast slopes rise beside a cell; the smaller of both sides holds no other kink
    bend = (rate[..., 1:] - rate[..., :-1]) / np.maximum(middle[..., 1:] - middle[..., :-1], TINY)
    bend = np.minimum(bend[..., :-3], bend[..., 3:])
    w = width[..., 2:-2]
    left = rate[..., 1:-3] + bend * width[..., 1:-3] / 2  # slopes at both ends of the cell
    right = rate[..., 3:-1] - bend * width[..., 3:-1] / 2
    jump = right - left - bend * w
    after = (rate[..., 2:-2] - left - bend * w / 2) / np.maximum(jump, TINY)
    kink = (jump > JUMP * (right - left)) & (after > WITHIN) & (after < 1 - WITHIN) & (w > 0)
    if kink.any():
        after = np.where(kink, after * w, 0.0)
        place = np.where(kink, t[..., 3:-2] - after, middle[..., 2:-2])
        x[..., 5:-5:2] = x[..., 6:-5:2] = place
        at[..., 5:-5:2] = np.where(kink, left + bend * (w - after), at[..., 5:-5:2])
        at[..., 6:-5:2] = np.where(kink, right - bend * after, at[..., 6:-5:2])
        at = np.maximum.accumulate(at, -1)
    return x, at


def largest_slope(slope: Array) -> Array:
    """For each x, and never 0."""
    largest: Array = np.maximum(np.abs(slope).max((1, 2)), TINY)
    return largest


def bounded(
    found: Prices, costs: ShareCosts, c: Polyhedral, least: float
) -> tuple[Tensor, Array, Array]:
    """The actions of the shares, their costs, and how far these are above the least ones at most.

    ``found.price`` is not negative for rows that are no equalities.
    """
    rows, like = costs.rows, c.bounds[0]
    a = torch.as_tensor(rows.actions(found.t)).to(like)
    if not (met := rows.met(found.t)).all():
        outside = torch.as_tensor(~met, device=a.device)
        a[outside] = c.project(a[outside])
    t = rows.shares(as_numpy(a))
    points = np.zeros((*t.shape, len(NEAR) + 2))  # both ends of the intervals, too
    points[..., 1:-1] = np.minimum(np.maximum(t[..., None] + least * NEAR, 0.0), 1.0)
    points[..., -1] = 1.0
    at = costs.at(points, np.arange(len(t)))
    cost = at[..., 1 + len(NEAR) // 2]
    priced = found.price @ rows.use
    gap = excess(points, at + priced[..., None] * points, cost + priced * t).sum(-1)
    gap += (found.price * (rows.room - t @ rows.use.T)).sum(-1)
    return a, cost.sum(-1), np.maximum(gap, 0.0)
