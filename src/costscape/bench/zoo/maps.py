"""Maps from features x to the mean of y, to its spread, and to the chance of a regime.

Each of the first functions returns a maker (rng, d) -> map, whose coefficients the rng draws. A
map takes features (n, ...) and returns (n, d), about ``level`` plus ``size`` times a variable of
variance 1, where the columns of x have variance 1. The last functions are spreads and chances,
(n, 1) or (n, d).
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

Map = Callable[[Tensor], Tensor]
MapMaker = Callable[[np.random.Generator, int], Map]
DECAY = 0.9  # of the autoregression, from one moment to the next


def linear(used: int, size: float = 0.8, level: float = 2.5) -> MapMaker:
    """Weighted sums of the first ``used`` columns."""

    def make(rng: np.random.Generator, dim: int) -> Map:
        W = _weights(rng, used, dim)
        return lambda x: level + size * x[:, :used] @ W

    return make


def smooth(used: int, size: float = 0.8, level: float = 2.5) -> MapMaker:
    """Sines of weighted sums of the first ``used`` columns."""

    def make(rng: np.random.Generator, dim: int) -> Map:
        W, phase = _weights(rng, used, dim), torch.from_numpy(rng.uniform(0, 2 * np.pi, dim))
        return lambda x: level + size * 2**0.5 * torch.sin(1.5 * x[:, :used] @ W + phase)

    return make


def interaction(used: int, size: float = 0.8, level: float = 2.5) -> MapMaker:
    """Products of two weighted sums of the first ``used`` columns."""

    def make(rng: np.random.Generator, dim: int) -> Map:
        V, W = _weights(rng, used, dim), _weights(rng, used, dim)
        return lambda x: level + size * (x[:, :used] @ V) * (x[:, :used] @ W)

    return make


def steps(used: int, size: float = 0.8, level: float = 2.5) -> MapMaker:
    """Sums of jumps, one in each of the first ``used`` columns."""

    def make(rng: np.random.Generator, dim: int) -> Map:
        W, cut = _weights(rng, used, dim), torch.from_numpy(rng.uniform(-0.5, 0.5, used))
        return lambda x: level + size * torch.sign(x[:, :used] - cut) @ W

    return make


def lookup(levels: Sequence[int], size: float = 0.8, level: float = 2.5) -> MapMaker:
    """One effect for each value of each integer-coded column; column j has levels[j] values."""

    def make(rng: np.random.Generator, dim: int) -> Map:
        tables = [torch.from_numpy(rng.normal(size=(n, dim)) / len(levels) ** 0.5) for n in levels]
        return lambda x: (
            level + size * torch.stack([t[x[:, j].long()] for j, t in enumerate(tables)]).sum(0)
        )

    return make


def trend(used: int, drift: float, size: float = 0.6, level: float = 1.5) -> MapMaker:
    """A linear map of the first ``used`` columns plus ``drift`` times the last column, time."""
    inner = linear(used, size, level)

    def make(rng: np.random.Generator, dim: int) -> Map:
        at = inner(rng, dim)
        return lambda x: at(x) + drift * x[:, -1:]

    return make


def continued(decay: float, level: float = 2.5) -> MapMaker:
    """The mean of the next d values of an autoregression seen as windows (n, T, 1)."""

    def make(rng: np.random.Generator, dim: int) -> Map:
        powers = decay ** torch.arange(1, dim + 1, dtype=torch.float64)
        return lambda x: level + (x[:, -1] - level) * powers

    return make


def zero(rng: np.random.Generator, dim: int) -> Map:
    """No demand."""
    return lambda x: x.new_zeros(len(x), dim)


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


def _weights(rng: np.random.Generator, used: int, dim: int) -> Tensor:
    W = rng.normal(size=(used, dim))
    return torch.from_numpy(W / np.linalg.norm(W, axis=0))
