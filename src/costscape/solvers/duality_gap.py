"""How far a convex cost of one variable can be below its value at some points.

Between neighbouring points a convex function lies above the extensions of the chords on both
sides of their cell. The least value over a cell of the larger of the two lines bounds the
function from below there, without derivatives.

With a multiplier L of a row k . a <= h, weak duality bounds the cost of every feasible action:

    sum_i g_i(a_i)  >=  sum_i min_t ( g_i(t) + L k_i t ) - L h.
"""

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


def excess(t: Array, g: Array, at: Array) -> Array:
    """A bound on ``at`` minus the least g over the whole interval, never too small.

    Args:
        t: (..., J), points that do not decrease, the ends of the interval among them.
        g: (..., J), the values of a convex function at these points.
        at: (...), the value from which the least one is subtracted.
    """
    width, rise = np.diff(t), np.diff(g)
    wide = width > 0
    slope = rise / np.where(wide, width, 1.0)
    # a cell without width has no chord, and no line beside the cell is known there
    left, right = np.full_like(slope, -np.inf), np.full_like(slope, np.inf)
    left[..., 1:] = np.where(wide, slope, -np.inf)[..., :-1]
    right[..., :-1] = np.where(wide, slope, np.inf)[..., 1:]
    both = (left < 0) & (right > 0) & np.isfinite(left) & np.isfinite(right)
    p, q = np.where(both, left, -1.0), np.where(both, right, 1.0)
    crossing = g[..., :-1] + p * (rise - q * width) / (p - q)
    with np.errstate(invalid="ignore"):  # infinity times no width, which is left out
        from_right = g[..., 1:] - right.clip(0.0) * width
        from_left = g[..., :-1] + left.clip(max=0.0) * width
    least = np.where(both, crossing, np.fmax(from_left, from_right))
    least = np.where(wide, least, g[..., 1:]).min(-1)
    bound: Array = (at - least).clip(0.0)
    return bound
