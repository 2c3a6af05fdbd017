"""Several rows between coordinates with known slopes: their prices, by an interior-point method.

    minimise  sum_i g_i(t_i)  over windows of t, with  use t <= room

For slopes that are broken lines, each g_i is a sum over pieces j of widths w, with an amount
0 <= u_j <= w_j of each: slope_j u_j + rise_j u_j^2 / (2 w_j). That is a quadratic program with a
diagonal matrix. Each step of Mehrotra's predictor-corrector method (1992) solves a system as large
as the number of rows, for all x at once.
"""

import numpy as np

from costscape.solvers.share_rows import MET, Array, ShareRows
from costscape.solvers.slope_windows import Lines, Prices, cell_slopes, largest_slope, nodes

EVEN = 1e-6  # of the largest slope, added along each interval, as in ``row_level``
BEYOND = 8.0  # pieces of this many half windows beyond both ends, so that rows can be met
STEEP = 2.0  # slope of these pieces, in largest slopes: they are used where rows need them only
NARROW = 1e-9  # width of a piece, in windows, that counts as none
STEPS = 30  # at most
DONE = 1e-9  # mean product of slacks and multipliers, in units of a window and its largest slope
NEARLY = 0.995  # share of the way to the nearest bound


def fill_rows(t: Array, g: Array, rows: ShareRows, lines: Lines = nodes) -> Prices:
    """The best shares near a window, for broken lines as slopes, and the prices of the rows.

    Args:
        t: (B, d, J), points of the window of each coordinate, which do not decrease along J.
        g: (B, d, J), costs there.
        rows: the rows.
        lines: ``nodes`` or ``kinked_nodes``, the slopes between the cells.
    """
    slope = cell_slopes(t, g)
    unit = largest_slope(slope)
    x, at = lines(t, slope / unit[:, None, None])
    size = (t[..., -1] - t[..., 0]).max(1).clip(1e-300)  # of the largest window of each x
    far = BEYOND * size[:, None, None]
    x = np.concatenate([np.maximum(x[..., :1] - far, 0), x, np.minimum(x[..., -1:] + far, 1)], -1)
    at = np.concatenate([at[..., :1], at, at[..., -1:]], -1) + EVEN * x
    low, high = at[..., 0].copy(), at[..., -1].copy()
    width = (x[..., 1:] - x[..., :-1]) / size[:, None, None]
    rise, first = np.maximum(at[..., 1:] - at[..., :-1], 0.0), at[..., :-1].copy()
    first[..., 0] -= STEEP
    first[..., -1] += STEEP
    some = width > NARROW
    order = (~some).argsort(-1, kind="stable")[..., : some.sum(-1).max()]
    width, rise, first, some = (
        np.take_along_axis(v, order, -1) for v in (width, rise, first, some)
    )
    # a piece without width, such as one between both nodes of a cell, is never worth filling
    width = np.where(some, width, 1.0)
    first = np.where(some, first, 4 * STEEP + np.abs(first).max())
    bend = np.where(some, rise / width, 1.0)
    start, room = x[..., 0], (rows.room - x[..., 0] @ rows.use.T) / size[:, None]
    amount, price = _interior(first, bend, width, rows, room)
    found = start + size[:, None] * np.where(some, amount, 0.0).sum(-1)
    own = -price @ rows.use
    pull = np.maximum(low - own, own - high)
    return Prices(found.clip(0, 1), price * unit[:, None], pull)


def _interior(s: Array, c: Array, w: Array, rows: ShareRows, room: Array) -> tuple[Array, Array]:
    """Amounts u (B, d, P) and prices (B, m) of min s u + c u^2 / 2 with use sum(u) <= room."""
    K, free = rows.use, ~rows.equal
    B, m = room.shape
    u, v, low, high = w / 2, w / 2, np.ones_like(w), np.ones_like(w)
    price = np.where(free, np.ones((B, m)), 0.0)
    slack = np.where(free, np.maximum(room - u.sum(-1) @ K.T, 0.5), 0.0)
    count = 2 * w[0].size + free.sum()
    diagonal = np.arange(m)
    for _ in range(STEPS):
        dual = s + c * u + (price @ K)[..., None] - low + high
        short = u.sum(-1) @ K.T + slack - room
        mean = ((low * u).sum((1, 2)) + (high * v).sum((1, 2)) + (price * slack)[:, free].sum(1)) / count
        going = (mean > DONE) | (np.abs(short).max(1) > MET)
        if not going.any():
            break
        D = c + low / u + high / v
        H = (1 / D).sum(-1)
        M = np.einsum("ri,bi,si->brs", K, H, K)
        M[:, diagonal, diagonal] += np.where(free, slack / np.where(free, price, 1.0), 0.0) + 1e-13

        def step(of_low: Array, of_high: Array, of_row: Array) -> tuple[Array, ...]:
            """The Newton step to these products of slacks and multipliers."""
            q = -dual + of_low / u - of_high / v
            right = (q / D).sum(-1) @ K.T + np.where(free, of_row / np.where(free, price, 1.0), 0.0) + short
            dp = np.linalg.solve(M, right[..., None])[..., 0]
            du = (q - (dp @ K)[..., None]) / D
            dlow, dhigh = (of_low - low * du) / u, (of_high + high * du) / v
            ds = np.where(free, (of_row - slack * dp) / np.where(free, price, 1.0), 0.0)
            return du, dlow, dhigh, dp, ds

        def longest(du: Array, dlow: Array, dhigh: Array, dp: Array, ds: Array) -> Array:
            """The share of the step after which all stay positive, for each x."""
            most = np.ones(B)
            for value, change in ((u, du), (v, -du), (low, dlow), (high, dhigh)):
                most = np.minimum(most, 1 / np.maximum(1.0, (-change / value).max((1, 2))))
            for value, change in ((price, dp), (slack, ds)):
                if free.any():
                    ratio = (-change[:, free] / value[:, free]).max(1)
                    most = np.minimum(most, 1 / np.maximum(1.0, ratio))
            return most

        affine = step(-low * u, -high * v, -price * slack)
        a = longest(*affine)[:, None, None]
        du, dlow, dhigh, dp, ds = affine
        after = ((low + a * dlow) * (u + a * du)).sum((1, 2))
        after += ((high + a * dhigh) * (v - a * du)).sum((1, 2))
        after += ((price + a[..., 0] * dp) * (slack + a[..., 0] * ds))[:, free].sum(1)
        aim = ((after / count / mean) ** 3 * mean)[:, None, None]
        both = step(
            aim - low * u - dlow * du, aim - high * v + dhigh * du, aim[..., 0] - price * slack - dp * ds
        )
        a = (NEARLY * longest(*both) * going)[:, None, None]
        du, dlow, dhigh, dp, ds = both
        u, v, low, high = u + a * du, v - a * du, low + a * dlow, high + a * dhigh
        price, slack = price + a[..., 0] * dp, slack + a[..., 0] * ds
    return u, price
