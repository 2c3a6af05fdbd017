"""Rows of methods that use no chance: two of them stand for every seed.

Nearest neighbours or a ridge regression give the same decisions with every seed where the data do
not depend on it. To run them five times costs five times as much and shows nothing new.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from costscape.bench.report.differences import by_test_row
from costscape.bench.report.read_rows import Row


def for_every_seed(
    runs: Mapping[int, Row], measure: str, tests: Mapping[int, Any]
) -> dict[int, Row]:
    """The runs of a method by seed, with those of other seeds where chance plays no part.

    Two runs or more with the same measure at every test row show that. ``tests`` has the digest of
    the test rows of each seed that some method was run with; a seed with other test rows is
    left out.
    """
    found = dict(runs)
    first, *others = runs.values()
    values = by_test_row(first, measure)
    if not others or values is None or first.get("test_rows") is None:
        return found
    for other in others:
        compared = by_test_row(other, measure)
        if other.get("test_rows") != first["test_rows"] or compared is None:
            return found
        if not np.array_equal(values, compared):
            return found
    return {s: first for s, digest in tests.items() if digest == first.get("test_rows")} | found
