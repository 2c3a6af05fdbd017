"""Records with dates as dates, groups as texts, and each other column a number or a category."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from costscape.table.csv_format import CsvFormat
from costscape.table.dates import DateFormat
from costscape.table.settings import Settings
from costscape.table.sources import Records, read_records


def read_columns(
    source: Any,
    settings: Settings,
    csv: CsvFormat,
    dates: DateFormat,
    kinds: Mapping[str, bool] | None,
) -> tuple[Records, DateFormat, dict[str, bool]]:
    """Typed records, the resolved format of the dates, and whether each column is a category.

    Args:
        source: a path, a frame or a Query.
        settings: name the columns.
        csv: the format of a CSV file.
        dates: the format of the dates.
        kinds: whether each column was a category in the first file; None for the first file.
    """
    keys = [settings.date, *settings.group]
    categories = [c for c in settings.values if (kinds[c] if kinds else c in settings.category)]
    records = read_records(source, keys, settings.values, categories, csv)
    frame = records.frame
    if frame.empty:
        raise ValueError(f"{records.name} needs at least one row, but has none.")
    times, dates = _times(records, settings.date, dates)
    made: dict[str, Any] = {settings.date: times}
    for column in settings.group:
        made[column] = _group(records, column)
    found = {}
    for column in settings.values:
        must = column in settings.outcome or kinds is not None
        made[column], found[column] = _typed(records, column, column in categories, must)
    return replace(records, frame=pd.DataFrame(made, index=frame.index)), dates, found


def as_text(column: "pd.Series[Any]") -> "pd.Series[Any]":
    """Categories as texts, NaN where missing: 1, 1.0 and "1" are the same."""
    values = column.astype("category")
    words = [
        str(int(v)) if isinstance(v, float) and v.is_integer() else str(v).strip()
        for v in values.cat.categories.tolist()
    ]
    texts = np.array([*words, np.nan], dtype=object)[values.cat.codes]
    return pd.Series(texts, column.index, dtype=object)


def _times(
    records: Records, column: str, dates: DateFormat
) -> "tuple[pd.Series[Any], DateFormat]":
    texts = records.frame[column]
    try:
        times, dates = dates.read(texts)
    except ValueError as error:
        raise ValueError(f"{records.name}, column {column!r}: {error}.") from error
    if (bad := times.isna().to_numpy()).any():
        i = int(np.argmax(bad))
        missing = pd.isna(texts.iloc[i])
        came = "has none" if missing else f"has {str(texts.iloc[i])!r}"
        raise ValueError(
            f"{records.name} needs a date such as 2024-12-31 in column {column!r} of every row, "
            f"but {records.place(texts.index[i])} {came} ({int(bad.sum())} such). Correct it, or "
            f"state how dates are written with dates=DateFormat(day_first=True) or "
            f"DateFormat(pattern='%d %b %Y')."
        )
    return times, dates


def _group(records: Records, column: str) -> "pd.Series[Any]":
    texts = as_text(records.frame[column])
    if (bad := texts.isna().to_numpy()).any():
        raise ValueError(
            f"{records.name} needs a group in every row, but column {column!r} is empty in "
            f"{records.place(texts.index[int(np.argmax(bad))])} ({int(bad.sum())} such). Fill it "
            f"or drop the row."
        )
    return texts


def _typed(
    records: Records, column: str, category: bool, must: bool
) -> "tuple[pd.Series[Any], bool]":
    """Numbers as float64, or texts; ``must``: a column that is no category has to be numbers."""
    values = records.frame[column]
    if category:
        return as_text(values), True
    numbers = pd.to_numeric(values, errors="coerce").astype(np.float64)
    bad = (numbers.isna() & values.notna()).to_numpy() | np.isinf(numbers.to_numpy())
    if not bad.any():
        return numbers, False
    if not must and not np.isinf(numbers.to_numpy()).any():
        return as_text(values), True
    i = int(np.argmax(bad))
    raise ValueError(
        f"{records.name} needs finite numbers in column {column!r}, but "
        f"{records.place(values.index[i])} has {str(values.iloc[i])!r} ({int(bad.sum())} such). "
        f"Correct it, or state the decimal sign of the file with csv=CsvFormat(decimal=',')."
    )
