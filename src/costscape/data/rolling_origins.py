"""Rolling origins: fit on the rows before an origin, test on the rows after it, K times.

    | train            | val   |  test 1  |
    | train                    | val      |  test 2  |
    | train                               | val       |  test 3  |

A method that is good on one test part may have been lucky. Several parts, each with a separate
fit, show how a method does at different times of the year (Tashman, Out-of-sample Tests of
Forecasting Accuracy, International Journal of Forecasting 2000).
"""

import numpy as np

from costscape.data.dataset import Dataset, Splits, check_count, join

VALIDATION = 0.2  # share of the rows before an origin, the latest, that are validation rows


def rolling_origins(data: Splits, origins: int, reach: np.timedelta64) -> list[Splits]:
    """Cut the rows after the training part into test parts, and pair each with the rows before.

    Args:
        data: parts in time order, with dates. Test parts are cut from the validation and test
            rows, so that what was computed from the training rows never saw a test row.
        origins: int >= 1, the number K of test parts, each with about the same number of dates.
        reach: the time from the first moment of a row's x to the end of its y. Rows closer than
            this share moments, so they are never in two parts of the same origin.

    Returns:
        K splits, the earliest origin first. The last fifth of the rows before an origin is the
        validation part.
    """
    check_count("rolling_origins", "origins", origins)
    if any(part.dates is None for part in (data.train, data.val, data.test)):
        raise ValueError(
            "rolling_origins needs rows with dates, but this data has none. Make the Dataset "
            "with dates=, the first moment of each y."
        )
    rows = join(data.train, data.val, data.test)
    dates = rows.dates
    assert dates is not None
    assert data.val.dates is not None
    later = np.unique(dates[dates >= data.val.dates[0]])
    if len(later) < origins:
        raise ValueError(
            f"rolling_origins needs at least one date for each of {origins} origins after the "
            f"training part, but got {len(later)} dates. Take fewer origins."
        )
    tested = np.array_split(later, origins)
    return [_cut(rows, dates, part[0], part[-1], reach) for part in tested]


def _cut(
    rows: Dataset,
    dates: np.ndarray,
    start: np.datetime64,
    last: np.datetime64,
    reach: np.timedelta64,
) -> Splits:
    """The parts of one origin: test rows are those dated from ``start`` to ``last``."""
    past = rows[: int(np.searchsorted(dates, start - reach, side="right"))]
    assert past.dates is not None
    cut = round((1 - VALIDATION) * len(past))
    if cut < 1 or cut == len(past):
        raise ValueError(
            f"An origin needs rows to learn from before it, but before {start} there are "
            f"{len(past)}. Take fewer origins."
        )
    border = past.dates[cut]
    train = past[: int(np.searchsorted(past.dates, border - reach, side="right"))]
    val = past[int(np.searchsorted(past.dates, border)) :]
    test = rows[int(np.searchsorted(dates, start)) : int(np.searchsorted(dates, last, "right"))]
    if len(train) == 0:
        raise ValueError(
            f"The rows before {start} are too few for a training part that shares no moment with "
            f"the validation part. Take fewer origins."
        )
    return Splits(train, val, test)
