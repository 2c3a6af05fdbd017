"""Rows of X as numbers: arrays, lists and tables with named columns."""

from typing import Any

import numpy as np
import numpy.typing as npt

from costscape.runtime.facts import Facts

LISTED = 8  # columns that a sentence names at most
Numbers = npt.NDArray[np.float64]


def read_rows(X: Any, facts: Facts) -> Numbers:
    """X as an array (n, *x_shape) of finite numbers; a table by the names of its columns."""
    if facts.x_columns is not None and (names := _names(X)) is not None:
        X = _by_name(X, names, facts.x_columns)
    try:
        array = np.asarray(X, dtype=np.float64)
    except (ValueError, TypeError) as error:
        raise TypeError(
            f"X needs an array of real numbers, or rows of equal length, but numpy cannot read "
            f"this {type(X).__name__} as such ({error}). Encode texts as numbers."
        ) from None
    if array.ndim == 1 and facts.x_shape == (1,):
        array = array[:, None]
    if array.shape[1:] != facts.x_shape or array.ndim != 1 + len(facts.x_shape):
        raise ValueError(
            f"X needs rows of shape {facts.x_shape}, as in fit, but has shape {array.shape}. One "
            f"single row is x[None], or frame.iloc[[i]]."
        )
    bad = np.argwhere(~np.isfinite(array).reshape(len(array), -1))
    if len(bad):
        i, j = bad[0].tolist()
        raise ValueError(
            f"X needs finite numbers, but row {i}, column {facts.column_names[j]!r} is NaN or "
            f"infinite ({len(bad)} such values). Fill or drop it."
        )
    return array


def _names(X: Any) -> list[str] | None:
    columns = getattr(X, "columns", None)
    if columns is None or list(columns) == list(range(len(columns))):
        return None
    return [str(column) for column in columns]


def _by_name(X: Any, names: list[str], needed: tuple[str, ...]) -> Any:
    """The columns in the order of fit, whatever theirs is."""
    missing = [name for name in needed if name not in names]
    unknown = [name for name in names if name not in needed]
    if missing or unknown or len(names) != len(needed):
        came = [f"lacks {_listed(missing)}"] * bool(missing)
        came += [f"has {_listed(unknown)}, which fit did not have"] * bool(unknown)
        raise ValueError(
            f"X needs the columns of fit, {_listed(needed)}, but "
            f"{' and '.join(came) or 'has some twice'}. Add, rename or drop columns."
        )
    columns = list(X.columns)
    return X[[columns[names.index(name)] for name in needed]]


def _listed(names: Any) -> str:
    more = f", ... ({len(names)} in all)" if len(names) > LISTED else ""
    return ", ".join(map(repr, names[:LISTED])) + more
