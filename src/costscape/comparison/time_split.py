"""Rows in order of time, cut into rows to learn from, to choose the epoch on and to test on."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from costscape.arrays import check_time_order, read_pairs
from costscape.block_bootstrap import block_length
from costscape.data.dataset import check_count, check_share
from costscape.methods.method import HELD_OUT


@dataclass(frozen=True, eq=False)
class Part:
    """The rows of one origin.

    - ``train``, ``val``: X and Y to learn from and to choose the epoch on, as the user gave them;
    - ``x``, ``y``: the test rows, ``at`` their numbers;
    - ``rows``: how many rows each part has;
    - ``block``: the length of the blocks that intervals resample.
    """

    train: tuple[Any, Any]
    val: tuple[Any, Any]
    x: Tensor
    y: Tensor
    at: slice
    rows: tuple[int, int, int]
    block: int


def cut_in_time(
    X: Any,
    Y: Any,
    test: float,
    origins: int,
    gap: int,
    block: int | None,
    dtype: torch.dtype,
) -> list[Part]:
    """The last ``test`` of the rows in parts; of those before a part, the last fifth validates."""
    check_share("compare", "test", test)
    check_count("compare", "origins", origins)
    check_count("compare", "gap", gap, 0)
    if block is not None:
        check_count("compare", "block", block)
    x, y = read_pairs(X, Y, dtype)
    y = y.unsqueeze(-1) if y.ndim == 1 else y
    check_time_order(X, "X")
    check_time_order(Y, "Y")
    first_test = round(len(x) * (1 - test))
    tested = len(x) - first_test
    length = block_length(tested) if block is None else block
    starts = [first_test + k * tested // origins for k in range(origins)]
    parts = []
    for start, stop in zip(starts, [*starts[1:], len(x)], strict=True):
        end = max(start - gap, 0)
        first_val = round(end * (1 - HELD_OUT))
        train, val = max(first_val - gap, 0), end - first_val
        if train < 1 or val < 1 or stop == start or tested < 2 * length:
            raise ValueError(
                f"compare needs rows to learn from, rows to choose the epoch on and at least two "
                f"blocks of {length} rows to test on, but {len(x)} rows with test={test:g}, "
                f"origins={origins} and gap={gap} make {train}, {val} and {tested}. Bring more "
                f"rows, or change test, origins, gap or block."
            )
        parts.append(
            Part(
                (_rows(X, 0, train), _rows(Y, 0, train)),
                (_rows(X, first_val, end), _rows(Y, first_val, end)),
                x[start:stop],
                y[start:stop],
                slice(start, stop),
                (train, val, stop - start),
                length,
            )
        )
    return parts


def labels(X: Any, Y: Any, rows: slice) -> np.ndarray:
    """The labels of rows, such as dates: those of the frame X, else of Y, else their numbers."""
    for value in (X, Y):
        if hasattr(value, "iloc"):
            return np.asarray(value.index[rows])
    return np.arange(rows.start, rows.stop)


def _rows(value: Any, first: int, end: int) -> Any:
    return value.iloc[first:end] if hasattr(value, "iloc") else value[first:end]
