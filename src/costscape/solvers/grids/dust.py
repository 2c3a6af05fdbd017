"""Weights too small to count."""

import torch
from torch import Tensor

DUST = 1e-30  # a weight beyond the last digit of any sum, and slow to compute with


def without_dust(w: Tensor) -> Tensor:
    """No weights so small that processors compute with them ten times as slowly."""
    return torch.nn.functional.threshold(w, DUST, 0.0)
