"""The uncertainty of a mean over rows in order of time: the moving-block bootstrap.

    mean* = mean of ceil(n / L) blocks d[i : i + L], i uniform on 0 .. n - L, cut to n rows

Neighbouring rows are alike, so n rows carry less information than n independent rows; blocks of L
rows keep the dependence within a block. Kuensch, The Jackknife and the Bootstrap for General
Stationary Observations, Annals of Statistics 1989.

A method with random seeds has two sources of error, the test rows and the seeds:

    variance of the mean = rows + seeds

``seeds_and_rows`` estimates both, ``difference_over_seeds`` turns them into an interval.
"""

from dataclasses import dataclass
from itertools import count
from math import ceil, sqrt

import numpy as np
from jaxtyping import Float

RESAMPLES = 2000
SEED = 0  # the same rows give the same interval
LEVEL = 0.95


@dataclass(frozen=True)
class Difference:
    """The mean over rows of one method's cost minus another's, with its 95 % interval."""

    mean: float
    low: float
    high: float

    @property
    def clear(self) -> bool:
        """Whether the interval excludes 0."""
        return self.low > 0 or self.high < 0


def block_length(rows: int) -> int:
    """rows^(1/3), rounded up: the rate at which the error of the variance falls fastest."""
    return next(length for length in count(1) if length**3 >= rows)


def at_least_two(block: int, rows: int) -> int:
    """The block, shortened so that two fit into the rows: a single one does not vary."""
    return max(1, min(block, rows // 2))


def resampled(d: Float[np.ndarray, " n"], block: int) -> Float[np.ndarray, " resamples"]:
    """RESAMPLES means of resampled rows, shifted so that their expectation is the mean of d.

    Without the shift the expectation would be the mean over all blocks, in which the first and
    the last rows occur less often.
    """
    whole, full, last = _block_sums(d, block)
    drawn = np.random.default_rng(SEED).integers(len(full), size=(RESAMPLES, whole + 1))
    sums = full[drawn[:, :-1]].sum(1) + last[drawn[:, -1]]
    centre = whole * full.mean() + last.mean()
    means: np.ndarray = d.mean() + (sums - centre) / len(d)
    return means


def standard_error(d: Float[np.ndarray, " n"], block: int) -> float:
    """The standard deviation of resampled means, exactly: blocks are drawn independently."""
    whole, full, last = _block_sums(d, block)
    return sqrt(whole * full.var() + last.var()) / len(d)


def difference(d: Float[np.ndarray, " n"], block: int) -> Difference:
    """The mean of d and the quantiles of its resampled means."""
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(resampled(d, block), [tail, 1 - tail])
    return Difference(float(d.mean()), float(low), float(high))


@dataclass(frozen=True)
class Variances:
    """Estimated variance of a mean over s seeds and n test rows: ``seeds`` + ``rows``.

    ``means``, the variance of the s seed means over s, includes row noise that differs between
    seeds; ``seeds`` excludes it.
    """

    seeds: float
    rows: float
    means: float


def seeds_and_rows(d: Float[np.ndarray, "s n"], block: int, shared_rows: bool) -> Variances:
    """Variance of the mean of d due to the seeds and due to the test rows.

    d[i, j] = m + seed effect i + row effect j + noise ij. Seeds are resampled with replacement,
    rows in moving blocks. Both bootstraps have a variance in closed form, so nothing is drawn.

    Args:
        d: (s, n), one row of numbers for each of s >= 2 seeds.
        block: length of a block in test rows.
        shared_rows: True if all seeds have the same test rows, so that the row effect does not
            average out over seeds; False if each seed has its own.

    The seed means vary by the seed effects and by row noise of each seed. The row noise is already
    counted in ``rows``, so its share is subtracted (not below 0).
    """
    s, _ = d.shape
    means = float(d.mean(1).var(ddof=1)) / s
    if shared_rows:
        rows = standard_error(d.mean(0), block) ** 2
        noise = _mean_square_error(d - d.mean(0), block) / (s - 1)
    else:
        rows = noise = _mean_square_error(d, block) / s
    return Variances(max(0.0, means - noise), rows, means)


def difference_over_seeds(
    d: Float[np.ndarray, "s n"], block: int, shared_rows: bool
) -> Difference:
    """The mean of d and its Student interval, with the variance of ``seeds_and_rows``.

    The degrees of freedom are Satterthwaite's, with s - 1 for the seeds and one less than the
    number of blocks for the rows. Without row noise this is the paired Student interval over
    seeds; without seed effects it is the interval over blocks of rows.
    """
    from scipy.special import stdtrit  # slow to import

    s, n = d.shape
    parts = seeds_and_rows(d, block, shared_rows)
    mean, variance = float(d.mean()), parts.seeds + parts.rows
    if not variance > 0:
        return Difference(mean, mean, mean)
    blocks = n / block * (1 if shared_rows else s)
    spread = parts.means**2 / (s - 1) + parts.rows**2 / max(blocks - 1, 1)
    half = float(stdtrit(variance**2 / spread, (1 + LEVEL) / 2)) * sqrt(variance)
    return Difference(mean, mean - half, mean + half)


def _mean_square_error(d: Float[np.ndarray, "s n"], block: int) -> float:
    """The squared standard error of a row of d, averaged over its rows."""
    return float(np.mean([standard_error(one, block) ** 2 for one in d]))


def _block_sums(
    d: Float[np.ndarray, " n"], block: int
) -> tuple[int, Float[np.ndarray, " starts"], Float[np.ndarray, " starts"]]:
    """How many whole blocks fit, the sums of all whole blocks, and those of the cut last one.

    The sums are of d less its mean.
    """
    n = len(d)
    whole = ceil(n / block) - 1
    rest = n - whole * block
    total = np.concatenate([[0.0], np.cumsum(d - d.mean())])
    first = np.arange(n - block + 1)
    return whole, total[first + block] - total[first], total[first + rest] - total[first]
