"""X and Y of a panel, what its first reading teaches, and the features of the next date."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from costscape.table.columns import read_columns
from costscape.table.encoding import Encoding, learned
from costscape.table.features import features, labels, outcomes, rows_of, steps
from costscape.table.memory import Memory
from costscape.table.panel import INSERTED, REMEMBERED, Panel, brief, extended, make_panel
from costscape.table.settings import Settings
from costscape.table.sources import Records


@dataclass(frozen=True)
class Learned:
    """Whether each column is a category; the encoding, None in the first file."""

    kinds: Mapping[str, bool]
    encoding: Encoding | None


@dataclass(frozen=True, eq=False)
class Made:
    X: pd.DataFrame
    Y: pd.DataFrame
    encoding: Encoding
    tail: pd.DataFrame


def make_pairs(panel: Panel, records: Records, settings: Settings, known: Learned) -> Made:
    """X, Y, the encoding and the tail of a panel."""
    if settings.missing is None:
        _refuse_missing(panel, records, settings)
    filled = _filled(panel, settings)
    rows = rows_of(panel, settings)
    if not len(rows) and not (panel.record == REMEMBERED).all():
        raise ValueError(
            f"{records.name} needs groups of at least {settings.history + settings.horizon} rows, "
            f"for the largest lag and the horizon, but the longest has "
            f"{int(np.bincount(panel.group).max())}. Bring more rows or smaller lags."
        )
    Y = outcomes(panel, settings, rows)
    whole = Y.notna().all(axis=1).to_numpy()
    for column in features(panel, filled, settings, rows)[0].values():
        whole = whole & ~pd.isna(column)
    rows, Y = rows[whole], Y[whole]
    encoding = known.encoding or _first_encoding(panel, filled, settings, known.kinds, rows)
    X = _features(panel, filled, settings, known.kinds, encoding, rows)
    return Made(X, Y, encoding, _tail(panel, filled, settings))


def next_features(memory: Memory, known: Any, values: Mapping[str, Any]) -> pd.DataFrame:
    """X of the rows that follow the memory's last rows."""
    settings = memory.settings
    frame = memory.tail.set_axis([REMEMBERED] * len(memory.tail))
    records = Records(frame, "the table", lambda i: "the rows read before")
    panel = make_panel(records, settings, memory.freq)
    periods = settings.gap + settings.horizon
    dates = pd.date_range(panel.grid[-1], periods=periods + 1, freq=memory.freq)[1:]
    _, last = panel.ends()
    active = np.flatnonzero(panel.time[last - 1] == len(panel.grid) - 1)
    ahead = dates[settings.gap :]
    if known is None:
        new = _from_values(settings, values, len(active))
    elif values:
        raise ValueError("next needs a frame or values by name, but got both. Pass one of them.")
    else:
        active, new = _from_rows(memory, known, panel, active, ahead)
    blank = pd.DataFrame(index=range(periods * len(active)), columns=list(settings.values))
    blank = blank.astype({c: object if memory.kinds[c] else np.float64 for c in settings.values})
    place = np.flatnonzero(np.arange(len(blank)) % periods >= settings.gap)
    for column in settings.known:
        blank[column] = _spread(new[column], place, len(blank), column, memory)
    both = extended(panel, active, blank, periods)
    filled = _filled(both, settings)
    _, last = both.ends()
    rows = last[active] - settings.horizon
    return _features(both, filled, settings, memory.kinds, memory.encoding, rows, "next")


def _spread(
    values: list[Any], place: np.ndarray, length: int, column: str, memory: Memory
) -> "pd.Series[Any]":
    if memory.kinds[column]:
        made = np.full(length, np.nan, dtype=object)
        made[place] = [np.nan if pd.isna(v) else str(v).strip() for v in values]
        return pd.Series(made, dtype=object)
    numbers = np.full(length, np.nan)
    try:
        numbers[place] = [np.nan if v is None else float(v) for v in values]
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"next needs numbers for {column!r}, as in the first file, but got {values[0]!r}. "
            f"Pass a number."
        ) from error
    return pd.Series(numbers)


def _from_values(
    settings: Settings, values: Mapping[str, Any], groups: int
) -> dict[str, list[Any]]:
    if set(values) != set(settings.known):
        lacks = [c for c in settings.known if c not in values]
        extra = [c for c in values if c not in settings.known]
        came = f"lacks {lacks[0]!r}" if lacks else f"got {extra[0]!r}"
        raise ValueError(
            f"next needs the columns known in advance, {list(settings.known)}, but {came}. Pass "
            f"each by name, or a frame."
        )
    made = {}
    for column, value in values.items():
        listed = list(value) if isinstance(value, list | tuple | np.ndarray | pd.Series) else None
        if listed is not None and len(listed) != settings.horizon:
            raise ValueError(
                f"next needs one value or {settings.horizon} for {column!r}, one for each step, "
                f"but got {len(listed)}. For values by group pass a frame with the columns "
                f"{[settings.date, *settings.group, *settings.known]}."
            )
        made[column] = (listed or [value] * settings.horizon) * groups
    return made


