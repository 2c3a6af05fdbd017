"""All steps of many simulations of SEIRV in one launch on a GPU, and their adjoint in one more.

The steps of ``seirv_steps`` are tens of small kernels each, and a GPU takes longer to begin one
than to compute it. Here each simulation is one program from the first step to the last: single
precision, three compartments (S, E, I) and at most 128 regions. Sums are in a fixed order: the
same bits every time.
"""

import torch
from torch import Tensor

from costscape.problems.vaccine_doses.seirv_steps import FLOOR, Plan
from costscape.training.cuda.triton_support import buildable, on

DEVICES = ("cuda",)
REGIONS = 128  # a tile of more squared does not fit the registers


def serves(doses: Tensor, C: int) -> bool:
    """Can the kernels do this? doses are (P, F, K)."""
    return (
        doses.device.type in DEVICES
        and doses.dtype == torch.float32
        and C == 3
        and 0 < doses.shape[-1] <= REGIONS
        and doses.numel() > 0
        and buildable(doses.device)
    )


def forward(
    flow: Tensor, doses: Tensor, start: Tensor, n: Tensor, beta: Tensor, plan: Plan, stride: int
) -> tuple[Tensor, Tensor, Tensor]:
    """infected (P, F, K), the end (P, 3, F, K), and the states kept for ``backward``."""
    from costscape.problems.vaccine_doses import seirv_kernels

    (P, F, K), N = doses.shape, plan.days * plan.steps
    infected = torch.empty_like(doses, memory_format=torch.contiguous_format)
    end = doses.new_empty(P, 3, F, K)
    # and rows in which backward writes the states between
    kept = doses.new_empty(_rows(N, stride) + stride - 1 if plan.kept else 0, P, F, 4, K)
    tensors = [v.contiguous() for v in (flow, doses, start, n, beta)]
    with on(doses):
        seirv_kernels.forward[(P * F,)](
            *tensors, infected, end, kept,
            len(flow), P, F, plan.days, plan.dose_days, plan.steps, stride,
            1 / plan.steps, plan.sigma, plan.gamma, FLOOR,
            K=K, KEEP=plan.kept > 0, **_shape(K),
        )  # fmt: skip
    return infected, end, kept


def backward(
    flow: Tensor, doses: Tensor, beta: Tensor, kept: Tensor, plan: Plan, stride: int,
    g_infected: Tensor, g_end: Tensor, wants: tuple[bool, ...],
) -> tuple[Tensor | None, ...]:  # fmt: skip
    """Adjoints of flow, doses, start, n and beta; ``wants`` says which, doses always."""
    from costscape.problems.vaccine_doses import seirv_kernels

    (P, F, K), T = doses.shape, len(flow)
    people = any(wants[i] for i in (0, 2, 3, 4))
    g_doses = torch.empty_like(doses, memory_format=torch.contiguous_format)
    # each program adds to a square of its own: no atomics, the same bits
    parts = max(1, min(F, plan.kept // flow.nbytes)) if wants[0] else F
    g_flow = flow.new_zeros(parts if wants[0] else 0, T, P, K, K)
    g_rest = doses.new_empty(P if people else 0, F, 5, K)
    flow = flow.contiguous()
    tensors = [v.contiguous() for v in (flow.mT, doses, beta, kept, g_infected, g_end)]
    with on(doses):
        seirv_kernels.backward[(P * parts,)](
            flow, *tensors, g_doses, g_flow, g_rest,
            T, P, F, parts, plan.days, plan.dose_days, plan.steps,
            _rows(plan.days * plan.steps, stride), stride,
            1 / plan.steps, plan.sigma, plan.gamma, FLOOR,
            K=K, AGAIN=stride > 1, PEOPLE=people, FLOW=wants[0], **_shape(K),
        )  # fmt: skip
    if not people:
        return None, g_doses, None, None, None
    rest = g_rest.sum((0, 1))
    return g_flow.sum(0).mT if wants[0] else None, g_doses, rest[1:4], rest[0], rest[4]


def _shape(K: int) -> dict[str, int]:
    """A lane for each column of G, so that sums over its rows cross no lanes.

    With more than 64 rows a lane has too few registers: they are shared among two.
    """
    wide = max(16, 1 << (K - 1).bit_length())
    return {"WIDE": wide, "num_warps": {16: 1, 32: 1, 64: 2, 128: 8}[wide]}


def _rows(N: int, stride: int) -> int:
    return -(-N // stride)
