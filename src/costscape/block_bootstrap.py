"""Means of rows in order of time, and how sure they are: the moving-block bootstrap.

    mean* = mean of ceil(n / L) blocks d[i : i + L], i uniform on 0 .. n - L, cut to n rows

Neighbouring rows are alike, so that n rows tell less than n independent ones; blocks of L rows
keep what neighbours share. Kuensch, The Jackknife and the Bootstrap for General Stationary
Observations, Annals of Statistics 1989.
"""

from dataclasses import dataclass
from itertools import count
from math import ceil

import numpy as np
from jaxtyping import Float

RESAMPLES = 2000
SEED = 0  # the same rows give the same interval
LEVEL = 0.95


@dataclass(frozen=True)
class Difference:
    """A mean over rows of what one method costs above another, and its interval of 95 %."""

    mean: float
    low: float
    high: float

    @property
    def clear(self) -> bool:
        """Whether the interval leaves out 0."""
        return self.low > 0 or self.high < 0


def block_length(rows: int) -> int:
    """rows^(1/3), rounded up: the rate at which the error of the variance falls fastest."""
    return next(length for length in count(1) if length**3 >= rows)


def resampled(d: Float[np.ndarray, " n"], block: int) -> Float[np.ndarray, " resamples"]:
    """RESAMPLES means of resampled rows, moved so that they scatter around the mean of d.

    Without the move they would scatter around the mean of all blocks, in which the first and the
    last rows are seldom.
    """
    n = len(d)
    whole = ceil(n / block) - 1
    rest = n - whole * block
    total = np.concatenate([[0.0], np.cumsum(d - d.mean())])
    first = np.arange(n - block + 1)
    full, last = total[first + block] - total[first], total[first + rest] - total[first]
    drawn = np.random.default_rng(SEED).integers(len(first), size=(RESAMPLES, whole + 1))
    sums = full[drawn[:, :-1]].sum(1) + last[drawn[:, -1]]
    centre = whole * full.mean() + last.mean()
    means: np.ndarray = d.mean() + (sums - centre) / n
    return means


def standard_error(d: Float[np.ndarray, " n"], block: int) -> float:
    return float(resampled(d, block).std())


def difference(d: Float[np.ndarray, " n"], block: int) -> Difference:
    """The mean of d and the quantiles of its resampled means."""
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(resampled(d, block), [tail, 1 - tail])
    return Difference(float(d.mean()), float(low), float(high))
