"""Whether Triton can build kernels for a device, and the device they are launched on."""

import warnings
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

OLDEST = (8, 0)  # compute capability


@cache
def buildable(device: torch.device) -> bool:
    """Is Triton there, and able to build for this device? On a CPU that is its interpreter."""
    if find_spec("triton") is None:
        return False
    if device.type != "cuda":
        return True
    if torch.version.hip or torch.cuda.get_device_capability(device) < OLDEST:
        return False
    from triton.runtime import driver  # type: ignore[import-not-found, import-untyped, unused-ignore]

    try:
        driver.active.get_current_device()
    except Exception as error:  # whatever its build of a C file raises
        warnings.warn(
            f"LSTMs and simulations of epidemics are fast on a GPU if Triton can build kernels, "
            f"but here it cannot: {error}. They go on without, slower; a C compiler and Python's "
            f"headers are what it most often lacks.",
            stacklevel=2,
        )
        return False
    return True


def on(like: Tensor) -> AbstractContextManager[Any]:
    """Launches go to the current device, which need not be that of the tensors."""
    return torch.cuda.device(like.device) if like.is_cuda else nullcontext()
