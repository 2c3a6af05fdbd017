"""The value and slope of an objective, captured once on a GPU as a CUDA graph and replayed.

Where f is a simulation of thousands of small steps, a CPU takes longer to launch each than the GPU
to compute it; a graph launches them together.
"""

from functools import partial

import torch
from torch import Tensor

from costscape.solvers.solver import Objective
from costscape.training.cuda.capture_probe import recorded, watched

WATCHED = 2  # evaluations before the recording; the second is watched for a wait


def value_and_slope(objective: Objective, a: Tensor) -> tuple[Tensor, Tensor]:
    """g (B,) and dg/da (B, d) at one action (B, d) for each x."""
    with torch.enable_grad():
        free = a.detach().unsqueeze(1).requires_grad_()
        value = objective(free)
        (grad,) = torch.autograd.grad(value.sum(), free)
    return value.detach()[:, 0], grad[:, 0]


class Replayed:
    """value_and_slope(objective, a), replayed from the third call on where that is possible.

    On a CPU, in the middle of another recording, and for an objective that waits for its own
    numbers, every call is carried out as it comes. The objective must not change meanwhile.
    """

    def __init__(self, objective: Objective) -> None:
        self.objective = objective
        self.seen = 0
        self.possible = True
        self.graph: torch.cuda.CUDAGraph | None = None

    def __call__(self, a: Tensor) -> tuple[Tensor, Tensor]:
        if not (self.possible and a.is_cuda) or torch.cuda.is_current_stream_capturing():
            return value_and_slope(self.objective, a)
        if self.graph is None:
            if self.seen < WATCHED:
                return self._watched(a)
            self._record(a)
        assert self.graph is not None
        self.a.copy_(a)
        self.graph.replay()
        return self.value.clone(), self.slope.clone()

    def _watched(self, a: Tensor) -> tuple[Tensor, Tensor]:
        self.seen += 1
        work = partial(value_and_slope, self.objective, a)
        result = watched(work, a.device, strict=self.seen > 1)
        self.possible = result is not None
        return work() if result is None else result

    def _record(self, a: Tensor) -> None:
        self.a = a.clone()
        self.graph = torch.cuda.CUDAGraph()
        with recorded(self.graph, a.device):
            self.value, self.slope = value_and_slope(self.objective, self.a)
