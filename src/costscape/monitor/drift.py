"""Whether values of a column are distributed as they were: PSI and the test of Kolmogorov-Smirnov.

    PSI = sum_b (p_b - q_b) log(p_b / q_b)

with p_b and q_b the shares of recent and of reference values in bin b. The bins are between
deciles of the reference; shares are (count + 1/2) / (n + B/2), so that none is 0. For n recent and
m reference values of one law, PSI / (1/n + 1/m) has a chi-squared law with B - 1 degrees of
freedom, approximately.

    KS = max_v |F(v) - G(v)|,   P(KS > d) -> 2 sum_k (-1)^(k-1) exp(-2 k^2 d^2 m n / (m + n))

with F and G the two empirical distribution functions. Both tests take rows as independent.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

BINS = 10


@dataclass(frozen=True)
class ColumnDrift:
    """How far recent values of a column are from the reference.

    Args:
        name: str. The column.
        psi: float. The population stability index.
        psi_noise: float. What PSI exceeds by chance with the probability ``level``.
        ks: float. The largest difference of the two distribution functions.
        p: float. The probability of a larger one by chance.
        reference_mean: float.
        recent_mean: float.
        is_alert: bool. Whether one of the two is above its threshold and above chance.

    >>> rng = np.random.default_rng(0)
    >>> old, new = rng.normal(size=500), rng.normal(1.0, size=200)
    >>> column_drift("load", old, new, psi_most=0.2, ks_most=0.1, level=0.01).is_alert
    True
    """

    name: str
    psi: float
    psi_noise: float
    ks: float
    p: float
    reference_mean: float
    recent_mean: float
    is_alert: bool


def column_drift(
    name: str,
    reference: Float[np.ndarray, " m"],
    recent: Float[np.ndarray, " n"],
    *,
    psi_most: float,
    ks_most: float,
    level: float,
) -> ColumnDrift:
    """Compare recent values with the reference.

    Args:
        name: the column.
        reference: values of the training rows.
        recent: values to compare.
        psi_most: PSI up to which there is no alert.
        ks_most: the same for the statistic of Kolmogorov-Smirnov.
        level: probability of an alert by chance, of each of the two.
    """
    from scipy.special import chdtri  # slow to import

    value, bins = population_stability(reference, recent)
    noise = float((1 / len(reference) + 1 / len(recent)) * chdtri(max(bins - 1, 1), level))
    ks, p = kolmogorov_smirnov(reference, recent)
    alert = value > max(psi_most, noise) or (ks > ks_most and p < level)
    means = float(reference.mean()), float(recent.mean())
    return ColumnDrift(name, value, noise, ks, p, *means, alert)


def columns_drift(
    names: Sequence[str],
    reference: Float[np.ndarray, "m k"],
    recent: Float[np.ndarray, "n k"],
    *,
    psi_most: float,
    ks_most: float,
    level: float,
) -> list[ColumnDrift]:
    """``column_drift`` of all columns, the largest PSI first; ``level`` is that of any alert."""
    each = level / max(2 * len(names), 1)  # Bonferroni: two tests in each column
    found = [
        column_drift(
            name,
            reference[:, j],
            recent[:, j],
            psi_most=psi_most,
            ks_most=ks_most,
            level=each,
        )
        for j, name in enumerate(names)
    ]
    return sorted(found, key=lambda one: -one.psi)


def population_stability(
    reference: Float[np.ndarray, " m"], recent: Float[np.ndarray, " n"]
) -> tuple[float, int]:
    """PSI, and how many bins it has: fewer than BINS where values repeat."""
    edges = np.unique(np.quantile(reference, np.arange(1, BINS) / BINS))
    low = reference.min()
    if edges[0] <= low:  # values below must not share the bin of a value that repeats
        edges = np.concatenate([[np.nextafter(low, -np.inf)], edges])
    counts = [
        np.bincount(np.searchsorted(edges, v, side="left"), minlength=len(edges) + 1)
        for v in (recent, reference)
    ]
    used = (counts[0] + counts[1]) > 0
    p, q = ((c[used] + 0.5) / (c.sum() + 0.5 * used.sum()) for c in counts)
    return float(np.sum((p - q) * np.log(p / q))), int(used.sum())


def kolmogorov_smirnov(
    reference: Float[np.ndarray, " m"], recent: Float[np.ndarray, " n"]
) -> tuple[float, float]:
    """The largest difference of both distribution functions, and its p-value for many rows."""
    from scipy.special import kolmogorov

    m, n = len(reference), len(recent)
    both = np.concatenate([reference, recent])
    F, G = (np.searchsorted(np.sort(v), both, side="right") / len(v) for v in (reference, recent))
    d = float(np.abs(F - G).max())
    return d, float(kolmogorov(d * np.sqrt(m * n / (m + n))))
