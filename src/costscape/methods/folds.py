"""Which pairs each fit of a cross-fitted method learns from, and which it holds out.

    pairs in time order   | fold K-1 | ... | fold 1 | fold 0 |

Fold k is left out of fit k, which chooses its epoch and its settings on it. Each fit learns from
all other pairs, so that together the fits learn from every pair, the latest included.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from costscape.data import Dataset

EDGE = 10  # windows overlap: this part of a fold, at its ends, is neither learned nor scored
FEWEST = 4  # pairs of a fold


@dataclass(frozen=True, eq=False)
class Fold:
    """``rows`` of all pairs to learn from, and ``held`` of them to choose and to score on."""

    rows: Int[Tensor, "n"]
    held: Int[Tensor, "m"]


def together(train: Dataset, val: Dataset) -> Dataset:
    """All pairs in one row."""
    return Dataset(torch.cat([train.x, val.x]), torch.cat([train.y, val.y]))


def time_folds(pairs: int, folds: int) -> list[Fold]:
    """Folds of equal length, the latest first; the first pairs may be in none.

    >>> [fold.held.tolist() for fold in time_folds(9, 2)]
    [[5, 6, 7, 8], [1, 2, 3, 4]]
    """
    length = pairs // folds
    edge = length // EDGE
    found = []
    for k in range(folds):
        end = pairs - k * length
        start = end - length
        rows = torch.cat([torch.arange(start), torch.arange(end, pairs)])
        last = end if end == pairs else end - edge
        found.append(Fold(rows, torch.arange(start + edge, last)))
    return found


def check_folds(owner: str, folds: int, pairs: int | None = None) -> None:
    """One sentence for a number of folds that cannot be had; ``pairs`` None checks it alone."""
    if folds < 2:
        raise ValueError(
            f"{owner} needs folds of at least 2, since each fit holds one out, but got {folds}. "
            f"Take folds=4, or fit the method itself for a single fit."
        )
    if pairs is not None and pairs < FEWEST * folds:
        raise ValueError(
            f"{owner} needs at least {FEWEST} rows in each of {folds} folds, that is "
            f"{FEWEST * folds}, but got {pairs} rows. Bring more rows, or take fewer folds."
        )
