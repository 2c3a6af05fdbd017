"""Many simulations of SEIRV as one function with a gradient of its own.

On a CPU simulations go in groups whose buffers stay in cache, shared among threads; on a GPU all
go at once, in one launch where the kernels of ``seirv_triton`` serve.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from costscape.problems.vaccine_doses import seirv_triton
from costscape.problems.vaccine_doses.seirv_steps import Adjoint, Plan, Space

CACHED = 26_000  # numbers of one compartment in a group


class Run(torch.autograd.Function):
    """infected (P, F, K) and the end (P, C, F, K), as shares; C = 3 or 5 compartments.

    flow (T, P, K, K) is G of each day, doses (P, F, K) are shares a day, start (C, K), n and
    beta (K,).
    """

    @staticmethod
    def forward(
        ctx: Any, flow: Tensor, doses: Tensor, start: Tensor, n: Tensor, beta: Tensor, plan: Plan
    ) -> tuple[Tensor, Tensor]:
        (P, F, K), C, N = doses.shape, len(start), plan.days * plan.steps
        ctx.launched = seirv_triton.serves(doses, C)
        if ctx.launched:
            stride = _stride(N, 4 * F * P * K * doses.element_size(), plan, 1)
            given = flow, doses, start, n, beta
            infected, end, states = seirv_triton.forward(*given, plan, stride)
            if plan.kept:
                ctx.save_for_backward(flow, doses, beta, states)
                ctx.plan, ctx.stride = plan, stride
            return infected, end
        groups = _groups(doses)
        infected = torch.empty_like(doses, memory_format=torch.contiguous_format)
        end = doses.new_empty(P, C, F, K)
        stride = _stride(N, (C * F + 1) * P * K * doses.element_size(), plan, len(groups))
        hflow = flow / plan.steps
        kept: list[Tensor] = [hflow] * len(groups)

        def work(mine: range) -> None:
            space: Space | None = None
            for i in mine:
                p, f = groups[i]
                given = doses[p, f].contiguous()
                if space is None or not space.fits(given):
                    space = Space(given, C, beta, plan)
                space.begin(given, start, n)
                kept[i] = space.run(hflow[:, p], stride)
                infected[p, f] = space.infected
                end[p, :, f] = space.first.compartments

        _in_threads(work, len(groups))
        if plan.kept:
            # among the saved tensors, so that checkpointing around a run can drop them
            ctx.save_for_backward(hflow, doses, start, *kept, beta)
            ctx.plan, ctx.stride, ctx.groups = plan, stride, groups
        return infected, end

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g_infected: Tensor, g_end: Tensor) -> tuple[Tensor | None, ...]:
        if ctx.launched:
            flow, doses, beta, states = ctx.saved_tensors
            known = flow, doses, beta, states, ctx.plan, ctx.stride
            slopes = g_infected, g_end, ctx.needs_input_grad
            return *seirv_triton.backward(*known, *slopes), None
        hflow, doses, start, *kept, beta = ctx.saved_tensors
        plan, groups, C = ctx.plan, ctx.groups, len(start)
        wants = ctx.needs_input_grad
        people = any(wants[i] for i in (0, 2, 3, 4))
        g_doses = torch.empty_like(doses, memory_format=torch.contiguous_format)
        alone = all(f == groups[0][1] for _, f in groups)  # no two groups have the same flow
        g_flow = torch.zeros_like(hflow) if wants[0] else None
        parts: dict[int, Tensor] = {}
        sums = doses.new_empty(len(groups), C + 2, doses.shape[-1])

        def work(mine: range) -> None:
            into = g_flow
            if g_flow is not None and not alone and len(mine) < len(groups):
                into = parts[mine.start] = torch.zeros_like(g_flow)
            space: Adjoint | None = None
            for i in mine:
                p, f = groups[i]
                given = doses[p, f].contiguous()
                if space is None or not space.fits(given):
                    space = Adjoint(given, C, beta, plan)
                space.begin_back(given, g_infected[p, f], g_end[p, :, f], people, wants[4])
                space.run_back(
                    kept[i], hflow[:, p], ctx.stride, None if into is None else into[:, p]
                )
                g_doses[p, f] = space.g_doses
                space.sums(sums[i])

        _in_threads(work, len(groups))
        if g_flow is not None:
            for first in sorted(parts):  # in one order, for the same bits
                g_flow += parts[first]
            g_flow /= plan.steps
        total = sums.sum(0)
        return g_flow, g_doses, total[2:], total[0], total[1], None


def _in_threads(work: Callable[[range], None], groups: int) -> None:
    """Shares the groups among as many threads as torch has, each of which computes on its own.

    One group is too small for two threads: they would wait for each other at every product, and
    on a busy machine for milliseconds.
    """
    threads = torch.get_num_threads()
    several = min(threads, groups)
    inference = torch.is_inference_mode_enabled()

    def start(mine: range) -> None:
        torch.set_num_threads(1)  # of this thread, and of threads that begin later
        with torch.inference_mode(inference), torch.no_grad():
            work(mine)

    try:
        if several <= 1:
            return start(range(groups))
        cuts = [groups * i // several for i in range(several + 1)]
        with ThreadPoolExecutor(several) as pool:
            list(pool.map(start, map(range, cuts, cuts[1:])))
    finally:
        torch.set_num_threads(threads)


def _groups(doses: Tensor) -> list[tuple[slice, slice]]:
    """Ranges of P and F whose buffers stay in cache."""
    P, F, K = doses.shape
    most = max(1, CACHED // K) if doses.device.type == "cpu" else P * F
    f = max(1, min(F, most))
    p = max(1, min(P, most // f))
    return [
        (slice(i, min(i + p, P)), slice(j, min(j + f, F)))
        for i in range(0, P, p)
        for j in range(0, F, f)
    ]


def _stride(N: int, bytes_: int, plan: Plan, groups: int) -> int:
    """Keep the state of every how many steps? Those between are computed again, group by group."""
    if not plan.kept:
        return 1
    most = N if groups > 1 else max(1, round(N**0.5))  # one group keeps those between as well
    return min(most, max(1, -(-N * bytes_ // plan.kept)))
