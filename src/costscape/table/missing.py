"""What a table does about missing values and missing dates, where it does not refuse them."""

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class FillForward:
    """Replace a missing value by the last value before it, of the same column and group.

    Uses no later value, so nothing of the future enters a feature. Each feature that had missing
    values in the first file gets a column ``NAME_missing``: 1 where the value was missing.
    Rows before the first value of a group are left out, and so are rows with a missing outcome.

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"price": [1.0, None, 2.0, None]})
    >>> FillForward().fill(frame, np.array([0, 0, 0, 1]))["price"].tolist()
    [1.0, 1.0, 2.0, nan]
    """

    def fill(self, frame: Any, group: np.ndarray) -> Any:
        return frame.groupby(group, sort=False).ffill() if frame.isna().to_numpy().any() else frame


@dataclass(frozen=True)
class FillValue:
    """Replace a missing value by a constant, and add a column ``NAME_missing``.

    Args:
        number: float, default 0. For columns of numbers.
        text: str, default "missing". For columns of categories.

    Rows with a missing outcome are left out.

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"price": [1.0, None]})
    >>> FillValue(number=-1.0).fill(frame, np.array([0, 0]))["price"].tolist()
    [1.0, -1.0]
    """

    number: float = 0.0
    text: str = "missing"

    def fill(self, frame: Any, group: np.ndarray) -> Any:
        holes = [c for c in frame if frame[c].isna().any()]
        return frame.fillna(
            {c: self.text if frame[c].dtype == object else self.number for c in holes}
        )


@dataclass(frozen=True)
class InsertDates:
    """Insert a row for each date that a group lacks between its first and its last.

    Args:
        outcome: float, default None. The outcomes of the inserted rows, for example 0 where no
            row means no sale; None for a missing value.

    All other columns are missing in an inserted row; ``missing=`` decides about them.

    >>> InsertDates(outcome=0.0)
    InsertDates(outcome=0.0)
    """

    outcome: float | None = None
