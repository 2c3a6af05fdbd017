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
    return lambda rng, n: _tensor(rng.uniform(-(3**0.5), 3**0.5, (n, columns)))


def correlated(columns: int) -> FeatureMaker:
    """Normal columns with correlation 0.5 between any two."""

    def make(rng: np.random.Generator, n: int) -> Tensor:
        common, own = rng.normal(size=(n, 1)), rng.normal(size=(n, columns))
        return _tensor((common + own) / 2**0.5)

    return make


def codes(levels: Sequence[int], numbers: int = 0) -> FeatureMaker:
    """Integer-coded categories, column j from 0 to levels[j] - 1, then normal columns."""

    def make(rng: np.random.Generator, n: int) -> Tensor:
        parts = [rng.integers(k, size=(n, 1)) for k in levels]
        return _tensor(np.concatenate([*parts, rng.normal(size=(n, numbers))], axis=1))

    return make


def one_hot(levels: Sequence[int], numbers: int = 0) -> FeatureMaker:
    """One-hot categories, then normal columns."""

    def make(rng: np.random.Generator, n: int) -> Tensor:
        parts = [np.eye(k)[rng.integers(k, size=n)] for k in levels]
        return _tensor(np.concatenate([*parts, rng.normal(size=(n, numbers))], axis=1))

    return make


def with_time(columns: int) -> FeatureMaker:
    """Normal columns, then the time of the row, which runs from 0 to 1."""

    def make(rng: np.random.Generator, n: int) -> Tensor:
        time = np.linspace(0, 1, n)[:, None]
        return _tensor(np.concatenate([rng.normal(size=(n, columns)), time], axis=1))

    return make


def autoregression(length: int, decay: float, level: float = 2.5, sd: float = 1.0) -> FeatureMaker:
    """Windows (n, length, 1) of independent stationary autoregressions."""

    def make(rng: np.random.Generator, n: int) -> Tensor:
        s = [rng.normal(size=n)]
        for _ in range(length - 1):
            s.append(decay * s[-1] + (1 - decay**2) ** 0.5 * rng.normal(size=n))
        return _tensor(level + sd * np.stack(s, axis=1)[..., None])

    return make


def _tensor(values: np.ndarray) -> Tensor:
    return torch.from_numpy(values.astype(np.float32))
