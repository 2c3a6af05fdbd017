"""New infections by the two kernels of ``seirv_kernels``, on a GPU."""

import os
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from shutil import which
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

SMALLEST = 1e-6  # of S + E, against quotients of rounding errors
REGIONS = 64  # a square tile of more does not fit the registers of a program
WARPS = 2  # a lane for each column of a tile of 64, so that sums over its rows cross no lanes
GROUP = 8_192  # simulations whose states are held at once: 0.7 GB for a wave of 47 regions
FEWER = 2_048  # where slopes of the flow are wanted, which takes nine times as much for each


@dataclass(frozen=True)
class Course:
    """Rates and lengths of a simulation, as in ``seirv.simulate``."""

    sigma: float
    gamma: float
    days: int
    dose_days: int
    steps: int


def serves(doses: Tensor, *fixed: Tensor) -> bool:
    """Whether the kernels can be used: on a GPU with Triton, where ``fixed`` need no gradients."""
    learned = any(v.requires_grad for v in fixed) and torch.is_grad_enabled()
    return (
        doses.is_cuda
        and not learned
        and doses.numel() > 0
        and doses.shape[-1] <= REGIONS
        and _has_triton()
    )


@cache
def _has_triton() -> bool:
    """Whether there is Triton, and a C compiler, with which it builds the launch of a kernel."""
    compilers = (os.environ.get("CC", "cc"), "gcc", "clang")
    return find_spec("triton") is not None and any(map(which, compilers))


def new_infections(
    flow: Float[Tensor, "P T K K"],
    doses: Float[Tensor, "P F K"],
    start: Float[Tensor, "5 K"],
    beta: Float[Tensor, "K"],
    course: Course,
) -> Float[Tensor, "P F K"]:
    """Return the newly infected, as shares of each region's people at the start.

    Args:
        flow: shares @ flow is the change of shares by travel; day t has flow[:, t mod T].
        doses: a day, as shares, during the first days.
        start: S, E, I, R and V, as shares.
        beta: rates of transmission a day.
        course: the other numbers of the simulation.

    Slopes are in ``doses`` and ``flow``. They need 4 K numbers for each step of a simulation,
    which are held for one group of simulations; more groups are simulated again one by one.
    """
    rates = _rates(doses, course)
    first = torch.cat([start.sum(0, keepdim=True), start[:3]])
    infected: Tensor = _Fused.apply(  # type: ignore[no-untyped-call]
        doses.contiguous(), flow.contiguous(), first, beta.contiguous(), rates, course
    )
    return infected


class _Fused(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, doses: Tensor, flow: Tensor, first: Tensor, beta: Tensor, rates: Tensor,
        course: Course,
    ) -> Tensor:  # fmt: skip
        # simulations whose slopes are computed at once
        ctx.most = FEWER if ctx.needs_input_grad[1] else GROUP
        few = doses.shape[:2].numel() <= ctx.most and any(ctx.needs_input_grad)
        infected, kept = _forward(doses, flow, first, beta, rates, course, few)
        ctx.save_for_backward(doses, flow, first, beta, rates, kept)
        ctx.course, ctx.few = course, few
        return infected

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        doses, flow, first, beta, rates, kept = ctx.saved_tensors
        wanted = ctx.needs_input_grad[1]
        g = g.contiguous()
        g_doses, g_flow = torch.empty_like(doses), torch.empty_like(flow if wanted else flow[:0])
        rows = len(doses) if ctx.few else max(1, ctx.most // doses.shape[1])
        for i in range(0, len(doses), rows):
            some = slice(i, i + rows)
            fixed = (doses[some], flow[some], first, beta, rates)
            if not ctx.few:
                _, kept = _forward(*fixed, ctx.course, keep=True)
            g_doses[some], slope = _backward(*fixed, ctx.course, kept, g[some], wanted)
            if wanted:
                g_flow[some] = slope
        return g_doses, g_flow if wanted else None, None, None, None, None


def _forward(
    doses: Tensor, flow: Tensor, first: Tensor, beta: Tensor, rates: Tensor, course: Course,
    keep: bool,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    from costscape.problems.vaccine_doses import seirv_kernels  # imports Triton

    P, F, K = doses.shape
    infected = torch.empty_like(doses)
    kept = doses.new_empty(course.days * course.steps if keep else 0, P, F, 4, K)
    with torch.cuda.device_of(doses):
        seirv_kernels.forward[(P * F,)](
            flow, doses, first, beta, rates, infected, kept,
            P, F, flow.shape[1], course.days, course.dose_days, course.steps,
            K=K, WIDE=_padded(K), KEEP=keep, num_warps=WARPS,
        )  # fmt: skip
    return infected, kept


def _backward(
    doses: Tensor, flow: Tensor, first: Tensor, beta: Tensor, rates: Tensor, course: Course,
    kept: Tensor, g: Tensor, wanted: bool,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    from costscape.problems.vaccine_doses import seirv_kernels  # imports Triton

    (P, F, K), T = doses.shape, flow.shape[1]
    g_doses = torch.empty_like(doses)
    rows = F * -(-course.days // T) * course.steps * 16
    # days that do not fill the last week leave rows of zeros
    states, slopes = (flow.new_zeros(P if wanted else 0, T, rows, K) for _ in range(2))
    with torch.cuda.device_of(doses):
        seirv_kernels.backward[(P * F,)](
            flow, flow.mT.contiguous(), doses, beta, rates, kept, g, g_doses, states, slopes,
            P, F, T, course.days, course.dose_days, course.steps,
            K=K, WIDE=_padded(K), FLOW=wanted, num_warps=WARPS,
        )  # fmt: skip
    return g_doses, states.mT @ slopes


def _rates(like: Tensor, course: Course) -> Tensor:
    """h, sigma, gamma and the smallest S + E, on the device without a copy from the CPU.

    As arguments of a kernel they would be of single precision.
    """
    numbers = (1 / course.steps, course.sigma, course.gamma, SMALLEST)
    return torch.stack([like.new_full((), v) for v in numbers])


def _padded(K: int) -> int:
    return max(16, 1 << (K - 1).bit_length())
