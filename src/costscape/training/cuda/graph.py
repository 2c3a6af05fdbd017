"""The steps of several fits recorded once and replayed by the GPU as a whole.

A small network's step is hundreds of small kernels, and a CPU takes longer to launch each than
the GPU to compute it. A CUDA graph launches them together, and those of different fits, which do
not wait for each other, share the GPU. What a graph cannot hold is a step that looks at its own
numbers on the way, such as one that solves until it converges: the first steps are watched for
that, and such fits are stepped as they come.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Generic, Protocol, TypeVar, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Generator, Tensor

from costscape.training.cuda.capture_probe import recorded, recording, side_stream, watched

WATCHED = 3  # steps before the first recording: libraries set themselves up in the first

Result = TypeVar("Result")


@runtime_checkable
class Update(Protocol):
    """A step in two halves: rows of a batch to the loss, its gradient left in the weights; then
    the weights move, and an average follows them by a share of the way.

    The first half changes nothing else, so that it may be done anew. State (weights, averages, an
    optimiser made with capturable=True) must stay in the same tensors, and draws must come from
    ``rng`` or torch's own generator.
    """

    @property
    def rng(self) -> Generator: ...

    def gradient(self, rows: Tensor) -> Tensor: ...

    def move(self, share: float | Tensor) -> None: ...


U = TypeVar("U", bound=Update)


def one_by_one(
    updates: Sequence[Update], rows: Int[Tensor, "n B"], shares: Sequence[float]
) -> Float[Tensor, "n"]:
    """One step of each, in order; the losses."""
    losses = []
    for update, own, share in zip(updates, rows, shares, strict=True):
        losses.append(update.gradient(own))
        update.move(share)
    return torch.stack(losses)


def side_by_side(updates: Sequence[Update], rows: Int[Tensor, "n B"]) -> Float[Tensor, "n"]:
    """The gradients of each, none waiting for another."""
    parts = [partial(update.gradient, own) for update, own in zip(updates, rows, strict=True)]
    return torch.stack(branches(parts, rows.device))


def branches(parts: Sequence[Callable[[], Result]], device: torch.device) -> list[Result]:
    """Each on a stream of its own, on a GPU, so that in a graph none waits for another."""
    if device.type != "cuda" or len(parts) == 1:
        return [part() for part in parts]
    main, found = torch.cuda.current_stream(device), []
    sides = [side_stream(device, 1 + i) for i in range(len(parts))]
    for side in sides:
        side.wait_stream(main)
    try:
        for side, part in zip(sides, parts, strict=True):
            with torch.cuda.stream(side):
                found.append(part())
    finally:
        for side in sides:
            main.wait_stream(side)
    return found


@dataclass
class _Size:
    """Batches of one number of rows: what is known of their steps, and the recording."""

    seen: int = 0
    possible: bool = True
    graph: torch.cuda.CUDAGraph | None = None
    rows: Tensor = field(default_factory=lambda: torch.empty(0))
    shares: list[Tensor] = field(default_factory=list)
    told: list[float] = field(default_factory=list)
    losses: Tensor = field(default_factory=lambda: torch.empty(0))


class Captured(Generic[U]):
    """A step of each as a graph, one for each batch size.

    ``gradients`` computes them, from rows (n, B) to n losses. Recorded anew where the updates are
    others than the last time. The first size is watched for ``WATCHED`` steps, others for one. The
    graphs share their memory: what one leaves, losses apart, is not read after another has run.
    """

    def __init__(self, gradients: Callable[[Sequence[U], Tensor], Tensor] = side_by_side) -> None:
        self.gradients = gradients
        self.sizes: dict[int, _Size] = {}
        self.updates: list[U] = []

    def __call__(
        self, updates: Sequence[U], rows: Int[Tensor, "n B"], shares: Sequence[float]
    ) -> Float[Tensor, "n"]:
        """The losses; they stand until the next call."""
        size = self.sizes.setdefault(rows.shape[1], _Size())
        if not size.possible or size.seen < self._needed():
            return self._as_it_comes(size, updates, rows, shares)
        if list(updates) != self.updates:
            self._forget(updates)
        if size.graph is None:
            self._record(size, rows, shares)
        assert size.graph is not None
        size.rows.copy_(rows)
        if list(shares) != size.told:  # an old average follows by the same share at every step
            size.told = list(shares)
            for held, share in zip(size.shares, shares, strict=True):
                held.fill_(share)
        size.graph.replay()
        return size.losses

    def _needed(self) -> int:
        return 1 if any(size.seen >= WATCHED for size in self.sizes.values()) else WATCHED

    def _as_it_comes(
        self, size: _Size, updates: Sequence[U], rows: Tensor, shares: Sequence[float]
    ) -> Tensor:
        """A step with nothing recorded; it is watched, unless that is known to be in vain."""

        def work() -> Tensor:
            return self.gradients(updates, rows)

        losses: Tensor | None = None
        if size.possible:
            first = all(other.seen == 0 for other in self.sizes.values())
            size.seen += 1
            draws = [update.rng for update in updates]
            losses = watched(work, rows.device, strict=not first, draws=draws)
            size.possible = losses is not None
        if losses is None:
            losses = work()
        self._move(updates, _filled(shares, rows.device))  # as recorded, to the bit
        return losses

    def _forget(self, updates: Sequence[U]) -> None:
        for size in self.sizes.values():
            size.graph = None  # the memory of the last recordings is free for the next
        self.updates = list(updates)
        self.pool = torch.cuda.graph_pool_handle()

    def _record(self, size: _Size, rows: Tensor, shares: Sequence[float]) -> None:
        size.rows = rows.clone()
        size.told = list(shares)
        size.shares = _filled(shares, rows.device)
        graph = torch.cuda.CUDAGraph()
        for update in self.updates:
            graph.register_generator_state(update.rng)
        with recorded(graph, rows.device, pool=self.pool):
            size.losses = self.gradients(self.updates, size.rows)
            self._move(self.updates, size.shares)
        size.graph = graph

    def _move(self, updates: Sequence[Update], shares: Sequence[Tensor]) -> None:
        device = shares[0].device
        parts = [partial(update.move, own) for update, own in zip(updates, shares, strict=True)]
        if recording(device):
            branches(parts, device)
        else:
            for part in parts:
                part()


def _filled(shares: Sequence[float], device: torch.device) -> list[Tensor]:
    return [torch.full((), share, dtype=torch.float64, device=device) for share in shares]
