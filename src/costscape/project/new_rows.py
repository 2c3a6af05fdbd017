"""Rows that came after the fit, from one file: further history, and known values of the next date.

A row whose outcomes are empty is one to decide for. A file without columns of outcomes has only
such rows.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from costscape.table import Table
from costscape.table.columns import read_columns


@dataclass(frozen=True, eq=False)
class NewRows:
    """The table after the file's rows, and what the file says about days to come.

    Args:
        table: its X and Y are those of the new rows.
        ahead: frame or path with the known columns of the next dates; None where there are none.
        added: how many rows follow those that the table knew.
        skipped: how many rows the table knew already.
    """

    table: Table
    ahead: Any
    added: int
    skipped: int


def read_new_rows(table: Table, path: Path) -> NewRows:
    """Append the rows of a file that the table does not know yet.

    Args:
        table: what was read before.
        path: a file of the same columns; outcomes may be empty after the last row of history.
    """
    memory, settings = table.memory, table.memory.settings
    if not any(column in settings.outcome for column in _header(table, path)):
        return NewRows(table, path, 0, 0)
    records, _, _ = read_columns(path, settings, memory.csv, memory.dates, memory.kinds)
    frame = records.frame
    blank = frame[list(settings.outcome)].isna().all(axis=1)
    history = frame[~blank]
    dates = frame[settings.date]
    # an empty outcome in the middle of the history is a missing value, not a day to come
    open_ = blank & (dates > (history[settings.date].max() if len(history) else dates.min()))
    open_ |= blank & (len(history) == 0)
    known = dates <= _last_dates(table, frame)
    new = ~open_ & ~known
    source: Any = path if not (open_.any() or known.any()) else frame[new]
    grown = table.append(source) if new.any() else table
    ahead = frame.loc[open_, [settings.date, *settings.group, *settings.known]]
    return NewRows(grown, ahead if len(ahead) else None, int(new.sum()), int(known.sum()))


def next_rows(rows: NewRows) -> Any:
    """X of the next decision."""
    table, settings = rows.table, rows.table.memory.settings
    if settings.known and rows.ahead is None:
        columns = ", ".join([settings.date, *settings.group, *settings.known])
        raise ValueError(
            f"decide needs the columns known in advance for the next date, but got no row of "
            f"{columns} with empty {', '.join(settings.outcome)}. Add such rows to the file of "
            f"--data, or pass a file without {settings.outcome[0]}."
        )
    if not settings.known:
        return table.next()
    return table.next(rows.ahead)


def _header(table: Table, path: Path) -> list[str]:
    """The column names of the file, which has at least the dates and groups."""
    settings = table.memory.settings
    if not path.is_file():
        raise FileNotFoundError(f"--data needs a file, but there is none at {path}.")
    if path.suffix in (".parquet", ".pq"):
        return list(pd.read_parquet(path).columns)
    keys = [settings.date, *settings.group]
    return list(table.memory.csv.detect(path, keys, []).header)


def _last_dates(table: Table, frame: pd.DataFrame) -> "pd.Series[Any]":
    """For each row the last date that the table has of its group; long ago for new groups."""
    settings, tail = table.memory.settings, table.memory.tail
    date, groups = settings.date, list(settings.group)
    if not groups:
        return pd.Series(tail[date].max(), frame.index)
    last = tail.groupby(groups, as_index=False)[date].max()
    found = frame[groups].merge(last, how="left", on=groups)[date]
    made: pd.Series[Any] = found.fillna(pd.Timestamp.min).set_axis(frame.index)
    return made
