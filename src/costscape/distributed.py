"""One network fitted by several processes, each on its own rows of every batch.

    grad L = sum_r (n_r / n) grad L_r,     L_r the loss of process r on its n_r of n rows

``torchrun`` starts the processes and says in the environment who they are. All hold the same data
and the same model and draw the same batches. A loss that is a mean over rows needs nothing more;
one that looks across rows, or draws numbers for each, asks for the whole batch by
``gather_rows``, ``whole`` and ``own_rows``. Without torchrun all of them change nothing.
"""

import atexit
import io
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from jaxtyping import Shaped
from torch import Generator, Tensor

# torchrun ends the others when one process dies; this is for a host that is lost without a word,
# and no less than what one process may do alone while the others wait
PATIENCE = timedelta(minutes=30)


def size() -> int:
    """How many processes fit together; 1 without torchrun."""
    if _started():
        return dist.get_world_size()
    told = dist.is_available() and {"RANK", "WORLD_SIZE", "MASTER_ADDR"} <= os.environ.keys()
    return int(os.environ["WORLD_SIZE"]) if told else 1


def rank() -> int:
    if _started():
        return dist.get_rank()
    return int(os.environ["RANK"]) if size() > 1 else 0


def is_first() -> bool:
    """Whether this process is the one that writes files and speaks."""
    return rank() == 0


def barrier() -> None:
    """Wait until all processes are here."""
    if _ready():
        # a sum of CPU numbers: the barrier of nccl would have to guess the GPU
        dist.all_reduce(torch.zeros(1))


def own_device(device: torch.device) -> torch.device:
    """A GPU of its own for each process of this host, where ``device`` names none."""
    if device.type != "cuda" or device.index is not None or size() == 1:
        return device
    local, count = int(os.environ.get("LOCAL_RANK", rank())), torch.cuda.device_count()
    if local >= count:
        raise ValueError(
            f"Each process of a host needs a GPU of its own, but this is process {local + 1} on a "
            f"host with {count}. Start no more than that with --nproc-per-node, or pass "
            f'Training(device="cpu").'
        )
    torch.cuda.set_device(local)
    return torch.device("cuda", local)


# ---- the batch whose loss is being computed


@dataclass(frozen=True)
class Share:
    """Which of the n rows of a batch are whose.

    ``own`` are this process's. A process beyond the last row computes the loss of row 0, so that
    it draws and gathers as the others do, and ``weight`` 0 keeps that out of the sum.
    """

    counts: tuple[int, ...]
    own: slice
    weight: float

    @staticmethod
    def of(n: int, rank: int, size: int) -> "Share":
        counts = tuple(n // size + (r < n % size) for r in range(size))
        start = sum(counts[:rank])
        own = slice(start, start + counts[rank]) if counts[rank] else slice(0, 1)
        return Share(counts, own, counts[rank] / n)

    @property
    def even(self) -> bool:
        return len(set(self.counts)) == 1


_share: Share | None = None


@contextmanager
def share(n: int) -> Iterator[Share]:
    """While it lasts, a loss is computed on this process's part of a batch of n rows."""
    global _share
    _ready()
    _share = Share.of(n, rank(), size())
    try:
        yield _share
    finally:
        _share = None


def whole(rows: int) -> int:
    """How many rows the whole batch has of which this process has ``rows``."""
    return rows if _share is None else sum(_share.counts)


def own_rows(values: Shaped[Tensor, "n ..."]) -> Shaped[Tensor, "B ..."]:
    """This process's rows of what was made for the whole batch, such as random draws."""
    return values if _share is None else values[_share.own]


def gather_rows(values: Shaped[Tensor, "..."], dim: int = 0) -> Shaped[Tensor, "..."]:
    """The rows, along ``dim``, of all processes in the order of the batch; no gradient."""
    if _share is None:
        return values
    if not torch.compiler.is_compiling():
        return _gathered(values, dim, _share)
    # as a decorator this would load the compiler, a second of every import
    rows: Tensor = torch.compiler.disable(_gathered)(values, dim, _share)
    return rows


@torch.no_grad()
def _gathered(values: Tensor, dim: int, share: Share) -> Tensor:
    mine = values.movedim(dim, 0)
    missing = max(share.counts) - len(mine)  # all send as many; what is padded is cut off again
    mine = torch.cat([mine, mine.new_zeros(missing, *mine.shape[1:])])
    parts = [torch.empty_like(mine) for _ in share.counts]
    dist.all_gather(parts, mine)
    rows = [part[:count] for part, count in zip(parts, share.counts, strict=True)]
    return torch.cat(rows).movedim(0, dim)


# ---- what all processes must have alike


@torch.no_grad()
def add_up(tensors: Sequence[Tensor]) -> None:
    """Put into each tensor the sum over all processes; one message for each dtype."""
    if not _ready():
        return
    kinds = defaultdict(list)
    for tensor in tensors:
        kinds[tensor.dtype].append(tensor)
    for alike in kinds.values():
        flat = torch.cat([tensor.flatten() for tensor in alike])
        dist.all_reduce(flat)
        _put(alike, flat)


def add_up_gradients(parameters: Sequence[Tensor], value: Tensor) -> None:
    """Put into each gradient, and into ``value``, the sum over all processes.

    A parameter without a gradient in every process stays without: Adam then leaves it alone.
    """
    learned = [p for p in parameters if p.requires_grad]
    missing = [i for i, p in enumerate(learned) if p.grad is None]
    has = value.new_tensor([p.grad is not None for p in learned])
    gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in learned]
    add_up([*gradients, has, value])
    for i in missing:  # to read a number makes a GPU wait, and most often none is missing
        learned[i].grad = gradients[i] if has[i] else None


