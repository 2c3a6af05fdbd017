"""The parts on which a search tries settings: rolling origins before the test part.

| training rows                    | validation rows    |  test rows
| train           | val |          | test 1 |           |  never read
| train                | val       |        | test 2 |  |
"""

from dataclasses import replace

import numpy as np

from costscape.data import Dataset, Splits, rolling_origins
from costscape.problems.problem import Problem

STEP = np.timedelta64(1, "s")  # from one row to the next, where rows have no dates


def origins_before_test(problem: Problem, origins: int) -> list[Problem]:
    """The problem at each origin: the test rows of an origin are validation rows of the problem.

    Rows without an order in time are cut in the order in which they come.

    Args:
        problem: whose test rows are not read.
        origins: int >= 1, the number of parts into which the validation rows are cut.
    """
    train, val = problem.data.train, problem.data.val
    if problem.reach is not None:
        parts = rolling_origins(Splits(train, val, val[:0]), origins, problem.reach)
    else:
        numbered = Splits(_numbered(train, 0), _numbered(val, len(train)), _numbered(val[:0], 0))
        parts = [
            Splits(*(Dataset(part.x, part.y) for part in (cut.train, cut.val, cut.test)))
            for cut in rolling_origins(numbered, origins, STEP)
        ]
    return [replace(problem, data=part) for part in parts]


def _numbered(part: Dataset, first: int) -> Dataset:
    dates = np.arange(first, first + len(part)).astype("datetime64[s]")
    return Dataset(part.x, part.y, dates)
