"""Pairs (x, y), their parts in time order, and windows of a series."""

from costscape.data.dataset import (
    Dataset,
    Fold,
    Splits,
    check_folds,
    fold_numbers,
    join,
    split,
    time_folds,
)
from costscape.data.rolling_origins import rolling_origins
from costscape.data.windows import windows

__all__ = [
    "Dataset",
    "Fold",
    "Splits",
    "check_folds",
    "fold_numbers",
    "join",
    "rolling_origins",
    "split",
    "time_folds",
    "windows",
]
