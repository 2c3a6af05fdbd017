"""How many people are in each region: n of ``seirv``, which travel changes and doses do not."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

# of 32 lanes with two columns of a tile of 64 each: sums over its rows cross no lanes, and shared
# memory, from which lanes read the numbers of a state, is read half as often as by two warps
WARPS = 1


def padded(K: int) -> int:
    """The length of a kernel's vectors for K regions: a power of two, at least 16."""
    return max(16, 1 << (K - 1).bit_length())


def people_at_stages(
    flow: Float[Tensor, "P T K K"], start: Float[Tensor, "K"], rates: Tensor, days: int, steps: int
) -> Float[Tensor, "P {days*steps} 4 K"]:
    """Return n at the four stages of each step of RK4, by the kernels of ``people_kernels``.

    - ``flow``: of P travel patterns; day t has flow[:, t mod T]. Slopes are in it.
    - ``start``: n at the start.
    - ``rates``: their first number is the length of a step.
    - ``steps``: a day.

    Cost: P * days * steps * 4 products of K numbers by K x K.
    """
    n: Tensor = _People.apply(flow, start, rates, days, steps)  # type: ignore[no-untyped-call]
    return n


class _People(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, flow: Tensor, start: Tensor, rates: Tensor, days: int, steps: int
    ) -> Tensor:
        from costscape.problems.vaccine_doses import people_kernels  # imports Triton

        P, T, K, _ = flow.shape
        n = flow.new_empty(P, days * steps, 4, K)
        with torch.cuda.device_of(flow):
            people_kernels.forward[(P,)](
                flow, start, rates, n, T, days, steps, K=K, WIDE=padded(K), num_warps=WARPS
            )
        ctx.save_for_backward(flow, rates, n)
        ctx.days, ctx.steps = days, steps
        return n

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        from costscape.problems.vaccine_doses import people_kernels  # imports Triton

        flow, rates, n = ctx.saved_tensors
        P, T, K, _ = flow.shape
        slopes = torch.empty_like(n)
        with torch.cuda.device_of(flow):
            people_kernels.backward[(P,)](
                flow.mT.contiguous(), g.contiguous(), rates, slopes, T, ctx.days, ctx.steps,
                K=K, WIDE=padded(K), num_warps=WARPS,
            )  # fmt: skip
        # the derivative in the flow of a day is the sum of X' q over that day of all weeks
        left, right = (
            _by_day(v.flatten(1, 2).unflatten(1, (ctx.days, -1)), T) for v in (n, slopes)
        )
        return left.mT @ right, None, None, None, None


def _by_day(v: Float[Tensor, "P days R K"], T: int) -> Float[Tensor, "P T rows K"]:
    """The rows of days t, t + T, t + 2 T, ... together; days that are lacking have zeros."""
    lacking = -v.shape[1] % T
    whole = torch.cat([v, v.new_zeros(len(v), lacking, *v.shape[2:])], 1)
    weeks: Tensor = whole.unflatten(1, (-1, T))
    return weeks.transpose(1, 2).flatten(2, 3)
