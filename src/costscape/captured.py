"""The steps of several fits recorded once and replayed by the GPU as a whole.

A small network's step is hundreds of small kernels, and a CPU takes longer to launch each than
the GPU to compute it. A CUDA graph launches them together, and those of different fits, which do
not wait for each other, share the GPU. What a graph cannot hold is a step that looks at its own
numbers on the way, such as one that solves until it converges: the first steps are watched for
that, and such fits are stepped as they come.
"""

from collections.abc import Sequence
from functools import cache
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Generator, Tensor

WATCHED = 3  # steps before the recording: libraries set themselves up in the first


@runtime_checkable
class Update(Protocol):
    """Rows of a batch, and the share by which an average follows, to the loss; changes weights.

    Its state (weights, averages, an optimiser made with capturable=True) must stay in the same
    tensors, and it must draw from ``rng`` or torch's own generator.
    """

    @property
    def rng(self) -> Generator: ...

    def __call__(self, rows: Tensor, share: float | Tensor) -> Tensor: ...


def one_by_one(
    updates: Sequence[Update], rows: Int[Tensor, "n B"], shares: Sequence[float]
) -> Float[Tensor, "n"]:
    """One step of each, in order; the losses."""
    given = zip(updates, rows, shares, strict=True)
    return torch.stack([update(own, share) for update, own, share in given])


class Captured:
    """``one_by_one`` recorded for batches of ``size`` rows; others are done as they come.

    Recorded anew where the updates are others than the last time.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.seen = 0
        self.possible = True
        self.graph: torch.cuda.CUDAGraph | None = None
        self.updates: list[Update] = []
        self.told: list[float] = []

    def __call__(
        self, updates: Sequence[Update], rows: Int[Tensor, "n B"], shares: Sequence[float]
    ) -> Float[Tensor, "n"]:
        if not self.possible or rows.shape[1] != self.size:
            return one_by_one(updates, rows, shares)
        if self.seen < WATCHED:
            self.seen += 1
            given = zip(_sides(rows), updates, rows, shares, strict=True)
            return torch.stack([self._watched(*each) for each in given])
        if self.graph is None or list(updates) != self.updates:
            self._record(updates, rows, shares)
        assert self.graph is not None
        self.rows.copy_(rows)
        if list(shares) != self.told:  # an old average follows by the same share at every step
            self.told = list(shares)
            for held, share in zip(self.shares, shares, strict=True):
                held.fill_(share)
        self.graph.replay()
        return self.losses

    def _watched(
        self, side: torch.cuda.Stream, update: Update, rows: Tensor, share: float
    ) -> Tensor:
        """The step itself, unless it makes the CPU wait for a number; then all over again."""
        if not self.possible:
            return update(rows, share)
        device = rows.device
        before = update.rng.get_state(), torch.cuda.get_rng_state(device)
        mode = torch.cuda.get_sync_debug_mode()
        # the first step may wait while cuDNN sets up its dropout
        torch.cuda.set_sync_debug_mode("error" if self.seen > 1 else mode)
        side.wait_stream(torch.cuda.current_stream(device))
        try:
            with torch.cuda.stream(side):
                loss = update(rows, share)
        except RuntimeError as error:
            if "synchroniz" not in str(error):
                raise
            self.possible = False
        finally:
            torch.cuda.set_sync_debug_mode(mode)
            torch.cuda.current_stream(device).wait_stream(side)
        if self.possible:
            return loss
        update.rng.set_state(before[0])
        torch.cuda.set_rng_state(before[1], device)
        return update(rows, share)

    def _record(self, updates: Sequence[Update], rows: Tensor, shares: Sequence[float]) -> None:
        self.graph = None  # the memory of the last recording is free for this one
        self.updates = list(updates)
        self.rows = rows.clone()
        self.told = list(shares)
        held = torch.tensor(self.told, dtype=torch.float64, device=rows.device)
        self.shares = held.unbind()
        graph = torch.cuda.CUDAGraph()
        for update in updates:
            graph.register_generator_state(update.rng)
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            self.losses = self._side_by_side()
        self.graph = graph

    def _side_by_side(self) -> Tensor:
        """Each on a stream of its own, so that in the graph none waits for another."""
        given = list(zip(self.updates, self.rows, self.shares, strict=True))
        if len(given) == 1:
            ((update, rows, share),) = given
            return update(rows, share).unsqueeze(0)
        main = torch.cuda.current_stream(self.rows.device)
        sides, losses = _sides(self.rows), []
        for side in sides:
            side.wait_stream(main)
        try:
            for side, (update, rows, share) in zip(sides, given, strict=True):
                with torch.cuda.stream(side):
                    losses.append(update(rows, share))
        finally:
            for side in sides:
                main.wait_stream(side)
        return torch.stack(losses)


def _sides(rows: Int[Tensor, "n B"]) -> list[torch.cuda.Stream]:
    return [_side(rows.device, i) for i in range(len(rows))]


@cache
def _side(device: torch.device, i: int) -> torch.cuda.Stream:
    """The same in every fit: cuBLAS keeps some memory for each stream it has seen."""
    return torch.cuda.Stream(device)
