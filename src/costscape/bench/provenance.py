"""Where a row comes from: device, versions of packages, commit."""

import os
import platform
import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
import torch

import costscape
from costscape.methods import Method

ROOT = Path(__file__).parents[3]  # of the source tree, where this is one
PACKAGES = ("numpy", "scipy", "scikit-learn", "torch")


def check_device(device: str | None, here: bool = True) -> None:
    """Refuse a device that torch does not know, or, with ``here``, that this machine lacks."""
    if device is None:
        return
    try:
        named = torch.device(device)
    except RuntimeError:
        raise ValueError(
            f"A device needs a name that torch knows, but got {device!r}. Name cpu or cuda."
        ) from None
    count = torch.cuda.device_count()
    if here and named.type == "cuda" and (named.index or 0) >= count:
        raise ValueError(
            f"Device {device} needs a GPU that this machine does not have: torch sees {count}. "
            f"Name cpu, or leave the device out."
        )


def on_gpu(method: Method) -> bool:
    training = method.trains()
    if training is not None:
        return training.where().type == "cuda"
    return method.task.feasible.bounds[0].is_cuda


def device_of(method: Method) -> str:
    """The name of the GPU, or the kind of the CPU."""
    if on_gpu(method):
        return torch.cuda.get_device_name()
    return f"cpu: {platform.machine()}, {os.cpu_count()} cores"


@cache
def versions() -> dict[str, str]:
    """The versions of Python, of this package and of those it computes with."""
    known = {"costscape": costscape.__version__, "python": platform.python_version()}
    for package in PACKAGES:
        try:
            known[package] = version(package)
        except PackageNotFoundError:  # installed in another way
            known[package] = {"numpy": np, "torch": torch}[package].__version__
    return known


@cache
def commit() -> str | None:
    """The commit of the source tree this runs from; the variable COSTSCAPE_COMMIT overrides it."""
    if named := os.environ.get("COSTSCAPE_COMMIT"):
        return named
    if not (ROOT / ".git").exists() or not (ROOT / "pyproject.toml").exists():
        return None  # installed: a tree above it is somebody else's, and is not asked
    try:
        _git("ls-files", "--error-unmatch", Path(__file__).name)
        return _git("describe", "--always", "--dirty", "--abbrev=12", "--exclude=*") or None
    except (OSError, subprocess.SubprocessError):
        return None


def _git(*words: str) -> str:
    # no program that a configuration names is run: neither a file monitor nor a hook
    quiet = ["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"]
    ask = ["git", *quiet, "-C", str(Path(__file__).parent), *words]
    answer = subprocess.run(ask, capture_output=True, text=True, timeout=10, check=True)
    return answer.stdout.strip()
