"""The shift that brings a clipped sum to its total.

    tau such that  sum_i clip(a_i - tau, 0, u_i) = T

The sum is piecewise linear and falls in tau, with breaks at a_i - u_i and a_i; a binary search
over the 2d sorted breaks finds the piece, and on a piece tau is a division. The subtraction of
tau is the Euclidean projection onto {0 <= p <= u, sum p = T}: its optimality condition is
p_i = clip(a_i - tau, 0, u_i) with tau the multiplier of the sum.
"""

import torch
from jaxtyping import Float
from torch import Tensor


def onto_total(
    a: Float[Tensor, "*batch d"], upper: Float[Tensor, "d"], total: Float[Tensor, ""]
) -> Float[Tensor, "*batch d"]:
    """The nearest point with 0 <= p <= upper and sum p = total, where sum upper >= total.

    O(d log d) an action, differentiable. The projection does not change when all of ``a`` is
    shifted, so a second search from the shifted point takes away the first one's rounding.
    """
    for _ in range(2):
        a = a - _shift(a, upper, total)
    return _clipped(a, upper)


def _shift(a: Tensor, upper: Tensor, total: Tensor) -> Tensor:
    breaks = torch.cat([a - upper, a], -1).sort(-1).values
    low = torch.zeros_like(a[..., :1], dtype=torch.long)
    high = torch.full_like(low, breaks.shape[-1])
    for _ in range((breaks.shape[-1] - 1).bit_length()):
        middle = (low + high) // 2
        enough = _clipped(a - breaks.gather(-1, middle), upper).sum(-1, keepdim=True) >= total
        low, high = middle.where(enough, low), high.where(enough, middle)
    tau, end = breaks.gather(-1, low), breaks.gather(-1, low + 1)
    over = _clipped(a - tau, upper).sum(-1, keepdim=True) - total
    free = ((a - upper <= tau) & (tau < a)).sum(-1, keepdim=True)
    # a piece without slope that is over all along: a_i - u_i has been rounded to a_i
    return torch.where((free == 0) & (over > 0), end, tau + over / free.clamp(min=1))


def _clipped(a: Tensor, upper: Tensor) -> Tensor:
    return a.clamp(torch.zeros_like(upper), upper)
