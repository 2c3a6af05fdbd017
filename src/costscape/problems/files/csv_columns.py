"""CSV files, plain or gzipped, read with every value checked."""

import csv
import gzip
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class CsvColumns:
    """Named columns of text; ``lines`` are the line numbers in the file, the header being 1."""

    path: Path
    columns: dict[str, list[str]]
    lines: list[int]

    def __len__(self) -> int:
        return len(self.lines)

    def rows(self, which: np.ndarray) -> "CsvColumns":
        """The rows at these places."""
        places = which.tolist()
        columns = {name: [text[i] for i in places] for name, text in self.columns.items()}
        return CsvColumns(self.path, columns, [self.lines[i] for i in places])

    def numbers(self, column: str) -> np.ndarray:
        """The column as finite float64 numbers."""
        text = self.columns[column]
        try:
            values = np.array(text, dtype=np.float64)
        except ValueError:
            values = np.array([_number(t) for t in text])
        needs = f"needs a number in column '{column}' of every row"
        self.refuse(~np.isfinite(values), needs, text)
        return values

    def times(self, column: str, step: np.timedelta64, format: str | None = None) -> np.ndarray:
        """The column as datetime64[s], each row ``step`` after the one before.

        ISO 8601 unless ``format`` (of strptime) says otherwise; offsets are converted to UTC.
        """
        text = self.columns[column]
        times = np.array([_time(t, format) for t in text], "datetime64[s]")
        example = format or "2014-01-31 23:00:00"
        self.refuse(np.isnat(times), f"needs a time such as {example} in column '{column}'", text)
        if len(bad := np.flatnonzero(np.diff(times) != step)):
            i = int(bad[0])
            raise ValueError(
                f"{self.path} needs one row every {step}, but line {self.lines[i + 1]} has "
                f"{text[i + 1]!r} after {text[i]!r} ({len(bad)} such). "
                f"Sort the rows by '{column}', remove doubles and fill the gaps."
            )
        return times

    def refuse(self, bad: np.ndarray, needs: str, values: Sequence[Any] | np.ndarray) -> None:
        """Raise a ValueError for the first row that is ``bad``, with its line and its value."""
        if bad.any():
            i = int(np.argmax(bad))
            value = repr(values[i]) if isinstance(values[i], str) else f"{values[i]:g}"
            raise ValueError(
                f"{self.path} {needs}, but line {self.lines[i]} has {value}. Correct it."
            )


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")


def _time(text: str, format: str | None) -> datetime | None:
    try:
        time = datetime.strptime(text, format) if format else datetime.fromisoformat(text)
    except ValueError:
        return None
    return time.astimezone(UTC).replace(tzinfo=None) if time.tzinfo else time


def read_table(path: Path | str, columns: Sequence[str]) -> CsvColumns:
    """The named columns of a CSV file with a header; a name that ends in .gz is unpacked."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(
            f"No file at {path}. Pass the path of a CSV file with the columns {list(columns)}."
        )
    try:
        with (gzip.open if path.suffix == ".gz" else open)(
            path, "rt", encoding="utf-8-sig", newline=""
        ) as file:
            return _columns(path, csv.reader(file), list(columns))
    except (gzip.BadGzipFile, EOFError, zlib.error, UnicodeDecodeError, csv.Error) as error:
        raise ValueError(
            f"{path} is not a whole CSV file in UTF-8 ({error}). Copy or save it again, and name "
            f"it .gz if it is compressed."
        ) from error


def _columns(path: Path, reader: Any, columns: list[str]) -> CsvColumns:
    names: list[str] = next((row for row in reader if row), [])
    if missing := [c for c in columns if c not in names]:
        raise ValueError(
            f"{path} needs the columns {columns}, but {missing} are missing from its first row "
            f"{names}. Rename the columns or pass another file."
        )
    places = [names.index(c) for c in columns]
    # no list of rows: a million small lists take longer to make than to read
    texts: list[list[str]] = [[] for _ in columns]
    lines: list[int] = []
    for row in reader:
        if not row:
            continue
        if len(row) != len(names):
            raise ValueError(
                f"{path} needs {len(names)} fields in every row, but line {reader.line_num} has "
                f"{len(row)}. Correct it."
            )
        lines.append(reader.line_num)
        for text, place in zip(texts, places, strict=True):
            text.append(row[place])
    if not lines:
        raise ValueError(f"{path} needs rows of data, but has a header alone. Pass another file.")
    return CsvColumns(path, dict(zip(columns, texts, strict=True)), lines)
