"""Which pairs each member of a fit learns from, and which it holds out.

All pairs, training and validation, stand in one row, in order of time where they have one. The
first member holds out the validation part; the next ones the stretch of the same length before it,
and so on, beginning anew where the row ends. Every member learns from as many pairs. Their mean
has then learned from all of them, the latest included, and no epoch is chosen on pairs that its
member has seen.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from costscape.data import Dataset

EDGE = 10  # windows overlap: this part of a stretch, at either end, is neither learned nor scored


@dataclass(frozen=True, eq=False)
class Fold:
    """Rows to learn from, of all pairs, and pairs to choose an epoch on."""

    rows: Int[Tensor, "n"]
    held: Dataset


def together(train: Dataset, val: Dataset) -> Dataset:
    """All pairs in one row."""
    return Dataset(torch.cat([train.x, val.x]), torch.cat([train.y, val.y]))


def fold(train: Dataset, val: Dataset, member: int) -> Fold:
    """Of a member, counted from 0; rows are those of ``together``."""
    n, v = len(train) + len(val), len(val)
    turn = member % (n // v)
    if turn == 0:
        return Fold(torch.arange(len(train), device=train.x.device), val)
    end = n - turn * v
    start, edge = end - v, v // EDGE
    rows = torch.cat([torch.arange(start), torch.arange(end, n)]).to(train.x.device)
    inside = slice(start + edge, end - edge)
    return Fold(rows, train[inside])
