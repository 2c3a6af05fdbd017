"""One row shared by coordinates with known slopes: the price at which it is met.

With multiplier L of the row use . t <= room, each slope is g_i'(t_i) = -L use_i. For broken lines
as slopes, use . t is a broken line in L, so that one sort finds L.
"""

from collections.abc import Callable

import numpy as np

from costscape.solvers.share_rows import TINY, Array, ShareRows
from costscape.solvers.slope_windows import Lines, Prices, cell_slopes, largest_slope, nodes

EVEN = 1e-6  # of the largest slope, added along each interval: where many actions are the best,
# neither rounding nor the batch chooses among them
BISECTIONS = 40  # of the price
GRID = 17  # points that show the largest slope


def fill(t: Array, g: Array, row: ShareRows, even: float = EVEN, lines: Lines = nodes) -> Prices:
    """The best shares in a window, for broken lines as slopes, and the price of the row.

    Args:
        t: (B, d, J), points of the window of each coordinate, which do not decrease along J.
        g: (B, d, J), costs there.
        row: the row. The shares meet it where the window allows it.
        even: added to the slopes along each interval.
        lines: ``nodes`` or ``kinked_nodes``, the slopes between the cells.
    """
    use, room = row.use[0], row.room[0]
    slope = cell_slopes(t, g)
    unit = largest_slope(slope)
    x, at = lines(t, slope / (unit[:, None, None] * np.where(use > 0, use, 1.0)[:, None]))
    at += even * x
    span, rise = x[..., 1:] - x[..., :-1], np.maximum(at[..., 1:] - at[..., :-1], TINY)
    level = _level(at, use[:, None] * span / rise, room - x[..., 0] @ use)
    if not row.equal[0]:
        level = np.minimum(level, 0.0)
    own = np.where(use > 0, level[:, None], 0.0)  # what uses nothing has no price
    share = np.minimum(np.maximum((own[..., None] - at[..., :-1]) / rise, 0.0), 1.0)
    found = x[..., 0] + (share * span).sum(-1)
    unmet = found @ use - room
    unmet = np.abs(unmet) if row.equal[0] else np.maximum(unmet, 0.0)
    pull = np.maximum(np.maximum(at[..., 0] - own, own - at[..., -1]), unmet[:, None])
    return Prices(found, (-level * unit)[:, None], pull)


def _level(rate: Array, density: Array, room: Array) -> Array:
    """The level at which cells of these densities, filled from their rates on, take the room."""
    change = np.zeros_like(rate)
    change[..., :-1] = density
    change[..., 1:] -= density
    rows = np.arange(len(rate))
    rate, change = rate.reshape(len(rate), -1), change.reshape(len(rate), -1)
    order = rate.argsort(1)
    rate, density = rate[rows[:, None], order], change[rows[:, None], order]
    density = density.cumsum(1)[:, :-1]
    taken = (density * (rate[:, 1:] - rate[:, :-1])).cumsum(1)
    i = np.minimum((taken < room[:, None]).sum(1), taken.shape[1] - 1)
    low, high = rate[rows, i], rate[rows, i + 1]
    level: Array = high - (taken[rows, i] - room) / np.maximum(density[rows, i], 1e-30)
    level = np.minimum(np.maximum(level, low), high)
    return level


def bisect(
    costs: Callable[[Array], Array], row: ShareRows, batch: int, least: float
) -> tuple[Array, Array]:
    """Shares and prices by bisection of the price; slow, and sure for every convex cost.

    Of the two answers around the capacity, both minimise the same Lagrangian at the end, and so
    does the point between them that uses the capacity exactly.
    """
    use, room = row.use[0], row.room[0]
    ends = costs(np.broadcast_to(np.linspace(0, 1, GRID), (batch, len(use), GRID)))
    most = np.abs(np.diff(ends)).max((1, 2)) * (GRID - 1) / use[use > 0].min()
    low, high = (-most if row.equal[0] else np.zeros_like(most)), most
    over, under = _cheapest(costs, low, use, least), _cheapest(costs, high, use, least)
    for _ in range(BISECTIONS):
        price = (low + high) / 2
        t = _cheapest(costs, price, use, least)
        more = (t @ use > room).reshape(-1, 1)
        over, under = np.where(more, t, over), np.where(more, under, t)
        low, high = np.where(more[:, 0], price, low), np.where(more[:, 0], high, price)
    used, rest = over @ use, under @ use
    share = ((room - rest) / np.maximum(used - rest, TINY)).clip(0, 1)
    return under + share[:, None] * (over - under), high[:, None]


def _cheapest(costs: Callable[[Array], Array], price: Array, use: Array, least: float) -> Array:
    """argmin over [0, 1] of g_i(t) + price use_i t, for each coordinate."""
    t, half = np.full((len(price), len(use)), 0.5), 0.5
    while half > least / 2:
        points = (t[..., None] + half * np.linspace(-1, 1, 9)).clip(0, 1)
        best = (costs(points) + (price[:, None] * use)[..., None] * points).argmin(-1)
        t, half = np.take_along_axis(points, best[..., None], -1)[..., 0], half / 4
    return t
