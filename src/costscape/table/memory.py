"""What a table learned, in a JSON file that executes nothing when it is read."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from costscape.table.calendar import Calendar
from costscape.table.csv_format import CsvFormat
from costscape.table.dates import DateFormat
from costscape.table.encoding import Encoding
from costscape.table.missing import FillForward, FillValue, InsertDates
from costscape.table.settings import OneHot, Settings
from costscape.whole_file import write_whole

FORMAT = 1
KINDS = {
    kind.__name__: kind
    for kind in (Calendar, CsvFormat, DateFormat, Encoding, FillForward, FillValue, InsertDates)
} | {"OneHot": OneHot, "Settings": Settings}


@dataclass(frozen=True, eq=False)
class Memory:
    """All that is needed to read another file in the same way, and to make tomorrow's features.

    Args:
        settings: what the user asked for.
        csv: how CSV files are written.
        dates: how dates are written.
        freq: the step from date to date.
        kinds: whether each column is a category.
        encoding: the categories and flags.
        tail: typed records, the last of each group: those that later rows need.
    """

    settings: Settings
    csv: CsvFormat
    dates: DateFormat
    freq: str
    kinds: Mapping[str, bool]
    encoding: Encoding
    tail: pd.DataFrame


def save(memory: Memory, path: Path) -> None:
    """Write the memory to a temporary file and rename it."""
    tail = memory.tail
    columns = {c: [_plain(v) for v in tail[c].tolist()] for c in tail}
    columns[memory.settings.date] = tail[memory.settings.date].astype(str).tolist()
    made = {f.name: _packed(getattr(memory, f.name)) for f in fields(memory) if f.name != "tail"}
    text = json.dumps({"costscape_table": FORMAT, **made, "tail": columns}, allow_nan=False)
    write_whole(path, text.encode())


def load(path: Path) -> Memory:
    """Read a memory that ``save`` wrote."""
    if not path.is_file():
        raise FileNotFoundError(f"No table at {path}. Pass a file that table.save(path) wrote.")
    try:
        made = json.loads(path.read_text(encoding="utf-8"))
        version = made.pop("costscape_table")
        if version == FORMAT:
            columns = made.pop("tail")
            facts = {name: _unpacked(value) for name, value in made.items()}
            return Memory(**facts, tail=_tail(columns, facts["settings"], facts["kinds"]))
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise ValueError(
            f"{path} needs to be a file of table.save(path), but is not, or is cut off "
            f"({type(error).__name__}). Save the table again."
        ) from error
    raise ValueError(
        f"{path} needs the format {FORMAT}, but has {version!r}. Read it with the version of "
        f"costscape that wrote it, or save the table again."
    )


def _tail(
    columns: Mapping[str, list[Any]], settings: Settings, kinds: Mapping[str, bool]
) -> pd.DataFrame:
    """Columns of JSON as typed records."""
    made: dict[str, Any] = {}
    for name, values in columns.items():
        if name == settings.date:
            made[name] = pd.to_datetime(pd.Series(values), format="ISO8601").dt.as_unit("us")
        elif kinds.get(name, True):  # a category, or a group
            made[name] = np.array([np.nan if v is None else v for v in values], dtype=object)
        else:
            made[name] = np.array([np.nan if v is None else v for v in values], dtype=np.float64)
    return pd.DataFrame({name: pd.Series(v) for name, v in made.items()}).astype(
        {name: object for name in made if made[name].dtype == object}
    )


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and np.isnan(value) else value


def _packed(value: Any) -> Any:
    """A frozen object as its kind and its fields; a mapping, whose keys are free, as "map"."""
    if is_dataclass(value) and not isinstance(value, type):
        parts = {f.name: _packed(getattr(value, f.name)) for f in fields(value)}
        return {"kind": type(value).__name__, "fields": parts}
    if isinstance(value, Mapping):
        return {"map": {k: _packed(v) for k, v in value.items()}}
    return [_packed(v) for v in value] if isinstance(value, list | tuple) else value


def _unpacked(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_unpacked, value))
    if not isinstance(value, dict):
        return value
    if "map" in value:
        return {k: _unpacked(v) for k, v in value["map"].items()}
    return KINDS[value["kind"]](**{k: _unpacked(v) for k, v in value["fields"].items()})
