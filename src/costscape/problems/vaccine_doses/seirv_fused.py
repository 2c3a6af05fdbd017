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

from costscape.problems.vaccine_doses.travelling_people import WARPS, padded, people_at_stages

SMALLEST = 1e-6  # of S + E, against quotients of rounding errors
REGIONS = 64  # a square tile of more does not fit the registers of a program
GROUP = 32_768  # simulations whose states are held at once: 2.1 GB for a wave of 47 regions
FEWER = 1_024  # of them, where slopes of the flow are wanted: nine times as much for each


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

    Slopes are in ``doses`` and ``flow``. They need 3 K numbers for each step of a simulation,
    which are held for at most one group; more simulations are run again, group by group.
    """
    rates, flow = _rates(doses, course), flow.contiguous()
    n = people_at_stages(flow, start.sum(0), rates, course.days, course.steps)
    infected: Tensor = _Fused.apply(  # type: ignore[no-untyped-call]
        doses.contiguous(), flow, beta / n, start[:3].contiguous(), rates, course
    )
    return infected


class _Fused(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, doses: Tensor, flow: Tensor, contact: Tensor, start: Tensor, rates: Tensor,
        course: Course,
    ) -> Tensor:  # fmt: skip
        ctx.held = doses.shape[:2].numel() <= GROUP and any(ctx.needs_input_grad)
        infected, kept = _forward(doses, flow, contact, start, rates, course, ctx.held)
        ctx.save_for_backward(doses, flow, contact, start, rates, kept)
        ctx.course = course
        return infected

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        doses, flow, contact, start, rates, kept = ctx.saved_tensors
        wanted = ctx.needs_input_grad[1]
        rows = max(1, (FEWER if wanted else GROUP) // doses.shape[1])
        found = []
        for i in range(0, len(doses), rows):
            some = slice(i, i + rows)
            fixed = (doses[some], flow[some], contact[some])
            if ctx.held:
                states = kept[some]
            else:
                states = _forward(*fixed, start, rates, ctx.course, keep=True)[1]
            slopes = _backward(*fixed, rates, ctx.course, states, g[some].contiguous(), wanted)
            found.append(slopes)
        g_doses, g_flow, g_contact = (torch.cat(parts) for parts in zip(*found, strict=True))
        travel = (g_flow, g_contact) if wanted else (None, None)
        return g_doses, *travel, None, None, None


def _forward(
    doses: Tensor, flow: Tensor, contact: Tensor, start: Tensor, rates: Tensor, course: Course,
    keep: bool,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    from costscape.problems.vaccine_doses import seirv_kernels  # imports Triton

    P, F, K = doses.shape
    infected = torch.empty_like(doses)
    kept = doses.new_empty(P if keep else 0, F, course.days * course.steps, 3, K)
    with torch.cuda.device_of(doses):
        seirv_kernels.forward[(P * F,)](
            flow, doses, contact, start, rates, infected, kept,
            F, flow.shape[1], course.days, course.dose_days, course.steps,
            K=K, WIDE=padded(K), KEEP=keep, num_warps=WARPS,
        )  # fmt: skip
    return infected, kept


def _backward(
    doses: Tensor, flow: Tensor, contact: Tensor, rates: Tensor, course: Course,
    kept: Tensor, g: Tensor, wanted: bool,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    from costscape.problems.vaccine_doses import seirv_kernels  # imports Triton

    (P, F, K), T = doses.shape, flow.shape[1]
    g_doses = torch.empty_like(doses)
    rows = F * -(-course.days // T) * course.steps * 12
    patterns = P if wanted else 0
    # days that do not fill the last week leave rows of zeros
    states, slopes = (flow.new_zeros(patterns, T, rows, K) for _ in range(2))
    g_contact = flow.new_empty(patterns, F, *contact.shape[1:])
    with torch.cuda.device_of(doses):
        seirv_kernels.backward[(P * F,)](
            flow, flow.mT.contiguous(), doses, contact, rates, kept, g, g_doses, states, slopes,
            g_contact, F, T, course.days, course.dose_days, course.steps,
            K=K, WIDE=padded(K), FLOW=wanted, num_warps=WARPS,
        )  # fmt: skip
    return g_doses, states.mT @ slopes, g_contact.sum(1)


def _rates(like: Tensor, course: Course) -> Tensor:
    """h, sigma, gamma and the smallest S + E, on the device without a copy from the CPU.

    As arguments of a kernel they would be of single precision.
    """
    numbers = (1 / course.steps, course.sigma, course.gamma, SMALLEST)
    return torch.stack([like.new_full((), v) for v in numbers])