@torch.no_grad()
def copy_first(tensors: Iterable[Tensor]) -> None:
    """Put into each tensor what the first process has in it."""
    if not _ready():
        return
    kinds = defaultdict(list)
    for tensor in tensors:
        kinds[tensor.dtype].append(tensor)
    for dtype, alike in kinds.items():
        # as bytes, which all backends know
        flat = torch.cat([tensor.flatten() for tensor in alike]).view(torch.uint8)
        dist.broadcast(flat, 0)
        _put(alike, flat.view(dtype))


def copy_generator(generator: Generator) -> None:
    """Let all generators go on from the state of the first process's."""
    if _ready():
        state = generator.get_state()
        dist.broadcast(state, 0)
        generator.set_state(state)


def number_of_first(value: float) -> float:
    """The first process's number: a choice between epochs must not hang on a last bit."""
    if not _ready():
        return value
    held = torch.tensor(value, dtype=torch.float64)
    dist.broadcast(held, 0)
    return held.item()


def state_of_first(state: dict[str, Any] | None) -> dict[str, Any] | None:
    """The first process's tensors and plain numbers: only its host need have their file."""
    if not _ready():
        return state
    buffer = io.BytesIO()
    if is_first() and state is not None:
        torch.save(state, buffer)
    length = torch.tensor(buffer.getbuffer().nbytes)
    dist.broadcast(length, 0)
    if not length:
        return None
    content = torch.empty(int(length), dtype=torch.uint8)
    if is_first():
        content.copy_(torch.frombuffer(buffer.getbuffer(), dtype=torch.uint8))
    dist.broadcast(content, 0)
    if is_first():
        return state
    found: dict[str, Any] = torch.load(
        io.BytesIO(content.numpy().tobytes()), map_location="cpu", weights_only=True
    )
    return found


def check_same_rows(x: Shaped[Tensor, "n ..."], y: Shaped[Tensor, "n ..."]) -> None:
    """Refuse data of which each process holds its own part."""
    if not _ready():
        return
    parts = (part.detach().double().abs().sum().cpu() for part in (x, y))
    mine = torch.stack([torch.tensor(float(len(x)), dtype=torch.float64), *parts])
    seen = [torch.empty_like(mine) for _ in range(size())]
    dist.all_gather(seen, mine)
    for r, other in enumerate(seen):
        # machines of different kinds round differently
        if not torch.allclose(other, seen[0], rtol=1e-5, atol=0.0, equal_nan=True):
            raise ValueError(
                f"All processes of torchrun need the same rows, but process 0 has "
                f"{int(seen[0][0])} and process {r} has {int(other[0])}, or others. Read the "
                f"whole data in each; a fit gives each process its part of every batch."
            )


def _put(tensors: Iterable[Tensor], flat: Tensor) -> None:
    start = 0
    for tensor in tensors:
        tensor.copy_(flat[start : start + tensor.numel()].view_as(tensor))
        start += tensor.numel()


def _started() -> bool:
    return dist.is_available() and dist.is_initialized()


def _ready() -> bool:
    """Whether there are others to speak to; the first time it calls them."""
    if size() == 1:
        return False
    if not _started():
        # numbers on a CPU travel by gloo and those on GPUs by nccl
        backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
        dist.init_process_group(backend, timeout=PATIENCE)
        atexit.register(_stop)
    return True


def _stop() -> None:
    if _started():
        dist.destroy_process_group()
