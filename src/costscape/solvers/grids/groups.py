"""Which part of a grid can hold the best action, from bounds on groups of its points.

    L[i, c, s] = min_(j in c) T[i, j, s]  -  fall max_(j near c) |T[i, j+1, s] - T[i, j, s]|

T the table of f and c a group of neighbouring grid points. sum_s w_s L[i, c, s] is at most the
least of g_i(x, .) on c, less ``fall`` times its largest step there. A group where this is above
g_i at some action has nothing to offer. L is an eighth of T, and for one x the time of a look at
the grid is that of reading the table.
"""

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

GROUP = 8  # grid points
NEAR = 4  # points on either side that a look at a group's minima takes in
SLACK = 32  # roundings between a bound and what it bounds


def lower_bounds(costs: Float[Tensor, "d J S"], fall: float) -> Float[Tensor, "d G S"] | None:
    """L, or None where f is not finite: it then bounds nothing."""
    bounds = torch.stack([_bound(f, fall) for f in costs])  # a coordinate at a time, in the cache
    return bounds if bool(bounds.isfinite().all()) else None


def _bound(f: Float[Tensor, "J S"], fall: float) -> Float[Tensor, "G S"]:
    groups = -(-len(f) // GROUP)
    least: Tensor = _padded(f, groups * GROUP).unflatten(0, (groups, GROUP)).amin(1)
    if not fall:
        return least
    halves = _padded(f.diff(dim=0).abs(), groups * GROUP).unflatten(0, (2 * groups, NEAR)).amax(1)
    before, after = halves[1:-1:2], halves[2::2]
    step = torch.maximum(halves[::2], halves[1::2])
    step[1:] = torch.maximum(step[1:], before)
    step[:-1] = torch.maximum(step[:-1], after)
    bound: Tensor = least - fall * step
    return bound


def _padded(f: Tensor, n: int) -> Tensor:
    return torch.cat([f, f[-1:].expand(n - len(f), -1)])


def within(
    costs: Float[Tensor, "d J S"],
    bounds: Float[Tensor, "d G S"],
    size: Float[Tensor, "d"],
    w: Float[Tensor, "S"],
) -> tuple[Float[Tensor, "d K"], Bool[Tensor, "d K"], int]:
    """A part of the grid that holds the best of every coordinate, and where it begins.

    The d summands of g there, infinite where they are not needed, and where they are. Of each
    coordinate the stretch from the first group that may hold the best to the last is computed, and
    NEAR points on either side.
    """
    d, J, _ = costs.shape
    low = torch.mv(bounds.flatten(0, 1), w).numpy().reshape(d, -1)
    start = np.minimum(low.argmin(1) * GROUP, J - GROUP) + J * np.arange(d)
    rows = torch.from_numpy(start[:, None] + np.arange(GROUP)).flatten()
    some = torch.mv(costs.flatten(0, 1).index_select(0, rows), w)
    least = some.numpy().reshape(d, GROUP).min(1)
    slack = SLACK * torch.finfo(w.dtype).eps * (size.numpy() + np.abs(least))
    needed = low <= (least + slack)[:, None]
    first = needed.argmax(1) * GROUP
    last = np.minimum((needed.shape[1] - needed[:, ::-1].argmax(1)) * GROUP, J)
    begin, end = max(0, first.min() - NEAR), min(J, last.max() + NEAR)
    g = costs.new_full((d, end - begin), torch.inf)
    for f, out, i, j in zip(costs, g, first.tolist(), last.tolist(), strict=True):
        i, j = max(0, i - NEAR), min(J, j + NEAR)
        torch.mv(f[i:j], w, out=out[i - begin : j - begin])
    at = np.arange(begin, end)
    return g, torch.from_numpy((at >= first[:, None]) & (at < last[:, None])), int(begin)
