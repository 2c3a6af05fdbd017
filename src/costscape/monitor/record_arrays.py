"""Records as arrays: the rows of one model in order of time."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from costscape.monitor.outcome_columns import outcome_names
from costscape.monitor.record import Record


@dataclass(frozen=True, eq=False)
class LoggedRows:
    """n logged decisions.

    Args:
        names: list of str. The columns of x, or the places of its numbers.
        y_names: list of str. Those of y.
        time: numpy array of datetime64 (n,).
        version: numpy array of str (n,).
        x: numpy array (n, k). Rows of more than one axis are flattened.
        a: numpy array (n, d). The decisions.
        expected: numpy array (n,). Expected costs; NaN where there is none.
        flagged: numpy array of bool (n,). Whether a row was far out of range.
        plain: numpy array of bool (n,). Whether a row was decided in the task's own set.
        y: numpy array (n, m). Outcomes; NaN where there is none yet.
        quantiles: dict of numpy array (n,). Quantiles of the cost by level; NaN where not asked.
        left_out: int. Records with other columns than ``names``, which are not in the arrays.
    """

    names: list[str]
    y_names: list[str]
    time: np.ndarray
    version: np.ndarray
    x: np.ndarray
    a: np.ndarray
    expected: np.ndarray
    flagged: np.ndarray
    plain: np.ndarray
    y: np.ndarray
    quantiles: dict[str, np.ndarray]
    left_out: int

    def __len__(self) -> int:
        return len(self.x)

    @property
    def has_y(self) -> np.ndarray:
        """Which rows have an outcome (n,)."""
        known: np.ndarray = np.isfinite(self.y).all(1)
        return known if self.y.shape[1] else np.zeros(len(self), dtype=bool)

    def of(self, rows: np.ndarray) -> "LoggedRows":
        """Some of the rows."""
        names = ("time", "version", "x", "a", "expected", "flagged", "plain", "y")
        some = {name: getattr(self, name)[rows] for name in names}
        levels = {level: values[rows] for level, values in self.quantiles.items()}
        return LoggedRows(self.names, self.y_names, **some, quantiles=levels, left_out=0)


def logged_rows(records: Sequence[Record], model: Any = None) -> LoggedRows:
    """The records as arrays.

    What-if requests are left out until they have an outcome: nobody may have acted on them.

    Args:
        records: of one model, in order of time.
        model: the fitted method, whose columns the records must have; None for those of the
            latest record.
    """
    real = [r for r in records if r.is_plain or r.outcome is not None]
    if not real:
        raise ValueError(
            f"The monitor needs logged decisions, but there are none among {len(records)} records "
            f"that are not what-ifs. Ask the service for decisions first."
        )
    last = real[-1]
    if model is None:
        names = list(last.x) if isinstance(last.x, dict) else None
        outcomes = [r.outcome for r in real if r.outcome is not None]
        y_names = [str(i) for i in range(len(outcomes[-1]) if outcomes else 0)]
        d = len(last.decision)
    else:
        flat = len(model.x_shape_) == 1
        names = list(model.x_columns_ or map(str, range(model.x_shape_[0]))) if flat else None
        y_names, d = outcome_names(model), model.task_.feasible.dim
    size = len(names) if names else np.asarray(last.x, float).size
    if model is not None and names is None:
        size = int(np.prod(model.x_shape_))
    kept, x = [], []
    for record in real:
        row = _row(record.x, names, size)
        if row is not None and len(record.decision) == d:
            kept.append(record)
            x.append(row)
    if not kept:
        raise ValueError(
            f"The monitor needs decisions for rows with the columns of the model, but all "
            f"{len(real)} records have others. Name the model and the store that belong together."
        )
    levels = sorted({level for r in kept for level in r.quantiles}, key=float)
    none = [np.nan] * len(y_names)
    return LoggedRows(
        names or [str(i) for i in range(size)],
        y_names,
        np.array([r.time.rstrip("Z") for r in kept], dtype="datetime64[us]"),
        np.array([r.version for r in kept]),
        np.stack(x),
        np.array([list(r.decision.values()) for r in kept], dtype=float),
        np.array([np.nan if r.expected_cost is None else r.expected_cost for r in kept]),
        np.array([bool(r.flags) for r in kept]),
        np.array([r.is_plain for r in kept]),
        np.array(
            [r.outcome if r.outcome and len(r.outcome) == len(none) else none for r in kept],
            dtype=float,
        ).reshape(len(kept), len(none)),
        {v: np.array([r.quantiles.get(v, np.nan) for r in kept]) for v in levels},
        len(real) - len(kept),
    )


def _row(x: Any, names: list[str] | None, size: int) -> np.ndarray | None:
    """The numbers of a row in the order of the names; None where it has other columns."""
    if names is not None:
        if not isinstance(x, dict) or set(x) != set(names):
            return None
        return np.array([x[name] for name in names], dtype=float)
    made = np.ravel(np.asarray(x, dtype=float)) if isinstance(x, list) else np.empty(0)
    return made if made.size == size else None
