"""Spreads of the noise, (n, 1) or (n, d), and chances of a regime, (n, 1), as maps of x."""

import torch
from torch import Tensor

DECAY = 0.9  # of the autoregression, from one moment to the next


def rising(x: Tensor) -> Tensor:
    """Spread from 0.15 to 0.85, by the first column."""
    return 0.15 + 0.7 * torch.sigmoid(2 * x[:, :1])


def growing(x: Tensor) -> Tensor:
    """Spread from 0.2 to 0.8, by the last column, time."""
    return 0.2 + 0.6 * x[:, -1:]


def ahead(x: Tensor) -> Tensor:
    """Spread of an autoregression of variance 1 after 1 to 4 moments."""
    powers = 2 * torch.arange(1, 5, dtype=x.dtype)
    return (1 - DECAY**powers).sqrt().expand(len(x), -1)


def likely(x: Tensor) -> Tensor:
    """Chance of the first regime, by the first column."""
    return torch.sigmoid(2 * x[:, :1])


def open_shop(x: Tensor) -> Tensor:
    """Chance that a shop is open: the first four of the one-hot shops close every other day."""
    return 1 - 0.5 * x[:, :4].sum(-1, keepdim=True)
