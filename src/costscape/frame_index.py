"""The labels of the rows of a frame: an index of pandas, which is not imported."""

from typing import Any

import numpy as np


def check_order(index: Any, name: str) -> None:
    """Raise ValueError where dates go back in time.

    Args:
        index: of a frame, with one level.
        name: what the sentence calls the frame.
    """
    if index.is_monotonic_increasing:
        return
    if index.inferred_type in ("datetime64", "datetime", "date", "period"):
        i = next(i for i in range(1, len(index)) if not index[i - 1] <= index[i])
        raise ValueError(
            f"{name} needs rows in order of time, since the latest rows choose the epoch, but row "
            f"{i} ({index[i]}) follows {index[i - 1]}. Sort X and Y with .sort_index()."
        )


def check_agree(x: Any, y: Any, of: str) -> None:
    """Raise ValueError where the labels of X and Y differ; 0, 1, 2, ... goes with any others.

    Args:
        x: the index of X.
        y: that of Y, with as many labels.
        of: what the sentence says after X and Y.
    """
    if x.equals(y):
        return
    i = next((i for i in range(len(x)) if x[i] != y[i]), 0)
    at = f"row {i} is {x[i]} in X and {y[i]} in Y"
    if set(x) == set(y):
        raise ValueError(
            f"X{of} and Y{of} need rows in the same order, but have the same labels in another "
            f"order: {at}. Write Y = Y.loc[X.index]."
        )
    if not any(list(labels) == list(range(len(x))) for labels in (x, y)):
        raise ValueError(
            f"X{of} and Y{of} need the same labels, but {at}. Join them by their labels, or, if "
            f"rows go together by position, write Y = Y.set_axis(X.index)."
        )


def as_numpy(index: Any) -> np.ndarray:
    """The labels as dates without time zone, integers, or texts of one line."""
    if index.inferred_type == "period":
        index = index.to_timestamp()
    if index.inferred_type == "datetime64":
        return np.array(index.tz_localize(None), dtype="datetime64[ns]")
    if index.inferred_type == "integer":
        return np.array(index, dtype=np.int64)
    return np.array([" ".join(_text(label).splitlines()) for label in index])


def is_plain(index: Any) -> bool:
    """Whether the labels are 0, 1, 2, ..."""
    integers = index.inferred_type == "integer"
    return integers and bool((np.asarray(index) == np.arange(len(index))).all())


def _text(label: Any) -> str:
    """A label, or its parts, such as a date and a group, as people write them."""
    parts = label if isinstance(label, tuple) else (label,)
    return ", ".join(str(part).removesuffix(" 00:00:00") for part in parts)
