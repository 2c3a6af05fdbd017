"""Generated features x; each function returns a maker (rng, n) -> x (n, ...) in float32.

Columns have mean 0 and variance 1, except codes of categories. Rows are in order of time.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

FeatureMaker = Callable[[np.random.Generator, int], Tensor]


def uniform(columns: int) -> FeatureMaker:
    """Independent uniform columns."""
    return lambda rng, n: _columns(rng.uniform(-(3**0.5), 3**0.5, (n, columns)))


def correlated(columns: int) -> FeatureMaker:
    """Normal columns with correlation 0.5 between any two."""
    return lambda rng, n: _columns(
        (rng.normal(size=(n, 1)) + rng.normal(size=(n, columns))) / 2**0.5
    )


def codes(levels: Sequence[int], numbers: int = 0) -> FeatureMaker:
    """Integer-coded categories, column j from 0 to levels[j] - 1, then normal columns."""
    return lambda rng, n: _columns(
        *(rng.integers(k, size=(n, 1)) for k in levels), rng.normal(size=(n, numbers))
    )


def one_hot(levels: Sequence[int], numbers: int = 0) -> FeatureMaker:
    """One-hot categories, then normal columns."""
    return lambda rng, n: _columns(
        *(np.eye(k)[rng.integers(k, size=n)] for k in levels), rng.normal(size=(n, numbers))
    )


def with_time(columns: int) -> FeatureMaker:
    """Normal columns, then the time of the row, which runs from 0 to 1."""
    return lambda rng, n: _columns(rng.normal(size=(n, columns)), np.linspace(0, 1, n)[:, None])


def autoregression(length: int, decay: float, level: float = 2.5) -> FeatureMaker:
    """Windows (n, length, 1) of independent stationary autoregressions of variance 1."""

    def make(rng: np.random.Generator, n: int) -> Tensor:
        s = [rng.normal(size=n)]
        for _ in range(length - 1):
            s.append(decay * s[-1] + (1 - decay**2) ** 0.5 * rng.normal(size=n))
        return _columns(level + np.stack(s, axis=1)[..., None])

    return make


def _columns(*parts: np.ndarray) -> Tensor:
    return torch.from_numpy(np.concatenate(parts, axis=1).astype(np.float32))
