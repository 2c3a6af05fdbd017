"""CSV files, plain or gzipped, read with every value checked."""

import csv
import gzip
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import isfinite
from pathlib import Path

import numpy as np


@dataclass(frozen=True, eq=False)
class Table:
    """Named columns of text; ``lines`` are the line numbers in the file, the header being 1."""

    path: Path
    columns: dict[str, list[str]]
    lines: list[int]

    def __len__(self) -> int:
        return len(self.lines)

    def numbers(self, column: str) -> np.ndarray:
        """The column as finite float64 numbers."""
        text = self.columns[column]
        return np.array([self._number(column, i, t) for i, t in enumerate(text)])

    def times(self, column: str, step: np.timedelta64, format: str | None = None) -> np.ndarray:
        """The column as datetime64[s], each row ``step`` after the one before.

        ISO 8601 unless ``format`` (of strptime) says otherwise; offsets are converted to UTC.
        """
        text = self.columns[column]
        times = np.array(
            [self._time(column, i, t, format) for i, t in enumerate(text)], "datetime64[s]"
        )
        if len(bad := np.flatnonzero(np.diff(times) != step)):
            i = int(bad[0])
            raise ValueError(
                f"{self.path} needs one row every {step}, but line {self.lines[i + 1]} has "
                f"{text[i + 1]!r} after {text[i]!r} ({len(bad)} such). "
                f"Sort the rows by '{column}', remove doubles and fill the gaps."
            )
        return times

    def _number(self, column: str, i: int, text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if not isfinite(value):
            raise ValueError(
                f"{self.path} needs a number in column '{column}' of every row, but line "
                f"{self.lines[i]} has {text!r}. Fill it or remove the row."
            )
        return value

    def _time(self, column: str, i: int, text: str, format: str | None) -> datetime:
        try:
            time = datetime.strptime(text, format) if format else datetime.fromisoformat(text)
        except ValueError as error:
            raise ValueError(
                f"{self.path} needs a time such as {format or '2014-01-31 23:00:00'} in column "
                f"'{column}' of every row, but line {self.lines[i]} has {text!r}. Correct it."
            ) from error
        return time.astimezone(UTC).replace(tzinfo=None) if time.tzinfo else time


def read_table(path: Path | str, columns: Sequence[str]) -> Table:
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
            reader = csv.reader(file)
            header, *rows = [(reader.line_num, row) for row in reader if row] or [(1, [])]
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(
            f"{path} is not a whole gzip file ({error}). Copy or download it again."
        ) from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(
            f"{path} is not a CSV file in UTF-8 ({error}). Save it as one, or name it .gz if it "
            f"is compressed."
        ) from error
    names = header[1]
    if missing := [c for c in columns if c not in names]:
        raise ValueError(
            f"{path} needs the columns {list(columns)}, but {missing} are missing from its first "
            f"row {names}. Rename the columns or pass another file."
        )
    if not rows:
        raise ValueError(f"{path} needs rows of data, but has a header alone. Pass another file.")
    for line, row in rows:
        if len(row) != len(names):
            raise ValueError(
                f"{path} needs {len(names)} fields in every row, but line {line} has {len(row)}. "
                f"Mend that line."
            )
    place = {c: names.index(c) for c in columns}
    return Table(
        path,
        {c: [row[i] for _, row in rows] for c, i in place.items()},
        [line for line, _ in rows],
    )