def _from_rows(
    memory: Memory, source: Any, panel: Panel, active: np.ndarray, ahead: pd.DatetimeIndex
) -> tuple[np.ndarray, dict[str, list[Any]]]:
    """The groups that have rows, and their values, group by group and step by step."""
    settings = replace(memory.settings, outcome=(), lags=(), missing=None)
    records, _, _ = read_columns(source, settings, memory.csv, memory.dates, memory.kinds)
    frame = records.frame
    times = frame[settings.date]
    if (off := ~times.isin(ahead).to_numpy()).any():
        i = int(np.argmax(off))
        raise ValueError(
            f"next needs rows for {' to '.join(map(brief, ahead[[0, -1]].unique()))}, the "
            f"dates that follow the table, but {records.place(frame.index[i])} of {records.name} "
            f"has {brief(times.iloc[i])}. Pass rows for these dates only."
        )
    names = list(settings.group)
    keys = panel.keys.loc[active].assign(_number=active)
    merged = frame.merge(keys, how="left", on=names) if names else frame.assign(_number=active[0])
    if (bad := merged["_number"].isna().to_numpy()).any():
        i = int(np.argmax(bad))
        raise ValueError(
            f"next needs groups with a row on {brief(panel.grid[-1])}, the last date of the "
            f"table, but {records.place(frame.index[i])} of {records.name} has "
            f"{frame[names].iloc[i].to_dict()}. Append its rows first, or drop it."
        )
    merged = merged.sort_values(["_number", settings.date], kind="stable")
    number = merged["_number"].to_numpy(np.int64)
    groups, count = np.unique(number, return_counts=True)
    if (wrong := count != len(ahead)).any() or merged.duplicated(["_number", settings.date]).any():
        g = groups[int(np.argmax(wrong))]
        raise ValueError(
            f"next needs one row for each group and date ({len(ahead)} a group), but "
            f"{panel.keys.iloc[g].to_dict()} has {int(count[int(np.argmax(wrong))])} or one twice."
        )
    return groups, {c: merged[c].tolist() for c in settings.known}


def _filled(panel: Panel, settings: Settings) -> pd.DataFrame:
    if settings.missing is None:
        return panel.values
    filled: pd.DataFrame = settings.missing.fill(panel.values, panel.group)
    return filled


def _first_encoding(
    panel: Panel,
    filled: pd.DataFrame,
    settings: Settings,
    kinds: Mapping[str, bool],
    rows: np.ndarray,
) -> Encoding:
    texts = {c: panel.keys[c].to_numpy()[panel.group] for c in settings.group}
    texts |= {c: filled[c].to_numpy() for c, category in kinds.items() if category}
    holes, _ = features(panel, panel.values.isna(), settings, rows)
    flagged = tuple(name for name, hole in holes.items() if hole.any())
    return replace(learned(settings, texts), flagged=flagged)


def _features(
    panel: Panel,
    filled: pd.DataFrame,
    settings: Settings,
    kinds: Mapping[str, bool],
    encoding: Encoding,
    rows: np.ndarray,
    owner: str = "Table",
) -> pd.DataFrame:
    made, source = features(panel, filled, settings, rows)
    holes, _ = features(panel, panel.values.isna(), settings, rows)
    for name, hole in holes.items():
        if hole.any() and (name not in encoding.flagged or pd.isna(made[name]).any()):
            at = panel.name(int(rows[int(np.argmax(hole))]))
            raise ValueError(
                f"{owner} needs a value for the feature {name!r} of {at}, but it is missing, and "
                f"the first file had none missing there, or nothing can fill it. Pass a value."
            )
    numbers = {name: column for name, column in made.items() if not kinds[source[name]]}
    texts = {name: column for name, column in made.items() if kinds[source[name]]}
    numbers |= {f"{name}_missing": holes[name].astype(np.uint8) for name in encoding.flagged}
    if settings.calendar is not None:
        numbers |= settings.calendar.columns(steps(panel, settings, rows))
    for column in settings.group:
        texts[column] = panel.keys[column].to_numpy()[panel.group[rows]]
        source[column] = column
    return encoding.encode(numbers, texts, source, labels(panel, settings, rows))


def _refuse_missing(panel: Panel, records: Records, settings: Settings) -> None:
    for column in panel.values:
        if (bad := panel.values[column].isna().to_numpy()).any():
            # the first in the order of the file, if any is in the file
            here = np.flatnonzero(bad)
            i = here[np.argmin(np.where(panel.record[here] < 0, np.inf, panel.record[here]))]
            inserted = panel.record[i] == INSERTED
            at = "an inserted row" if inserted else records.place(panel.record[i])
            ahead = " Rows of days to come go into next()." if column in settings.outcome else ""
            raise ValueError(
                f"{records.name} needs a value in every row, but column {column!r} is empty in "
                f"{at} ({panel.name(int(i))}; {int(bad.sum())} such). Fill it, or pass "
                f"missing=FillForward() or missing=FillValue(0.0).{ahead}"
            )


def _tail(panel: Panel, filled: pd.DataFrame, settings: Settings) -> pd.DataFrame:
    """Typed records that later rows need: lags, outcomes that reach on, and one row to fill from.

    That one, the first of a group, is filled; no later feature is its value itself.
    """
    first, last = panel.ends()
    keep = settings.history + settings.horizon
    start = np.maximum(first, last - keep)
    rows = np.concatenate([np.arange(s, e) for s, e in zip(start, last, strict=True)])
    values = panel.values.iloc[rows].reset_index(drop=True)
    cut = np.isin(rows, start[start > first])
    values[cut] = filled.iloc[rows[cut]].to_numpy() if cut.any() else values[cut]
    made = {settings.date: panel.dates[rows].as_unit("us")}
    made |= {c: panel.keys[c].to_numpy()[panel.group[rows]] for c in settings.group}
    return pd.DataFrame(made).join(values)
