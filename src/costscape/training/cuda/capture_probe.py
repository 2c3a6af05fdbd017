"""What comes before work is recorded as a CUDA graph: a look at whether that can be done.

A graph cannot hold work that makes the CPU wait for a number, such as a solver that stops when it
has converged. torch says when that happens, so that work is tried out before it is recorded.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

import torch
from torch import Generator

Result = TypeVar("Result")


def watched(
    work: Callable[[], Result],
    device: torch.device,
    strict: bool = True,
    draws: Sequence[Generator] = (),
) -> Result | None:
    """work(), on a stream of its own as a recording is; None where the CPU would have to wait.

    Then the generators are left as they were, torch's own among them, and work may be done anew.
    Where not ``strict`` waiting is allowed, as libraries do when they set themselves up.
    """
    before = Draws(device, draws)
    mode, main = torch.cuda.get_sync_debug_mode(), torch.cuda.current_stream(device)
    side = side_stream(device)
    torch.cuda.set_sync_debug_mode("error" if strict else mode)
    side.wait_stream(main)
    try:
        with torch.cuda.stream(side):
            return work()
    except RuntimeError as error:
        if "synchroniz" not in str(error):
            raise
    finally:
        torch.cuda.set_sync_debug_mode(mode)
        main.wait_stream(side)
    before.restore()
    return None


@contextmanager
def recorded(graph: torch.cuda.CUDAGraph, device: torch.device, **pool: Any) -> Iterator[None]:
    """What is done within is recorded, and the current stream then waits for the recording's.

    torch begins a recording by setting the places that generators read their offset from, on the
    stream that records; a first replay that overtook it would draw the numbers of the first step.
    """
    side = side_stream(device)
    with torch.cuda.graph(graph, stream=side, capture_error_mode="thread_local", **pool):
        yield
    torch.cuda.current_stream(device).wait_stream(side)


class Draws:
    """The states of some generators, and of torch's own; within a recording none is known."""

    def __init__(self, device: torch.device, others: Sequence[Generator]) -> None:
        self.device, self.others = device, [] if recording(device) else others
        self.states = [rng.get_state() for rng in self.others]
        self.own = None if recording(device) else _own(device).get_state()

    def moved(self) -> bool:
        """Whether any of them, torch's own apart, has been drawn from."""
        given = zip(self.others, self.states, strict=True)
        return not all(torch.equal(rng.get_state(), state) for rng, state in given)

    def restore(self) -> None:
        for rng, state in zip(self.others, self.states, strict=True):
            rng.set_state(state)
        if self.own is not None:
            _own(self.device).set_state(self.own)


def _own(device: torch.device) -> Generator:
    """torch's own generator on the device."""
    if device.type != "cuda":
        return torch.default_generator
    index = torch.cuda.current_device() if device.index is None else device.index
    return torch.cuda.default_generators[index]


def recording(device: torch.device) -> bool:
    return device.type == "cuda" and torch.cuda.is_current_stream_capturing()


@cache
def side_stream(device: torch.device, i: int = 0) -> torch.cuda.Stream:
    """The i-th, the same in every use: cuBLAS keeps some memory for each stream it has seen."""
    return torch.cuda.Stream(device)
