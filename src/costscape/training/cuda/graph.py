"""A step of several fits, captured once as a CUDA graph and replayed.

A small network's step is hundreds of small kernels, and a CPU takes longer to launch each than
the GPU to compute it. A CUDA graph launches them at once, and the kernels of different fits, which
do not wait for each other, share the GPU. A graph cannot hold a step whose control flow depends on
its numbers, such as a solver that stops when it has converged: the first steps are watched for
that, and such fits are launched kernel by kernel.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol, TypeVar, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Generator, Tensor

from costscape.training.cuda.capture_probe import recorded, side_stream, watched

WATCHED = 3  # steps before the first capture: libraries set themselves up in the first

Result = TypeVar("Result")


@runtime_checkable
class Update(Protocol):
    """A step in two halves, as ``FitState`` has it.

    ``gradient`` maps rows to the loss and changes only the gradients, so that it may run again;
    ``move`` changes the weights. State (weights, averages, an optimiser with capturable=True)
    must stay in the same tensors, and draws must come from ``rng`` or torch's generator.
    """

    @property
    def rng(self) -> Generator: ...

    def gradient(self, rows: Tensor) -> Tensor: ...

    def move(self, share: float | Tensor) -> None: ...


@dataclass
class _Size:
    """Batches of one number of rows: whether their step can be captured, and its graph."""

    seen: int = 0
    possible: bool = True
    graph: torch.cuda.CUDAGraph | None = None
    rows: Tensor = field(default_factory=lambda: torch.empty(0))
    shares: list[Tensor] = field(default_factory=list)
    filled: list[float] = field(default_factory=list)
    losses: Tensor = field(default_factory=lambda: torch.empty(0))


class Captured:
    """One step of each fit as a graph, one graph for each batch size.

    The first batch size is watched for ``WATCHED`` steps, others for one. The step is captured
    again where the fits are others than in the last call. The graphs share their memory: only
    the losses of one may be read after another has run.
    """

    def __init__(self) -> None:
        self.sizes: dict[int, _Size] = {}
        self.updates: list[Update] = []

    def __call__(
        self, updates: Sequence[Update], rows: Int[Tensor, "n B"], shares: Sequence[float]
    ) -> Float[Tensor, "n"]:
        """Advance each by one step; the losses, valid until the next call.

        Arguments:
            updates: the n fits.
            rows: of the batch of each.
            shares: by which the average of each follows its weights.
        """
        size = self.sizes.setdefault(rows.shape[1], _Size())
        if not size.possible or size.seen < self._needed():
            return self._launch(size, updates, rows, shares)
        if list(updates) != self.updates:
            self._forget(updates)
        if size.graph is None:
            self._capture(size, rows, shares)
        assert size.graph is not None
        size.rows.copy_(rows)
        if list(shares) != size.filled:  # after the first steps the shares stay the same
            size.filled = list(shares)
            for held, share in zip(size.shares, shares, strict=True):
                held.fill_(share)
        size.graph.replay()
        return size.losses

    def _needed(self) -> int:
        return 1 if any(size.seen >= WATCHED for size in self.sizes.values()) else WATCHED

    def _launch(
        self, size: _Size, updates: Sequence[Update], rows: Tensor, shares: Sequence[float]
    ) -> Tensor:
        """A step without a graph; it is watched, unless a capture is known to be impossible."""
        work, losses = partial(_gradients, updates, rows), None
        if size.possible:
            first = all(other.seen == 0 for other in self.sizes.values())
            size.seen += 1
            draws = [update.rng for update in updates]
            losses = watched(work, rows.device, strict=not first, draws=draws)
            size.possible = losses is not None
        if losses is None:
            losses = work()
        # tensors as in a captured step, for the same bits
        for update, share in zip(updates, _filled(shares, rows.device), strict=True):
            update.move(share)
        return losses

    def _forget(self, updates: Sequence[Update]) -> None:
        for size in self.sizes.values():
            size.graph = None  # frees the memory for the next graphs
        self.updates = list(updates)
        self.pool = torch.cuda.graph_pool_handle()

    def _capture(self, size: _Size, rows: Tensor, shares: Sequence[float]) -> None:
        size.rows, size.filled = rows.clone(), list(shares)
        size.shares = _filled(shares, rows.device)
        graph = torch.cuda.CUDAGraph()
        for update in self.updates:
            graph.register_generator_state(update.rng)
        with recorded(graph, rows.device, pool=self.pool):
            size.losses = _gradients(self.updates, size.rows)
            pairs = zip(self.updates, size.shares, strict=True)
            _on_streams([partial(update.move, share) for update, share in pairs], rows.device)
        size.graph = graph


def _gradients(updates: Sequence[Update], rows: Int[Tensor, "n B"]) -> Float[Tensor, "n"]:
    parts = [partial(update.gradient, own) for update, own in zip(updates, rows, strict=True)]
    return torch.stack(_on_streams(parts, rows.device))


def _on_streams(parts: Sequence[Callable[[], Result]], device: torch.device) -> list[Result]:
    """Each part on its own stream, so that in a graph none waits for another."""
    if len(parts) == 1:
        return [parts[0]()]
    main, results = torch.cuda.current_stream(device), []
    sides = [side_stream(device, 1 + i) for i in range(len(parts))]
    for side in sides:
        side.wait_stream(main)
    try:
        for side, part in zip(sides, parts, strict=True):
            with torch.cuda.stream(side):
                results.append(part())
    finally:
        for side in sides:
            main.wait_stream(side)
    return results


def _filled(shares: Sequence[float], device: torch.device) -> list[Tensor]:
    return [torch.full((), share, dtype=torch.float64, device=device) for share in shares]
