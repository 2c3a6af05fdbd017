"""The difference between two methods, with an interval over test rows and seeds.

    d_ij = m_ij(method) - m_ij(opponent)        seed i that both have, test row j

With the measure m of every test row, the interval is that of ``difference_over_seeds``: blocks of
rows and seeds together. Rows of earlier versions keep only the mean over j; their interval is
Student's over seeds alone, which leaves out the chance in the test rows:

    95 % = mean d_i +- t_{.975, n-1} sd(d_i) / sqrt(n)

Where two methods have one common seed at several origins, the origins take the place of seeds:
every origin has its own fit and its own test rows.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from costscape.bench.report.read_rows import Row
from costscape.block_bootstrap import at_least_two, difference_over_seeds

ARRAYS = {"gap": "gaps", "regret": "regrets", "cost": "costs"}  # of a measure, by test row


@dataclass(frozen=True)
class PairedDifference:
    """Method minus opponent over ``n`` common seeds; one without origins has no interval.

    ``over_rows`` tells an interval over test rows and seeds from one over seeds alone.
    """

    opponent: str
    n: int
    mean: float | None
    low: float | None
    high: float | None
    over_rows: bool = False

    @property
    def verdict(self) -> str:
        if self.n == 0:
            return "no common seed"
        if self.low is None or self.high is None:
            return "one common seed, no interval"
        if self.low <= 0 <= self.high:
            return "tie"
        return "better" if self.high < 0 else "worse"


def paired(
    ours: Mapping[int, Row], theirs: Mapping[int, Row], measure: str, opponent: str
) -> PairedDifference:
    """The difference in the measure of two methods' rows, by seed; every row has the measure."""
    seeds = sorted(ours.keys() & theirs.keys())
    d = np.array([float(ours[s][measure]) - float(theirs[s][measure]) for s in seeds])
    if not seeds:
        return PairedDifference(opponent, 0, None, None, None)
    mean = float(d.mean())
    common = [(ours[seed], theirs[seed]) for seed in seeds]
    if len(seeds) == 1:
        half = _half_over_origins(*common[0], measure)
        if half is None:
            return PairedDifference(opponent, 1, mean, None, None)
        return PairedDifference(opponent, 1, mean, mean - half, mean + half, over_rows=True)
    half = _half_over_rows(common, measure)
    over_rows = half is not None
    if half is None:
        from scipy.special import stdtrit  # slow to import

        half = float(stdtrit(len(d) - 1, 0.975)) * float(d.std(ddof=1)) / math.sqrt(len(d))
    return PairedDifference(opponent, len(d), mean, mean - half, mean + half, over_rows)


def _half_over_rows(pairs: Sequence[tuple[Row, Row]], measure: str) -> float | None:
    """Half of the interval over rows and seeds; None unless all runs kept the same test rows."""
    differences = []
    for ours, theirs in pairs:
        a, b = by_test_row(ours, measure), by_test_row(theirs, measure)
        if a is None or b is None or ours.get("test_rows") != theirs.get("test_rows"):
            return None
        differences.append(a - b)
    tests = {ours.get("test_rows") for ours, _ in pairs}
    if (
        None in tests
        or len(tests) not in (1, len(pairs))
        or len({len(d) for d in differences}) > 1
    ):
        return None
    table = np.stack(differences)
    block = max((row.get("block") or 1) for pair in pairs for row in pair)
    interval = difference_over_seeds(
        table, at_least_two(block, table.shape[1]), shared_rows=len(tests) == 1
    )
    return interval.high - interval.mean


def _half_over_origins(ours: Row, theirs: Row, measure: str) -> float | None:
    """Half of the interval over rows and origins; None where there is one origin.

    The variance is that of as many rows of each origin as the shortest one has.
    """
    a, b = by_test_row(ours, measure), by_test_row(theirs, measure)
    sizes = ours.get("origin_rows", [])
    same = sizes == theirs.get("origin_rows") and ours["test_rows"] == theirs["test_rows"]
    if a is None or b is None or not same or len(sizes) < 2:
        return None
    parts = np.split(a - b, np.cumsum(sizes)[:-1])
    table = np.stack([part[: min(sizes)] for part in parts])
    block = at_least_two(max(ours["block"], theirs["block"]), table.shape[1])
    interval = difference_over_seeds(table, block, shared_rows=False)
    return interval.high - interval.mean


def by_test_row(row: Row, measure: str) -> np.ndarray | None:
    """The measure of every test row; None where it was not kept."""
    values = row.get("by_test_row", {}).get(ARRAYS[measure])
    return None if values is None else values.astype(np.float64)
