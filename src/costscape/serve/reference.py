"""The self-check of a model version: reference rows must decide as they did when it was saved.

    |a_i - a_i of the reference|  <=  tolerance (upper_i - lower_i)

for each row and each coordinate i, with the bounds of the feasible set. On one machine decisions
are the same bits. Another processor rounds differently, and where the cost is flat the action
follows.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from costscape.whole_file import write_whole

TOLERANCE = 1e-3  # of the width of the feasible set
ROWS = 20  # kept training rows that a reference takes


@dataclass(frozen=True, eq=False)
class Reference:
    """Rows of X, what the model decides for them, and how far a version may be off.

    Args:
        rows: numpy array (n, ...). Rows of X.
        decisions: numpy array (n, d) or (n,). The decision of each.
        tolerance: float, default 1e-3. Of the width of each coordinate of the feasible set.
    """

    rows: np.ndarray
    decisions: np.ndarray
    tolerance: float = TOLERANCE

    def check(self, model: Any) -> None:
        """Raise ValueError where the model decides otherwise."""
        decided = np.asarray(model.decide(self.rows))
        if decided.shape != self.decisions.shape:
            raise ValueError(
                f"The reference has decisions of shape {self.decisions.shape}, but the model "
                f"decides {decided.shape}. Write the reference of this model again."
            )
        lower, upper = (np.asarray(end.cpu().double()) for end in model.task_.feasible.bounds)
        width = np.maximum(upper - lower, np.finfo(np.float32).eps)
        off = (np.abs(decided - self.decisions).reshape(len(decided), -1) / width).max(1)
        if not (off <= self.tolerance).all():
            raise ValueError(
                f"{int((~(off <= self.tolerance)).sum())} of {len(off)} reference rows are "
                f"decided otherwise, by up to {off.max():.2g} of the width of the set (allowed "
                f"{self.tolerance:g}). If the model is meant to be new, write its reference: "
                f"costscape serve MODEL --make-reference."
            )

    def write(self, path: Path) -> None:
        """Write to a temporary file and rename it."""
        made = {"rows": self.rows.tolist(), "decisions": self.decisions.tolist()}
        write_whole(path, json.dumps({"tolerance": self.tolerance, **made}).encode())


def make_reference(model: Any, X: Any = None) -> Reference:
    """The decisions of a fitted model for rows X, or else for some of its kept training rows."""
    if X is None:
        X = training_rows(model)
        if X is None:
            raise ValueError(
                "A reference needs rows, but the model file has no training rows. Save the model "
                "with rows=True, or call costscape.serve.make_reference(model, X)."
            )
    rows = np.asarray(X, dtype=np.float64)
    return Reference(rows, np.asarray(model.decide(rows), dtype=np.float64))


def read_reference(path: Path) -> Reference:
    """The reference in a file that ``write`` wrote."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        rows, decisions = (np.array(found[key], dtype=np.float64) for key in ("rows", "decisions"))
        return Reference(rows, decisions, float(found["tolerance"]))
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"{path} is no reference ({type(error).__name__}: {error}). Write it again: costscape "
            f"serve MODEL --make-reference."
        ) from error


def check_sound(model: Any) -> None:
    """Raise ValueError where the model cannot decide its training rows; solvers check the set."""
    rows = training_rows(model)
    if rows is None:
        return
    decided = np.asarray(model.decide(rows))
    if not np.isfinite(decided).all():
        raise ValueError("The model decides NaN or infinity for its training rows. Fit it again.")


def training_rows(model: Any) -> np.ndarray | None:
    """Some kept training rows, spread over all; None where the file has none."""
    if model.rows_ is None:
        return None
    x = model.rows_.x.double().numpy()
    return np.asarray(x[:: -(-len(x) // ROWS)])
