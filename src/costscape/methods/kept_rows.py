"""The training rows that a fitted method and its file keep, for ``explain`` and ``update``.

Labels and folds of all n rows, and x and y of at most ROWS of them, evenly spread.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from costscape.data import Dataset

ROWS = 10_000  # rows whose x and y are kept at most
NUMBERS = 2**22  # numbers of x and y that are kept at most: 16 MiB in single precision
PREFIX = "kept_rows."  # of their tensors in a model file


@dataclass(frozen=True, eq=False)
class KeptRows:
    """A sample of the training rows, and the place of all rows in the fit.

    Args:
        x: tensor (m, ...). Features of the kept rows.
        y: tensor (m, *y_shape). Their outcomes.
        positions: tensor of int (m,). Their positions among all n rows.
        fold: tensor of int (n,). The fit that leaves a row out and is scored on it; -1 for none. A
            method without folds has one fit, 0, which leaves out its validation rows.
        labels: numpy array (n,) or None. The index of X or Y: dates, integers or texts.
    """

    x: Tensor
    y: Tensor
    positions: Int[Tensor, "m"]
    fold: Int[Tensor, "n"]
    labels: np.ndarray | None

    def learned(self, fit: int) -> Int[Tensor, "r"]:
        """The positions, among all rows, from which a fit learned."""
        return (self.fold != fit).nonzero()[:, 0]

    def names(self, positions: np.ndarray) -> np.ndarray:
        """The labels of some rows; their positions where there are no labels."""
        return positions if self.labels is None else self.labels[positions]

    def extended(
        self, x: Tensor, y: Tensor, fold: Int[Tensor, "k"], labels: np.ndarray | None
    ) -> "KeptRows":
        """The rows with new ones behind them; the sample is thinned where it became too large."""
        old, new = len(self.fold), len(fold)
        positions = torch.cat([self.positions, torch.arange(old, old + new)])
        grown = KeptRows(
            torch.cat([self.x, x]),
            torch.cat([self.y, y]),
            positions,
            torch.cat([self.fold, fold]),
            _joined(self.labels, labels, old, new),
        )
        return grown.thinned()

    def thinned(self) -> "KeptRows":
        """At most ROWS rows and NUMBERS numbers of x and y, every k-th of the present ones."""
        k = Dataset(self.x, self.y).stride(ROWS, NUMBERS)
        if k == 1:
            return self
        x, y = self.x[::k].clone(), self.y[::k].clone()  # a view would keep all rows in memory
        return replace(self, x=x, y=y, positions=self.positions[::k].clone())

    def to_tensors(self) -> dict[str, Tensor]:
        """The tensors of a model file; labels that are texts are one array of bytes."""
        tensors = {name: getattr(self, name) for name in ("x", "y", "positions", "fold")}
        if self.labels is not None:
            tensors["labels"] = torch.from_numpy(_packed(self.labels))
        return {PREFIX + name: tensor for name, tensor in tensors.items()}

    def to_json(self) -> dict[str, Any]:
        """What a model file says of them besides tensors: the numpy kind of the labels."""
        return {"labels": None if self.labels is None else self.labels.dtype.kind}


def from_file(tensors: dict[str, Tensor], facts: dict[str, Any]) -> KeptRows:
    """Take the kept rows out of the tensors of a model file."""
    names = ["x", "y", "positions", "fold"]
    x, y, positions, fold = (tensors.pop(PREFIX + name) for name in names)
    kind, labels = facts["labels"], None
    if kind is not None:
        labels = _unpacked(tensors.pop(f"{PREFIX}labels").numpy(), kind)
    return KeptRows(x, y, positions, fold, labels)


def _joined(
    old: np.ndarray | None, new: np.ndarray | None, olds: int, news: int
) -> np.ndarray | None:
    if old is None and new is None:
        return None
    old = np.arange(olds) if old is None else old
    new = np.arange(olds, olds + news) if new is None else new
    same = old.dtype.kind == new.dtype.kind
    return np.concatenate([old, new] if same else [old.astype(str), new.astype(str)])


def _packed(labels: np.ndarray) -> np.ndarray:
    if labels.dtype.kind != "U":
        return labels.view(np.int64)
    return np.frombuffer("\n".join(labels).encode(), np.uint8).copy()


def _unpacked(numbers: np.ndarray, kind: str) -> np.ndarray:
    if kind == "U":
        return np.array(numbers.tobytes().decode().split("\n"))
    return numbers.view("datetime64[ns]") if kind == "M" else numbers
