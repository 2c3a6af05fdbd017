"""One series for each group: sorted by date, one row for each date, without gaps."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from costscape.table.settings import Settings
from costscape.table.sources import Records

INSERTED, REMEMBERED = -1, -2  # rows of no record: dates that were missing, earlier files


@dataclass(frozen=True, eq=False)
class Panel:
    """Rows by group and date; row i + 1 of a group is one period after row i.

    Args:
        values: the columns that are neither dates nor groups, (n,) each.
        keys: one row for each group: its values, as texts.
        group: (n,) row of ``keys``.
        time: (n,) place of the date in ``grid``.
        grid: all dates from the first to the last.
        record: (n,) index in the records, INSERTED, or REMEMBERED.
        freq: the step of the grid, in the words of pandas.
    """

    values: pd.DataFrame
    keys: pd.DataFrame
    group: np.ndarray
    time: np.ndarray
    grid: pd.DatetimeIndex
    record: np.ndarray
    freq: str

    @property
    def dates(self) -> pd.DatetimeIndex:
        return self.grid[self.time]

    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        """The first row of each group, and the row after its last."""
        count = np.bincount(self.group, minlength=len(self.keys))
        last = np.cumsum(count)
        return last - count, last

    def name(self, i: int) -> str:
        """The group and date of row i, for an error."""
        key = self.keys.iloc[int(self.group[i])]
        words = [f"{column} {value!r}" for column, value in key.items()]
        return ", ".join([*words, brief(self.dates[i])])


def brief(date: Any) -> str:
    return str(date).removesuffix(" 00:00:00")


def make_panel(records: Records, settings: Settings, freq: str | None) -> Panel:
    """Sort typed records, and refuse doubled dates and gaps, or insert rows."""
    frame = records.frame
    dates = frame[settings.date]
    keys, group = _groups(frame, settings)
    grid, freq = _grid(dates, freq)
    time = grid.get_indexer(pd.DatetimeIndex(dates))
    if (off := time < 0).any():
        i = int(np.argmax(off))
        raise ValueError(
            f"{records.name} needs one row every {freq!r}, but "
            f"{records.place(frame.index[i])} has {brief(dates.iloc[i])}, which is between two "
            f"dates. State the step with freq=, for example freq='D' or freq='h'."
        )
    order = np.lexsort((time, group))
    panel = Panel(
        frame[list(settings.values)].iloc[order].reset_index(drop=True),
        keys,
        group[order],
        time[order],
        grid,
        frame.index.to_numpy()[order],
        freq,
    )
    same, step = np.diff(panel.group) == 0, np.diff(panel.time)
    _refuse_doubles(panel, records, same & (step == 0))
    gaps = same & (step > 1)
    if not gaps.any():
        return panel
    if settings.gaps is None:
        i = int(np.argmax(gaps))
        raise ValueError(
            f"{records.name} needs a row for every date of a group ({freq}), but "
            f"{panel.name(i + 1)} ({records.place(panel.record[i + 1])}) follows "
            f"{brief(panel.dates[i])} ({int(gaps.sum())} such gaps). Add the rows, or pass"
            f" gaps=InsertDates(outcome=0.0)."
        )
    return _inserted(panel, settings, settings.gaps.outcome)


def extended(panel: Panel, groups: np.ndarray, values: pd.DataFrame, periods: int) -> Panel:
    """The panel of some groups, each with ``periods`` more rows.

    Args:
        panel: the rows so far; all groups asked for end on the last date of the grid.
        groups: (m,) rows of ``keys``.
        values: (m * periods,) values of the new rows, group by group.
        periods: rows to add to each group.
    """
    first, last = panel.ends()
    added = len(panel.group) + np.arange(len(groups) * periods).reshape(-1, periods)
    rows = [
        np.append(np.arange(first[g], last[g]), add) for g, add in zip(groups, added, strict=True)
    ]
    place = np.concatenate(rows)
    grid = pd.date_range(panel.grid[0], periods=len(panel.grid) + periods, freq=panel.freq)
    new = np.tile(len(panel.grid) + np.arange(periods), len(groups))
    both = pd.concat([panel.values, values[list(panel.values)]], ignore_index=True)
    return Panel(
        both.iloc[place].reset_index(drop=True),
        panel.keys,
        np.append(panel.group, np.repeat(groups, periods))[place],
        np.append(panel.time, new)[place],
        grid,
        np.append(panel.record, np.full(len(new), INSERTED))[place],
        panel.freq,
    )


def _groups(frame: pd.DataFrame, settings: Settings) -> tuple[pd.DataFrame, np.ndarray]:
    """Each combination of group values, sorted, and its number for each record."""
    if not settings.group:
        return pd.DataFrame(index=range(1)), np.zeros(len(frame), dtype=np.int64)
    numbers = frame.groupby(list(settings.group), sort=True).ngroup().to_numpy()
    first = np.unique(numbers, return_index=True)[1]
    return frame[list(settings.group)].iloc[first].reset_index(drop=True), numbers


def _grid(dates: "pd.Series[Any]", freq: str | None) -> tuple[pd.DatetimeIndex, str]:
    distinct = pd.DatetimeIndex(np.unique(dates.to_numpy()))
    if freq is None:
        freq = _evident(distinct) or _most_common(distinct)
    try:
        return pd.date_range(distinct[0], distinct[-1], freq=freq), freq
    except ValueError as error:
        raise ValueError(
            f"Table needs freq= as pandas writes it, such as 'D', 'h', 'W-MON' or 'MS', but got "
            f"{freq!r} ({error})."
        ) from error


def _evident(dates: pd.DatetimeIndex) -> str | None:
    """The step of dates without a gap, also of months and working days."""
    if len(dates) < 3:
        return None
    with warnings.catch_warnings():  # pandas announces an offset instead of a text
        warnings.simplefilter("ignore")
        found = pd.infer_freq(dates)
    return None if found is None else str(getattr(found, "freqstr", found))


def _most_common(dates: pd.DatetimeIndex) -> str:
    if len(dates) < 2:
        return "D"
    steps, count = np.unique(np.diff(dates.to_numpy()), return_counts=True)
    step, day = pd.Timedelta(steps[np.argmax(count)]), pd.Timedelta(days=1)
    if step % day == pd.Timedelta(0):
        return f"{step // day}D"
    return str(pd.tseries.frequencies.to_offset(step).freqstr)


def _refuse_doubles(panel: Panel, records: Records, double: np.ndarray) -> None:
    if double.any():
        i = int(np.argmax(double))
        one, other = sorted(panel.record[i : i + 2])
        raise ValueError(
            f"{records.name} needs one row for each group and date, but {panel.name(i)} is in "
            f"{records.place(one)} and in {records.place(other)} ({int(double.sum())} such). Drop "
            f"one, add them up, or name the column that tells them apart in group=."
        )


def _inserted(panel: Panel, settings: Settings, outcome: float | None) -> Panel:
    """The panel with a row for each date between the first and the last of a group."""
    first, last = panel.ends()
    start, count = panel.time[first], panel.time[last - 1] - panel.time[first] + 1
    group = np.repeat(np.arange(len(first)), count)
    begin = np.cumsum(count) - count
    time = np.arange(len(group)) - np.repeat(begin - start, count)
    place = begin[panel.group] + panel.time - start[panel.group]
    source = np.full(len(group), -1)
    source[place] = np.arange(len(place))
    values = panel.values.reindex(source).reset_index(drop=True)
    if outcome is not None:
        values.loc[source < 0, list(settings.outcome)] = outcome
    record = np.where(source < 0, INSERTED, panel.record[source])
    return Panel(values, panel.keys, group, time, panel.grid, record, panel.freq)
