"""Rows in order of time, cut into those to learn from, to choose the epoch on and to test on."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from costscape.arrays import read
from costscape.block_bootstrap import block_length
from costscape.methods.method import HELD_OUT


@dataclass(frozen=True, eq=False)
class Parts:
    """``train`` and ``val`` are pairs in the form they came in; the test part is tensors.

    ``rows`` of the three, and the ``block`` of test rows that are resampled together.
    """

    train: tuple[Any, Any]
    val: tuple[Any, Any]
    x: Tensor
    y: Tensor
    rows: tuple[int, int, int]
    block: int


def cut(X: Any, Y: Any, test: float, gap: int, block: int | None, dtype: torch.dtype) -> Parts:
    """The last ``test`` of the rows; of those before, the last fifth is for validation.

    The fifth is the one that Method.fit takes. ``gap`` rows before each cut are in no part.
    """
    if not 0 < test < 1:
        raise ValueError(
            f"compare needs test, the share of the rows to test on, between 0 and 1, but got "
            f"{test}. Try test=0.2."
        )
    if gap < 0:
        raise ValueError(f"compare needs a gap of at least 0 rows, but got {gap}.")
    if block is not None and block < 1:
        raise ValueError(f"compare needs a block of at least 1 row, but got {block}.")
    x, y = read(X, "X", dtype)[0], read(Y, "Y", dtype)[0]
    if len(x) != len(y):
        raise ValueError(
            f"X and Y need the same number of rows, but have {len(x)} and {len(y)}. Each row of X "
            f"goes with the outcome that followed it."
        )
    at = round(len(x) * (1 - test))
    rest = max(at - gap, 0)
    held = round(rest * (1 - HELD_OUT))
    train, val, tested = max(held - gap, 0), rest - held, len(x) - at
    length = block_length(tested) if block is None else block
    few = tested < 2 * length
    if train < 1 or val < 1 or few:
        out = ("block" if block else "") if few else "gap" if gap else "test"
        raise ValueError(
            f"compare needs rows to learn from, rows to choose the epoch on and at least two "
            f"blocks of {length} rows to test on, but {len(x)} rows with test={test:g} and "
            f"gap={gap} make {train}, {val} and {tested}. Bring more rows, or "
            f"{f'lower {out}' if out else 'raise test'}."
        )
    return Parts(
        (_rows(X, 0, train), _rows(Y, 0, train)),
        (_rows(X, held, rest), _rows(Y, held, rest)),
        x[at:],
        y[at:, None] if y.ndim == 1 else y[at:],
        (train, val, tested),
        length,
    )


def _rows(value: Any, first: int, end: int) -> Any:
    """Rows of an array, a tensor, a list or a frame, in the same form."""
    return value.iloc[first:end] if hasattr(value, "iloc") else value[first:end]
