"""The valleys of a function on an even grid, and which are worth a look."""

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from costscape.solvers.grids.table import FALL


def local_minima(
    cost: Float[Tensor, "*batch J"], n: int
) -> tuple[Float[Tensor, "*batch n"], Int64[Tensor, "*batch n"], Bool[Tensor, "*batch n"]]:
    """The n lowest local minima along the last axis, a plateau being one, and which there are.

    If there are fewer than n, the rest are copies of the lowest.
    """
    if n == 1:
        best, k = cost.min(-1, keepdim=True)
        return best, k, torch.ones_like(k, dtype=torch.bool)
    valley = torch.ones_like(cost, dtype=torch.bool)
    valley[..., 1:] = cost[..., 1:] < cost[..., :-1]
    valley[..., :-1] &= cost[..., :-1] <= cost[..., 1:]
    best, k = cost.where(valley, torch.inf).topk(n, -1, largest=False)
    found = ~best.isinf()
    return best.where(found, best[..., :1]), k.where(found, k[..., :1]), found


def hopeful(
    cost: Float[Tensor, "*batch J"], best: Float[Tensor, "*batch n"], k: Int64[Tensor, "*batch n"]
) -> Bool[Tensor, "*batch n"]:
    """Which minima may, between the grid's points, fall below the lowest.

    Where g is convex within two cells of k it falls there by no more than the largest of its
    four differences; FALL times that is taken.
    """
    if k.shape[-1] == 1 or cost.shape[-1] < 5:
        return torch.ones_like(k, dtype=torch.bool)
    middle = k.clamp(2, cost.shape[-1] - 3)
    around = torch.stack([cost.gather(-1, middle + i) for i in range(-2, 3)])
    rise = around.diff(dim=0).abs().amax(0)
    return best - best[..., :1] <= FALL * rise


def promising(
    cost: Float[Tensor, "*batch J"], minima: Int64[Tensor, "*batch m"], n: int
) -> Int64[Tensor, "*batch n"]:
    """The n cells to look into, in order: those beside the minima, then those with low ends."""
    low = torch.minimum(cost[..., :-1], cost[..., 1:])
    beside = torch.cat([minima - 1, minima], -1).clamp(0, low.shape[-1] - 1)
    low = low.scatter(-1, beside, -torch.inf)
    return low.topk(min(n, low.shape[-1]), -1, largest=False).indices.sort(-1).values
