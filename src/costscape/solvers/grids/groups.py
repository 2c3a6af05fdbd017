"""Which part of a grid can hold the best action, from bounds on groups of its points.

    L[i, c, s] = min_(j in c) T[i, j, s]  -  fall max_(j near c) |T[i, j+1, s] - T[i, j, s]|

T the table of f and c a group of neighbouring grid points. sum_s w_s L[i, c, s] is at most the
least of g_i(x, .) on c, less ``fall`` times its largest step there. A group where this is above
g_i at some action has nothing to offer. L is a sixteenth of T, and for one x the time of a look at
the grid is that of reading the table.
"""

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

GROUP = 16  # grid points
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
    most = _padded(f.diff(dim=0).abs(), groups * GROUP).unflatten(0, (-1, NEAR)).amax(1)
    each = most.unflatten(0, (groups, GROUP // NEAR))
    step = each.amax(1)
    step[1:] = torch.maximum(step[1:], each[:-1, -1])
    step[:-1] = torch.maximum(step[:-1], each[1:, 0])
    bound: Tensor = least - fall * step
    return bound


def _padded(f: Tensor, n: int) -> Tensor:
    return torch.cat([f, f[-1:].expand(n - len(f), -1)])


def within(
    costs: Float[Tensor, "d J S"],
    bounds: Float[Tensor, "d G S"],
    size: Float[Tensor, "d"],
    w: Float[Tensor, "S"],
) -> tuple[Float[np.ndarray, "d K"], Bool[np.ndarray, "d K"], int]:
    """A part of the grid that holds the best of every coordinate, and where it begins.

    The d summands of g there, infinite where they are not needed, and where they are. Of each
    coordinate the stretch from the first group that may hold the best to the last is computed, and
    NEAR points on either side.
    """
    (d, J, _), flat = costs.shape, costs.flatten(0, 1)
    low = torch.mv(bounds.flatten(0, 1), w).numpy().reshape(d, -1)
    # the middle of the group that seems lowest
    middle = np.minimum(low.argmin(1) * GROUP + GROUP // 2, J - 1)
    one = torch.from_numpy(middle + J * np.arange(d))
    least = torch.mv(flat.index_select(0, one), w).numpy()
    slack = SLACK * torch.finfo(w.dtype).eps * (size.numpy() + np.abs(least))
    needed = low <= (least + slack)[:, None]
    first = (needed.argmax(1) * GROUP).tolist()
    after = (needed[:, ::-1].argmax(1) * GROUP).tolist()
    last = [min(J, GROUP * low.shape[1] - n) for n in after]
    begin, end = max(0, min(first) - NEAR), min(J, max(last) + NEAR)
    g = np.full((d, end - begin), np.inf, low.dtype)
    inside = np.zeros(g.shape, bool)
    for n, (i, j) in enumerate(zip(first, last, strict=True)):
        inside[n, i - begin : j - begin] = True
        i, j = max(0, i - NEAR), min(J, j + NEAR)
        g[n, i - begin : j - begin] = flat.narrow(0, n * J + i, j - i).mv(w).numpy()
    return g, inside, begin
