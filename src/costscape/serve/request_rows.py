"""Rows of a request as numbers: from JSON, CSV and Parquet, checked by column."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, nan
from typing import Any

import numpy as np

from costscape.serve.body_formats import parse_csv
from costscape.serve.refused import Refused

LISTED = 8  # columns that a sentence names at most


@dataclass(frozen=True)
class RowShape:
    """What one row of X looks like.

    Args:
        shape: tuple of int. The shape of a row, as in fit.
        columns: tuple of str. Names of the columns, or their numbers as text; empty for rows with
            more than one axis.
    """

    shape: tuple[int, ...]
    columns: tuple[str, ...]

    def from_json(self, rows: Any) -> np.ndarray:
        """Rows (n, *shape) from a list of objects by column name, or of lists."""
        if not isinstance(rows, list) or not rows:
            raise Refused(422, "rows needs a list with at least one row: objects or lists.")
        if isinstance(rows[0], dict):
            rows = [self._by_name(row, i) for i, row in enumerate(rows)]
        elif self.shape == (1,) and not isinstance(rows[0], list):
            rows = [[row] for row in rows]
        if len(self.shape) == 1:
            for i, row in enumerate(rows):
                self._check_row(row, i)
            return self._array(rows)
        for i, row in enumerate(rows):
            self._check_nested(row, self.shape, f"row {i}")
        return self._array(rows)

    def from_csv(self, content: bytes, most: int) -> np.ndarray:
        """Rows, ``most`` at most, from a CSV file in UTF-8 with commas and decimal points."""
        self._check_flat("CSV")
        header, lines = parse_csv(content)
        places = self._places(header, "The CSV file")
        _check_count(len(lines), most)
        values = np.empty((len(lines), len(places)))
        for i, line in enumerate(lines):
            for j, place in enumerate(places):
                values[i, j] = self._number(line[place], i, j)
        return values

    def from_parquet(self, content: bytes, most: int) -> np.ndarray:
        """Rows from a Parquet file; ``most`` rows, since few bytes may hold many."""
        self._check_flat("Parquet")
        try:
            from pyarrow import parquet
        except ModuleNotFoundError:
            raise Refused(
                422, "Parquet needs pyarrow, which this service lacks. Send JSON or CSV."
            ) from None
        try:
            file = parquet.ParquetFile(io.BytesIO(content))
            names, count = list(file.schema_arrow.names), file.metadata.num_rows
        except Exception:
            raise Refused(422, "The file is no Parquet file that can be read.") from None
        self._places(names, "The Parquet file")
        _check_count(count, most)
        table = file.read()
        values = np.empty((count, len(self.columns)))
        for j, name in enumerate(self.columns):
            try:
                values[:, j] = table[name].to_numpy().astype(np.float64)
            except (ValueError, TypeError):
                raise Refused(422, f"Column {name!r} needs numbers, but has others.") from None
        return self._finite(values)

    def _by_name(self, row: Any, i: int) -> list[Any]:
        self._check_flat("Objects by column name")
        if not isinstance(row, dict):
            raise Refused(422, f"Row {i} needs an object, as row 0, but is no object.")
        try:
            values = [row[name] for name in self.columns]
        except KeyError:
            values = []
        if len(values) != len(row):
            self._places(list(row), f"Row {i}")
        return values

    def _places(self, names: list[str], what: str) -> list[int]:
        """Where each column of fit is among ``names``, which must be the same ones."""
        missing = [name for name in self.columns if name not in names]
        unknown = [name for name in names if name not in self.columns]
        came = [f"lacks {_listed(missing)}"] * bool(missing)
        came += [f"has {_listed(unknown)}, which fit did not have"] * bool(unknown)
        if len(set(names)) < len(names):
            came.append("has a column twice")
        if came:
            raise Refused(422, f"{what} needs the columns of fit, but {' and '.join(came)}.")
        return [names.index(name) for name in self.columns]

    def _check_row(self, row: Any, i: int) -> None:
        if not isinstance(row, list) or len(row) != len(self.columns):
            came = f"{len(row)} values" if isinstance(row, list) else "no list"
            raise Refused(
                422,
                f"Row {i} needs {len(self.columns)} values, {_listed(self.columns)}, but has "
                f"{came}.",
            )
        for j, value in enumerate(row):
            if type(value) is not float or not isfinite(value):
                self._number(None if isinstance(value, str | bool) else value, i, j)

    def _number(self, value: Any, i: int, j: int) -> float:
        """A finite number, from a number or the text of a CSV file."""
        try:
            number = float(value)
        except (ValueError, TypeError, OverflowError):
            number = nan
        if not isfinite(number):
            raise Refused(
                422,
                f"Column {self.columns[j]!r} of row {i} needs a finite number, but is missing, "
                f"NaN, infinite or no number.",
            )
        return number

    def _check_nested(self, value: Any, shape: tuple[int, ...], what: str) -> None:
        if not shape:
            if type(value) not in (int, float) or not isfinite(value):
                raise Refused(422, f"{what} needs finite numbers, but has something else.")
            return
        if not isinstance(value, list) or len(value) != shape[0]:
            raise Refused(422, f"{what} needs lists of the shape {self.shape}, as in fit.")
        for k, part in enumerate(value):
            self._check_nested(part, shape[1:], f"{what}, place {k}")

    def _array(self, rows: list[Any]) -> np.ndarray:
        try:
            return np.array(rows, dtype=np.float64).reshape(len(rows), *self.shape)
        except (ValueError, OverflowError):
            raise Refused(422, "rows needs numbers that double precision can hold.") from None

    def _finite(self, values: np.ndarray) -> np.ndarray:
        for i, j in np.argwhere(~np.isfinite(values))[:1]:
            self._number(nan, int(i), int(j))
        return values

    def _check_flat(self, what: str) -> None:
        if len(self.shape) != 1:
            raise Refused(
                422, f"{what} needs rows of one axis, but this model has rows of {self.shape}."
            )


def _check_count(rows: int, most: int) -> None:
    if not rows:
        raise Refused(422, "The file needs at least one row, but has none.")
    if rows > most:
        raise too_many(rows, most)


def too_many(rows: int, most: int) -> Refused:
    """The refusal of a request with too many rows."""
    return Refused(
        413, f"A request may have {most:,} rows, but this one has {rows:,}. Send it in parts."
    )


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(map(repr, names[:LISTED])) + more
