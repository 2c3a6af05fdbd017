"""Which rows lie far outside the range of the training rows.

    x_j < low_j - share r_j   or   x_j > high_j + share r_j,     r_j = high_j - low_j

with low_j and high_j the least and the largest x_j of the training rows, and share = 1/2. A column
that had one value in training has r_j = 0: every other value is outside.

A row is outside if more than a hundredth of its values are: of 15,000 places in a window some are
outside by chance. ``decide`` warns if the fit had at least 30 rows, since fewer show no range.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

SHARE = 0.5  # of the training range, by which a value may lie outside before it is flagged
WIDE = 0.01  # of the columns: a row with more values outside is flagged
ENOUGH = 30  # training rows from which on a range is known well enough to warn
ROUNDING = 1e-6  # of the size of the bounds: rounding of X to another precision
NAMED = 3  # columns that a message names


class OutOfRange(UserWarning):
    """``decide`` was called with rows far outside the range of the training rows.

    >>> import warnings
    >>> import numpy as np
    >>> import costscape as cs
    >>> X, Y = np.random.default_rng(0).random((40, 3)), np.random.default_rng(1).random((40, 2))
    >>> model = cs.NearestNeighbours(cs.problems.inventory(days=2), k=10).fit(X, Y)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", cs.OutOfRange)
    ...     try:
    ...         model.decide(1000 * X[:5])
    ...     except cs.OutOfRange as warning:
    ...         print(str(warning).split(":")[0])
    5 of 5 rows are far outside the range of the training rows
    """


@dataclass(frozen=True, eq=False)
class RangeCheck:
    """The result of ``model.check(X)``: rows far outside the range of the training rows.

    Attributes:
        outside: numpy array of bool (n,). True where more than a hundredth of the values of a row
            are far outside: one value, for fewer than 100 columns.
        by_column: numpy array of bool (n, k). True for each value that is far outside.
        columns: tuple of k. Names of the columns, or their numbers where X had no names in fit.
        index: pandas Index of the rows, or None.

    >>> import numpy as np
    >>> import costscape as cs
    >>> X, Y = np.random.default_rng(0).random((40, 3)), np.random.default_rng(1).random((40, 2))
    >>> model = cs.NearestNeighbours(cs.problems.inventory(days=2), k=10).fit(X, Y)
    >>> new = np.array([[0.5, 0.5, 0.5], [0.5, 9.0, 0.5]])
    >>> print(model.check(new))
    1 of 2 rows are far outside the range of the training rows: column 1 (1 row).
    >>> model.check(new).columns_of(1)
    [1]
    """

    outside: np.ndarray
    by_column: np.ndarray
    columns: tuple[str | int, ...]
    index: Any = None

    def columns_of(self, row: int) -> list[str | int]:
        """The columns in which a row, by its position, is far outside."""
        return [self.columns[j] for j in np.flatnonzero(self.by_column[row])]

    def to_frame(self) -> Any:
        """The flags by row and column as a pandas DataFrame."""
        import pandas as pd

        return pd.DataFrame(self.by_column, self.index, list(self.columns))

    def __str__(self) -> str:
        rows, bad = len(self.outside), int(self.outside.sum())
        if not bad:
            return f"All {rows} rows are in or near the range of the training rows."
        counts = self.by_column[self.outside].sum(0)
        first = np.flatnonzero(counts)
        named = [f"column {self.columns[j]!r} ({_rows(int(counts[j]))})" for j in first[:NAMED]]
        more = f" and {len(first) - NAMED} more columns" if len(first) > NAMED else ""
        return (
            f"{bad} of {rows} rows are far outside the range of the training rows: "
            f"{', '.join(named)}{more}."
        )


def check_range(
    x: Tensor,
    low: Sequence[float],
    high: Sequence[float],
    names: Sequence[str] | None,
    index: Any,
) -> RangeCheck:
    """Flag the values of x (n, ...) that are far outside [low, high]."""
    values = x.detach().flatten(1).double().cpu().numpy()
    least, most = np.array(low), np.array(high)
    margin = SHARE * (most - least) + ROUNDING * np.maximum(np.abs(least), np.abs(most))
    outside = (values < least - margin) | (values > most + margin)
    columns = tuple(names) if names else tuple(range(values.shape[1]))
    return RangeCheck(outside.mean(1) > WIDE, outside, columns, index)


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count} rows"
