"""The most memory a run took: of the GPU where it used one, of the process elsewhere."""

import contextlib
import ctypes
import gc
import resource
import sys
from pathlib import Path

import torch


def watch() -> None:
    """Begin anew. Where the system cannot forget a process's peak, it stays that of its life.

    Garbage of earlier runs is collected first, and what glibc's allocator holds for later use is
    given back: both would hide as much of what comes. Some builds of torch have an allocator of
    their own, which keeps freed memory; a peak then includes that of earlier runs.
    """
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):  # glibc alone has it
        ctypes.CDLL(None).malloc_trim(0)
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak(on_gpu: bool) -> int:
    """Bytes since ``watch``."""
    if on_gpu:
        return int(torch.cuda.max_memory_allocated())
    with contextlib.suppress(OSError, StopIteration):
        lines = Path("/proc/self/status").read_text().splitlines()
        held = next(line for line in lines if line.startswith("VmHWM:"))
        return int(held.split()[1]) * 1024
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024
