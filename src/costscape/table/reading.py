"""What a table does with a source: read it, remember it, and read others in the same way."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from costscape.table.columns import read_columns
from costscape.table.csv_format import CsvFormat
from costscape.table.dates import DateFormat
from costscape.table.memory import Memory, load, save
from costscape.table.pairs import Learned, make_pairs, next_features
from costscape.table.panel import REMEMBERED, make_panel
from costscape.table.settings import Settings
from costscape.table.sources import Records

__all__ = ["again", "appended", "first", "loaded", "next_features", "save"]


@dataclass(frozen=True, eq=False)
class Reading:
    """X, Y and what was learned."""

    X: pd.DataFrame
    Y: pd.DataFrame
    memory: Memory


def first(source: Any, settings: Settings, csv: CsvFormat, dates: DateFormat) -> Reading:
    """Read the first source, from which formats, categories and flags are learned."""
    records, dates, kinds = read_columns(source, settings, csv, dates, None)
    if records.csv is not None:  # an encoding that is not stated is detected in each file
        csv = replace(records.csv, encoding=csv.encoding)
    return _read(settings, records, csv, dates, settings.freq, Learned(kinds, None))


def again(memory: Memory, source: Any) -> Reading:
    """Read another source in the same way."""
    records, dates, _ = read_columns(
        source, memory.settings, memory.csv, memory.dates, memory.kinds
    )
    return _known(memory, records, dates)


def appended(memory: Memory, source: Any) -> Reading:
    """Read rows that follow the remembered ones."""
    records, dates, _ = read_columns(
        source, memory.settings, memory.csv, memory.dates, memory.kinds
    )
    place = records.place

    def where(i: Any) -> str:
        return "the rows read before" if i == REMEMBERED else place(i)

    both = pd.concat([_remembered(memory), records.frame])
    return _known(memory, replace(records, frame=both, place=where), dates)


def loaded(path: Path) -> Reading:
    """Read a file of ``save``: X and Y have no rows."""
    memory = load(path)
    records = Records(_remembered(memory), str(path), lambda i: "the rows read before")
    return _known(memory, records, memory.dates)


def _remembered(memory: Memory) -> pd.DataFrame:
    return memory.tail.set_axis([REMEMBERED] * len(memory.tail))


def _known(memory: Memory, records: Records, dates: DateFormat) -> Reading:
    learned = Learned(memory.kinds, memory.encoding)
    return _read(memory.settings, records, memory.csv, dates, memory.freq, learned)


def _read(
    settings: Settings,
    records: Records,
    csv: CsvFormat,
    dates: DateFormat,
    freq: str | None,
    learned: Learned,
) -> Reading:
    panel = make_panel(records, settings, freq)
    made = make_pairs(panel, records, settings, learned)
    memory = Memory(settings, csv, dates, panel.freq, learned.kinds, made.encoding, made.tail)
    return Reading(made.X, made.Y, memory)
