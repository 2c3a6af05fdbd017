"""The most memory a run took: of the GPU where it used one, of the process elsewhere."""

import gc
import resource
import sys
from contextlib import suppress
from pathlib import Path

import torch


def watch() -> None:
    """Reset the peak; where the system cannot, it stays that of the life of the process."""
    gc.collect()  # garbage of earlier runs
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak(on_gpu: bool) -> int:
    """Bytes since ``watch``."""
    if on_gpu:
        return int(torch.cuda.max_memory_allocated())
    with suppress(OSError, StopIteration):
        lines = Path("/proc/self/status").read_text().splitlines()
        held = next(line for line in lines if line.startswith("VmHWM:"))
        return int(held.split()[1]) * 1024
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024
