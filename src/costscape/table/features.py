"""From a panel to the features and outcomes of its rows.

    row t:  X = groups, calendar(t), known[t .. t + h - 1], column[t - k] for each lag k
            Y = outcome[t .. t + h - 1]

The row of date t is decided after the rows up to t - gap - 1 are known, and every lag k is above
the gap: no later row enters X, except for columns that are known in advance.
"""

from typing import Any

import numpy as np
import pandas as pd

from costscape.table.panel import REMEMBERED, Panel
from costscape.table.settings import Settings


def rows_of(panel: Panel, settings: Settings) -> np.ndarray:
    """Rows with all their lags and outcomes in the panel, not all remembered; by date, group."""
    first, last = (ends[panel.group] for ends in panel.ends())
    i, h = np.arange(len(panel.group)), settings.horizon
    some = i[(i - settings.history >= first) & (i + h <= last)]
    some = some[panel.record[some + h - 1] != REMEMBERED]
    order = np.lexsort((panel.group[some], panel.time[some]))
    return np.asarray(some[order])


def features(
    panel: Panel, values: pd.DataFrame, settings: Settings, rows: np.ndarray
) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Columns of X before encoding, by name, and the source column of each.

    Args:
        panel: dates and groups.
        values: (n,) columns of the panel, or whether they are missing.
        settings: which features.
        rows: (m,) rows of the panel.
    """
    made: dict[str, np.ndarray] = {}
    source: dict[str, str] = {}

    def add(name: str, column: str, shift: int) -> None:
        if name in made:
            raise ValueError(
                f"Table needs features with different names, but two are called {name!r}. Rename "
                f"the column {column!r}."
            )
        made[name], source[name] = values[column].to_numpy()[rows + shift], column

    for column in settings.known:
        for step in range(settings.horizon):
            add(settings.step_name(column, step), column, step)
    for column, lags in settings.lags:
        for lag in lags:
            add(f"{column}_lag{lag}", column, -lag)
    return made, source


def outcomes(panel: Panel, settings: Settings, rows: np.ndarray) -> pd.DataFrame:
    """The outcomes of each row, NaN where one is missing: column by column, then step by step."""
    made = {
        settings.step_name(column, step): panel.values[column].to_numpy(np.float64)[rows + step]
        for column in settings.outcome
        for step in range(settings.horizon)
    }
    return pd.DataFrame(made, labels(panel, settings, rows))


def labels(panel: Panel, settings: Settings, rows: np.ndarray) -> Any:
    """The date of each row, or its date and group."""
    dates = panel.dates[rows].rename(settings.date)
    if not settings.group:
        return pd.DatetimeIndex(dates)  # without freq: rows may be missing
    keys = panel.keys.iloc[panel.group[rows]]
    return pd.MultiIndex.from_arrays([dates, *(keys[c].to_numpy() for c in settings.group)],
                                     names=[settings.date, *settings.group])  # fmt: skip


def steps(panel: Panel, settings: Settings, rows: np.ndarray) -> list[pd.DatetimeIndex]:
    """The dates of each step of the horizon."""
    return [panel.grid[panel.time[rows] + step] for step in range(settings.horizon)]
