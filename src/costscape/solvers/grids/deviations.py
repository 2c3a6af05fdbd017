"""How far each outcome's cost is from the mean of the two nodes beside it.

R of ``condensed`` is measured at every outcome within every two cells of the grid, and taken
MARGIN times as large for what lies between.
"""

from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor

from costscape.task import SeparableTask

PIECE, ACTIONS = 2**13, 4  # outcomes and actions looked at at once
MARGIN = 1.3
GOLDEN, SILVER = 0.6180339887, 0.4142135624


def deviations(
    task: SeparableTask,
    y: Float[Tensor, "1 S d"],
    nodes: Float[Tensor, "1 n d"],
    cells: Int64[Tensor, "d S"],
    thetas: Float[Tensor, "d S"],
    a: Float[Tensor, "J d"],
) -> tuple[Float[Tensor, "d G n"], Float[Tensor, "d n"], Float[Tensor, "d"]]:
    """R+, R- and the spread of f_i; y is sorted in each coordinate.

    Each outcome is asked once within every two cells of the grid, and its neighbours elsewhere in
    them: a kink or a jump that is narrower than a cell shows at one of them.
    """
    d, n, S = a.shape[1], nodes.shape[1], y.shape[1]
    steps = (len(a) - 1) // 2
    low, width = a[: 2 * steps : 2], a[2 : 2 * steps + 1 : 2] - a[: 2 * steps : 2]
    over, under = a.new_zeros(d, steps, n), a.new_zeros(d, n)
    spread = a.new_zeros(d)
    # numbers in [0, 1) that fill it evenly, over any few neighbours and any few actions
    scattered, moved = (
        (step * torch.arange(n, dtype=torch.float64)).frac().to(a)
        for step, n in ((GOLDEN, PIECE), (SILVER, steps))
    )
    for s in range(0, S, PIECE):
        here = slice(s, s + PIECE)
        cell, theta, of = cells[:, here], thetas[:, here].T, y[:, here]
        left, right = (nodes[0].T.gather(1, cell + k).T[None] for k in (0, 1))
        starts = [_starts(each) for each in cell]
        most_f = torch.full_like(of[0], -torch.inf)
        least_f = -most_f
        for j in range(0, steps, ACTIONS):
            at = slice(j, j + ACTIONS)
            u = (scattered[: of.shape[1]] + moved[at, None]).frac()
            b = (low[at, :, None] + width[at, :, None] * u[:, None]).mT  # (actions, outcomes, d)
            f = task.terms(of, b)
            r = torch.lerp(task.terms(left, b), task.terms(right, b), theta).sub_(f)
            most_f = torch.maximum(most_f, f.amax(0))
            least_f = torch.minimum(least_f, f.amin(0))
            for i, (start, first) in enumerate(starts):
                most = torch.from_numpy(np.maximum.reduceat(r[..., i].numpy(), start, axis=1))
                over[i, at, first] = torch.maximum(over[i, at, first], most)
                least = np.minimum.reduceat(r[..., i].amin(0).numpy(), start)
                under[i, first] = torch.maximum(under[i, first], -torch.from_numpy(least))
        spread = torch.maximum(spread, (most_f - least_f).amax(0))
    return _beside(over, n), _beside(under.unsqueeze(1), n)[:, 0], spread


def _beside(r: Float[Tensor, "d G n"], n: int) -> Float[Tensor, "d G n"]:
    """A node stands for the cells on either side.

    The next ones are taken in too, which are alike and were asked elsewhere.
    """
    r = torch.cat([r[..., :1], r], -1)
    return MARGIN * torch.nn.functional.max_pool1d(r, 4, 1, 1)[..., :n]


def _starts(cell: Int64[Tensor, "s"]) -> tuple[Any, Int64[Tensor, "c"]]:
    """Where each cell begins, and which it is."""
    first, count = cell.unique_consecutive(return_counts=True)
    return (count.cumsum(0) - count).numpy(), first
