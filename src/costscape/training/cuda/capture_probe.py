"""Try work out before it is captured as a CUDA graph, and capture it.

A graph cannot hold work that makes the CPU wait for a number, such as a solver that stops when it
has converged. torch raises an error where that happens, so work is tried out first.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

import torch
from torch import Generator

from costscape.training.checkpoint import torch_generator

Result = TypeVar("Result")


def watched(
    work: Callable[[], Result],
    device: torch.device,
    strict: bool = True,
    draws: Sequence[Generator] = (),
) -> Result | None:
    """work() on a side stream, as in a capture; None where the CPU would have to wait.

    Where it returns None the generators have their earlier state, and work may run again.

    Args:
        work: what to try out.
        device: the GPU.
        strict: False lets the CPU wait, as libraries need when they set themselves up.
        draws: the generators that work draws from, besides torch's generator of the device.
    """
    rngs = [*draws, torch_generator(device)]
    states = [rng.get_state() for rng in rngs]
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
    for rng, state in zip(rngs, states, strict=True):
        rng.set_state(state)
    return None


@contextmanager
def recorded(graph: torch.cuda.CUDAGraph, device: torch.device, **pool: Any) -> Iterator[None]:
    """Capture the work inside into the graph; then the current stream waits for the capture.

    torch begins a capture by setting the places that generators read their offset from, on the
    capturing stream. A first replay before that would draw the numbers of the first step.
    """
    side = side_stream(device)
    with torch.cuda.graph(graph, stream=side, capture_error_mode="thread_local", **pool):
        yield
    torch.cuda.current_stream(device).wait_stream(side)


@cache
def side_stream(device: torch.device, i: int = 0) -> torch.cuda.Stream:
    """The i-th side stream, always the same: cuBLAS keeps memory for each stream it has seen."""
    return torch.cuda.Stream(device)
