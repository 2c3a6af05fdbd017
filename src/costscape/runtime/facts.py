"""What an exported model says about itself, read from its metadata and checked by types."""

import json
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from costscape.runtime.feasible import FeasibleSet

FORMAT = 1
Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Reference:
    """Rows by which a file is checked when it is loaded.

    Args:
        rows: numpy array (n, *x_shape). Rows of X.
        decisions: numpy array (n, d). The decisions at the export, by torch in double precision.
        costs: numpy array (n,). Their expected costs; NaN where the model has none.
        tolerance: float. How far a decision may be off, of the width of its interval.
        cost_tolerance: float. How much more a decision beyond may cost, of the size of the cost:
            where the cost is flat, several decisions are best.
    """

    rows: Numbers
    decisions: Numbers
    costs: Numbers
    tolerance: float
    cost_tolerance: float


@dataclass(frozen=True, eq=False)
class Facts:
    """The metadata of an exported model.

    Args:
        kind: str. "exact" for the search itself, "distilled" for a network that imitates it.
        method: str. The class of the method.
        costscape: str. The version that exported.
        fit_date: str. When the fit began, in UTC.
        fit_rows: int. Training rows.
        fingerprint: str. SHA-256 of the numbers of the fitted model.
        digest: str. SHA-256 of the graph.
        dtype: str. "float32" or "float64", of the input.
        rows_at_once: int. Rows that are decided in one call, which bounds the memory.
        x_shape: tuple of int. The shape of a row of X.
        x_columns: tuple of str or None. Names of the columns of X.
        columns: tuple of str or None. Names of the coordinates of a decision.
        units: dict of str. Unit by column, as far as known.
        flat: bool. Whether Y was one number a row, and so are decisions.
        x_low: numpy array. The least value of each place of X in training.
        x_high: numpy array. The largest.
        margin: numpy array. How far beyond counts as near.
        wide: float. The share of values far outside from which a row is flagged.
        feasible: FeasibleSet. The set of the decisions.
        reference: Reference. Rows for the self-check.
        difference: float. The largest difference to ``decide`` of torch on checked rows, in widths
            of the interval.
        loss: dict or None. Of a distilled policy: cost of the model's decisions and of its own
            on held-out rows, and their number.
    """

    kind: str
    method: str
    costscape: str
    fit_date: str
    fit_rows: int
    fingerprint: str
    digest: str
    dtype: str
    rows_at_once: int
    x_shape: tuple[int, ...]
    x_columns: tuple[str, ...] | None
    columns: tuple[str, ...] | None
    units: dict[str, str]
    flat: bool
    x_low: Numbers
    x_high: Numbers
    margin: Numbers
    wide: float
    feasible: FeasibleSet
    reference: Reference
    difference: float
    loss: dict[str, float] | None

    @classmethod
    def from_text(cls, text: str) -> "Facts":
        """Read the metadata; ValueError with a clause where they are not as written."""
        try:
            found = json.loads(text)
            if not isinstance(found, dict) or found.get("format") != FORMAT:
                raise ValueError(f"its format is not {FORMAT}")
            return cls._read(found)
        except (KeyError, TypeError, OverflowError, RecursionError) as error:
            raise ValueError(f"its metadata are not whole ({type(error).__name__})") from None

    @classmethod
    def _read(cls, found: dict[str, Any]) -> "Facts":
        texts = ("kind", "method", "costscape", "fit_date", "fingerprint", "digest", "dtype")
        simple: dict[str, Any] = {name: _typed(found, name, str) for name in texts}
        counts = {name: _typed(found, name, int) for name in ("fit_rows", "rows_at_once")}
        shape = tuple(_typed({"n": n}, "n", int) for n in _typed(found, "x_shape", list))
        size = prod(shape)
        if simple["kind"] not in ("exact", "distilled"):
            raise ValueError("its kind is neither exact nor distilled")
        if simple["dtype"] not in ("float32", "float64"):
            raise ValueError("its dtype is neither float32 nor float64")
        if min(shape, default=0) < 1 or counts["rows_at_once"] < 1:
            raise ValueError("its shape or its number of rows is not positive")
        x_columns, feasible = _names(found, "x_columns"), FeasibleSet.from_json(found["feasible"])
        if x_columns is not None and (len(shape) != 1 or len(x_columns) != shape[0]):
            raise ValueError("its columns do not fit the shape of a row")
        units, loss = _typed(found, "units", dict), found["loss"]
        if loss is not None:
            loss = {str(k): float(v) for k, v in _typed(found, "loss", dict).items()}
        return cls(
            **simple,
            **counts,
            x_shape=shape,
            x_columns=x_columns,
            columns=_names(found, "columns"),
            units={str(k): str(v) for k, v in units.items()},
            flat=_typed(found, "flat", bool),
            x_low=_numbers(found["x_low"], (size,)),
            x_high=_numbers(found["x_high"], (size,)),
            margin=_numbers(found["margin"], (size,)),
            wide=float(found["wide"]),
            feasible=feasible,
            reference=_reference(found["reference"], shape, feasible.dim),
            difference=float(found["difference"]),
            loss=loss,
        )

    @property
    def column_names(self) -> tuple[str, ...]:
        """Names of the places of a row, or their numbers as text."""
        return self.x_columns or tuple(map(str, range(prod(self.x_shape))))

    @property
    def decision_names(self) -> list[str]:
        """Names of the coordinates of a decision, or their numbers as text."""
        names = self.columns
        d = self.feasible.dim
        return list(names) if names and len(names) == d else [str(i) for i in range(d)]


def _reference(found: Any, shape: tuple[int, ...], d: int) -> Reference:
    n = len(found["rows"])
    return Reference(
        _numbers(found["rows"], (n, *shape)),
        _numbers(found["decisions"], (n, d)),
        np.array([np.nan if c is None else float(c) for c in found["costs"]]).reshape(n),
        float(found["tolerance"]),
        float(found["cost_tolerance"]),
    )


def _typed(found: dict[str, Any], name: str, kind: type) -> Any:
    if type(found[name]) is not kind:
        raise ValueError(f"its {name} is no {kind.__name__}")
    return found[name]


def _names(found: dict[str, Any], name: str) -> tuple[str, ...] | None:
    names = found[name]
    if names is None:
        return None
    if type(names) is not list or not all(type(entry) is str for entry in names):
        raise ValueError(f"its {name} are no texts")
    return tuple(names)


def _numbers(values: Any, shape: tuple[int, ...]) -> Numbers:
    array = np.array(values, dtype=np.float64)
    if array.shape != shape or not np.isfinite(array).all():
        raise ValueError(f"some of its numbers are not finite, or not of the shape {shape}")
    return array
