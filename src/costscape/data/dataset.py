"""Pairs (x, y), their split into train, validation and test, and their folds in time order."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

EDGE = 10  # windows overlap: this part of a fold, at its ends, is neither learned nor scored
FEWEST = 4  # pairs of a fold


@dataclass(frozen=True, eq=False)
class Dataset:
    """n pairs: features x (n, ...) and what then happened, y (n, *y_shape).

    ``dates`` (n,), where the data has them, is the moment from which each y begins.
    """

    x: Tensor
    y: Tensor
    dates: np.ndarray | None = None

    def __post_init__(self) -> None:
        if len(self.x) != len(self.y):
            raise ValueError(
                f"Dataset pairs each x with one y, but got {len(self.x)} x and {len(self.y)} y. "
                f"Drop the rows that have no partner."
            )
        if self.dates is not None and len(self.dates) != len(self.x):
            raise ValueError(
                f"Dataset needs one date for each pair, but got {len(self.dates)} dates for "
                f"{len(self.x)} pairs. Pass the first moment of each y, or no dates."
            )

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, i: slice) -> "Dataset":
        return Dataset(self.x[i], self.y[i], None if self.dates is None else self.dates[i])

    def stride(self, rows: int, numbers: int) -> int:
        """The k for which every k-th pair is at most so many pairs, and numbers in them."""
        each = self.x[0].numel() + self.y[0].numel()
        return -(-len(self) // max(1, min(rows, numbers // each)))

    def to(self, device: torch.device | str, dtype: torch.dtype) -> "Dataset":
        return Dataset(self.x.to(device, dtype), self.y.to(device, dtype), self.dates)


@dataclass(frozen=True)
class Splits:
    train: Dataset
    val: Dataset
    test: Dataset


def split(data: Dataset, train: float, val: float, reach: int = 0) -> Splits:
    """Cut in order of time: the future is never used to learn the past.

    Windows of stride one overlap: ``reach`` rows are dropped before each cut, so that with
    reach = history + gap + horizon - 1 no moment is in two parts.
    """
    check_count("split", "reach", reach, 0)
    check_share("split", "train", train)
    check_share("split", "val", val)
    if train + val >= 1:
        raise ValueError(
            f"split needs shares train > 0 and val > 0 that leave a rest for the test, but got "
            f"train {train:g} and val {val:g}. Try train=0.64, val=0.16."
        )
    a, b = round(train * len(data)), round((train + val) * len(data))
    # a negative end would count from the back and hand out rows of the next part
    parts = Splits(data[: max(a - reach, 0)], data[a : max(b - reach, a)], data[b:])
    for name, part in vars(parts).items():
        if len(part) == 0:
            raise ValueError(
                f"The {name} part is empty: {len(data)} rows cut at {a} and {b} with {reach} "
                f"dropped before each cut. Bring more rows or other shares."
            )
    return parts


@dataclass(frozen=True, eq=False)
class Fold:
    """A stretch of pairs that a fit leaves out.

    ``rows`` (n,) are the pairs to learn from, ``held`` (m,) those left out, to choose the epoch
    and to score on.
    """

    rows: Int[Tensor, "n"]
    held: Int[Tensor, "m"]


def join(*parts: Dataset) -> Dataset:
    """Return the pairs of all parts, in order, with their dates where all have them."""
    dates = [part.dates for part in parts if part.dates is not None]
    return Dataset(
        torch.cat([part.x for part in parts]),
        torch.cat([part.y for part in parts]),
        np.concatenate(dates) if len(dates) == len(parts) else None,
    )


def time_folds(pairs: int, folds: int) -> list[Fold]:
    """Return folds of equal length in time order, the latest first.

        | fold K-1 | ... | fold 1 | fold 0 |

    Fit k leaves fold k out and learns from all other pairs, so that together the fits learn from
    every pair. Where ``folds`` does not divide ``pairs``, the first pairs are in no fold.

    >>> [fold.held.tolist() for fold in time_folds(9, 2)]
    [[5, 6, 7, 8], [1, 2, 3, 4]]
    """
    length = pairs // folds
    edge = length // EDGE
    made = []
    for k in range(folds):
        end = pairs - k * length
        start = end - length
        rows = torch.cat([torch.arange(start), torch.arange(end, pairs)])
        last = end if end == pairs else end - edge
        made.append(Fold(rows, torch.arange(start + edge, last)))
    return made


def fold_numbers(pairs: int, folds: int) -> Int[Tensor, "pairs"]:
    """Return the fold of ``time_folds`` that leaves out each pair; -1 where none does.

    >>> fold_numbers(9, 2).tolist()
    [-1, 1, 1, 1, 1, 0, 0, 0, 0]
    """
    numbers = torch.full((pairs,), -1, dtype=torch.int16)
    for k in range(folds) if folds > 1 else ():
        end = pairs - k * (pairs // folds)
        numbers[end - pairs // folds : end] = k
    return numbers


def check_count(owner: str, name: str, value: int, least: int = 1) -> None:
    """Raise TypeError or ValueError unless the value is a whole number of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(
            f"{owner} needs {name} to be a whole number, but got {value!r} of type "
            f"{type(value).__name__}."
        )
    if value < least:
        raise ValueError(f"{owner} needs {name} of at least {least}, but got {value}.")


def check_share(owner: str, name: str, value: float) -> None:
    """Raise TypeError or ValueError unless the argument is a number between 0 and 1."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise TypeError(
            f"{owner} needs {name} to be a number between 0 and 1, but got {value!r} of type "
            f"{type(value).__name__}."
        )
    if not 0 < value < 1:
        raise ValueError(f"{owner} needs {name} between 0 and 1, but got {value}. Try 0.2.")


def check_folds(owner: str, folds: int, pairs: int) -> None:
    """Raise ValueError if there are too many folds for so many pairs."""
    if pairs < FEWEST * folds:
        raise ValueError(
            f"{owner} needs at least {FEWEST} rows in each of {folds} folds, that is "
            f"{FEWEST * folds}, but got {pairs} rows. Bring more rows, or take fewer folds."
        )
