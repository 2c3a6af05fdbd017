"""Limits between neighbours with known convex slopes: exact dynamic programming along the chain.

With F_1 = g_1 and m_i the least point of F_i, the recursion

    F_{i+1}(a) = g_{i+1}(a) + min { F_i(b) : low_i <= a - b <= high_i }

moves the falling part of F_i by low_i, its rising part by high_i, and is flat between them. So the
slope of F_i stays a broken line. Going back, a_i is the point of [a_{i+1} - high_i,
a_{i+1} - low_i] nearest to m_i. O(nodes) for each coordinate, without a grid of pairs.
"""

from dataclasses import dataclass

import numpy as np

from costscape.solvers.share_rows import TINY, Array
from costscape.solvers.slope_windows import Prices, cell_slopes, kinked_nodes, largest_slope

EVEN = 1e-6  # of the largest slope, added along each interval, as in ``row_level``
STEEP = 2.0  # added to slopes outside of a window, in largest slopes
APART = 1e-13  # of the widest interval, between the two slopes at one point


@dataclass(frozen=True)
class Chain:
    """lower <= a <= upper (d) and low <= a_{i+1} - a_i <= high (d - 1), in double precision."""

    lower: Array
    upper: Array
    low: Array
    high: Array


def fill_chain(t: Array, g: Array, chain: Chain) -> Prices:
    """The best shares of the intervals near a window, for broken lines as slopes.

    Args:
        t: (B, d, J), points of the window of each coordinate, which do not decrease along J.
        g: (B, d, J), costs there.
        chain: the limits.
    """
    width = chain.upper - chain.lower
    most = float(width.max())
    slope = cell_slopes(t, g)
    x, at = kinked_nodes(t, slope / largest_slope(slope)[:, None, None])
    at += EVEN * x
    x, at = _whole_interval(x, at)
    # slopes in the units of actions, which neighbours share
    unit = np.where(width > 0, width, most)[:, None]
    x, at = chain.lower[:, None] + width[:, None] * x, at * (most / unit)
    x[..., 2:-2:2] -= APART * most  # the first of the two nodes of a cell
    found = _least(x, at)
    step = found[:, 1:] - found[:, :-1]
    for b in np.flatnonzero(((step < chain.low) | (step > chain.high)).any(1)):
        found[b] = _best(x[b], at[b], chain, APART * most)
    share = (found - chain.lower) / np.where(width > 0, width, 1.0)
    return Prices(share.clip(0, 1), np.zeros((len(t), 0)), np.ones(share.shape))


def _whole_interval(x: Array, at: Array) -> tuple[Array, Array]:
    """The line continued steeply to both ends of the interval, so that limits can be met."""
    start, end = x[..., :1], x[..., -1:]
    x = np.concatenate([np.zeros_like(start), x, np.ones_like(end)], -1)
    first, last = at[..., :1] - STEEP * (start > 0), at[..., -1:] + STEEP * (end < 1)
    return x, np.concatenate([first, at, last], -1)


def _least(x: Array, s: Array) -> Array:
    """Where broken lines s (..., n) at nodes x (..., n) cross 0, or the end nearest to that."""
    k = np.maximum((s < 0).sum(-1, keepdims=True), 1) - 1  # the last node below 0
    after = np.minimum(k + 1, s.shape[-1] - 1)
    x0, x1, s0, s1 = (np.take_along_axis(v, i, -1)[..., 0] for v in (x, s) for i in (k, after))
    share = -s0 / np.maximum(s1 - s0, TINY)
    least: Array = x0 + (x1 - x0) * np.minimum(np.maximum(share, 0.0), 1.0)
    return least


def _best(x: Array, s: Array, chain: Chain, apart: float) -> Array:
    """The best actions (d) of one x, for slopes s (d, n) at nodes x (d, n)."""
    at, slope, lower, upper = x[0], s[0], chain.lower[0], chain.upper[0]
    least = np.empty(len(x))
    for i in range(len(x)):
        k = int(slope.searchsorted(0.0))
        if k == 0 or k == len(slope):
            m = at[0] if k == 0 else at[-1]
        else:
            m = at[k - 1] - slope[k - 1] * (at[k] - at[k - 1]) / (slope[k] - slope[k - 1])
        least[i] = m
        if i + 1 == len(x):
            break
        low, high = chain.low[i], chain.high[i]
        off = apart if high - low > 4 * apart else 0.0
        before = np.concatenate([at[:k] + low, [m + low + off, m + high - off], at[k:] + high])
        rates = np.concatenate([slope[:k], [0.0, 0.0], slope[k:]])
        lower, upper = max(chain.lower[i + 1], lower + low), min(chain.upper[i + 1], upper + high)
        at = np.concatenate([before, x[i + 1]])
        at.sort()
        at = np.concatenate(
            [[lower], at[at.searchsorted(lower) : at.searchsorted(upper)], [upper]]
        )
        slope = np.interp(at, before, rates) + np.interp(at, x[i + 1], s[i + 1])
        slope = np.maximum.accumulate(slope)  # rounding may break the order
    for i in range(len(x) - 2, -1, -1):
        least[i] = min(max(least[i], least[i + 1] - chain.high[i]), least[i + 1] - chain.low[i])
    return least
