"""A training step recorded once and replayed by the GPU as a whole.

A small network's step is hundreds of small kernels, and a CPU takes longer to launch each than
the GPU to compute it. A CUDA graph launches them together. What a graph cannot hold is a step
that looks at its own numbers on the way, such as one that solves until it converges: the first
steps are watched for that, and such a step stays as it is.
"""

from collections.abc import Callable

import torch
from torch import Generator, Tensor

from costscape.data import Dataset

# a batch, and the share by which an average follows, to the loss; weights are changed
Update = Callable[[Dataset, float | Tensor], Tensor]
WATCHED = 3  # steps before the recording: libraries set themselves up in the first


class Captured:
    """update(batch, share), recorded for batches of ``size`` rows; others are done as they come.

    The state that the update changes (weights, averages, an optimiser made with capturable=True)
    must stay in the same tensors, and it must draw from ``rng`` or torch's own generator.
    """

    def __init__(self, update: Update, size: int, rng: Generator) -> None:
        self.update, self.size, self.rng = update, size, rng
        self.seen = 0
        self.possible = True
        self.graph: torch.cuda.CUDAGraph | None = None

    def __call__(self, batch: Dataset, share: float | Tensor) -> Tensor:
        if not self.possible or len(batch) != self.size:
            return self.update(batch, share)
        if self.graph is None:
            if self.seen < WATCHED:
                self.seen += 1
                return self._watched(batch, share)
            self._record(batch, share)
        assert self.graph is not None
        self.x.copy_(batch.x)
        self.y.copy_(batch.y)
        self.share.fill_(share)
        self.graph.replay()
        return self.loss

    def _watched(self, batch: Dataset, share: float | Tensor) -> Tensor:
        """The step itself, unless it makes the CPU wait for a number; then all over again."""
        device = batch.x.device
        before = self.rng.get_state(), torch.cuda.get_rng_state(device)
        mode = torch.cuda.get_sync_debug_mode()
        # the first step may wait while cuDNN sets up its dropout
        torch.cuda.set_sync_debug_mode("error" if self.seen > 1 else mode)
        side = torch.cuda.Stream(device)
        side.wait_stream(torch.cuda.current_stream(device))
        try:
            with torch.cuda.stream(side):
                loss = self.update(batch, share)
        except RuntimeError as error:
            if "synchroniz" not in str(error):
                raise
            self.possible = False
        finally:
            torch.cuda.set_sync_debug_mode(mode)
            torch.cuda.current_stream(device).wait_stream(side)
        if self.possible:
            return loss
        self.rng.set_state(before[0])
        torch.cuda.set_rng_state(before[1], device)
        return self.update(batch, share)

    def _record(self, batch: Dataset, share: float | Tensor) -> None:
        self.x, self.y = batch.x.clone(), batch.y.clone()
        self.share = batch.x.new_tensor(share)
        self.graph = torch.cuda.CUDAGraph()
        self.graph.register_generator_state(self.rng)
        with torch.cuda.graph(self.graph, capture_error_mode="thread_local"):
            self.loss = self.update(Dataset(self.x, self.y), self.share)
