"""From a CSV file, a frame or a query to X, Y, and to the features of tomorrow."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from costscape.table import memory as memory_file
from costscape.table.calendar import Calendar
from costscape.table.columns import read_columns
from costscape.table.csv_format import CsvFormat
from costscape.table.dates import DateFormat
from costscape.table.missing import FillForward, FillValue, InsertDates
from costscape.table.pairs import Learned, make_pairs, next_features
from costscape.table.panel import REMEMBERED, brief, make_panel
from costscape.table.settings import Names, OneHot, Settings, checked
from costscape.table.sources import Records


class Pairs(NamedTuple):
    """Features X and outcomes Y of the same rows."""

    X: pd.DataFrame
    Y: pd.DataFrame


class Parts(NamedTuple):
    """Three stretches of time, the earliest first."""

    train: Pairs
    val: Pairs
    test: Pairs


class Table:
    """X and Y from a table of past days, and the features of the days to come.

    Args:
        source: path of a CSV file (also .gz) or a Parquet file, a DataFrame, or a ``Query``. Rows
            may come in any order.
        date: str. The column of dates or times.
        outcome: str or list. Columns that become Y: what a decision is made for.
        group: str or list, default none. Columns that tell series apart, such as store and item.
            Each group is a category of X; its values are texts.
        known: str or list, default none. Columns that are known in advance, for the date decided
            for, such as promo and price.
        lags: list of int, or a dict of such lists by column; default none. ``[1, 7]`` adds each
            outcome 1 and 7 periods before the date; a dict names the columns, also others than
            outcomes. Each lag is above ``gap``.
        category: str or list, default none. Columns of numbers that are categories, such as codes.
            Columns of text are categories already.
        calendar: Calendar, default weekday and season. None for no features of the date.
        gap: int, default 0. Periods between the last known row and the date decided for.
        horizon: int, default 1. Periods decided for at once: with h > 1 a row of Y holds each
            outcome on its date and the h - 1 next ones, ``sold_step1`` to ``sold_steph``.
        freq: str, default None. The step from date to date as pandas writes it ("D", "h",
            "W-MON", "MS"); None for the step of most rows.
        encode: OneHot, default one column for each category.
        missing: FillForward or FillValue, default None: missing values are refused, with file,
            line and column.
        gaps: InsertDates, default None: missing dates are refused.
        csv: CsvFormat, default detected.
        dates: DateFormat, default detected.

    ``X`` and ``Y`` are frames with the same labels: the date decided for, and the group. Rows are
    in order of date, then group. The first rows of a group, which lack lags, are left out. No
    value of X depends on an outcome after ``gap + 1`` periods before its date.

    >>> import costscape as cs
    >>> days = pd.date_range("2024-01-01", periods=5)
    >>> frame = pd.DataFrame({"day": days, "sold": [3, 1, 4, 1, 5]})
    >>> table = cs.Table(frame, date="day", outcome="sold", lags=[1], calendar=None)
    >>> table.X["sold_lag1"].tolist(), table.Y["sold"].tolist()
    ([3.0, 1.0, 4.0, 1.0], [1.0, 4.0, 1.0, 5.0])
    >>> table.next()["sold_lag1"].tolist()  # of 2024-01-06
    [5.0]
    """

    X: pd.DataFrame
    Y: pd.DataFrame

    def __init__(
        self,
        source: Any,
        *,
        date: str,
        outcome: Names,
        group: Names = None,
        known: Names = None,
        lags: Sequence[int] | Mapping[str, Sequence[int]] = (),
        category: Names = None,
        calendar: Calendar | None = Calendar(),  # noqa: B008 (frozen)
        gap: int = 0,
        horizon: int = 1,
        freq: str | None = None,
        encode: OneHot = OneHot(),  # noqa: B008
        missing: FillForward | FillValue | None = None,
        gaps: InsertDates | None = None,
        csv: CsvFormat = CsvFormat(),  # noqa: B008
        dates: DateFormat = DateFormat(),  # noqa: B008
    ) -> None:
        settings = checked(
            date=date, outcome=outcome, group=group, known=known, lags=lags, category=category,
            calendar=calendar, gap=gap, horizon=horizon, freq=freq, encode=encode,
            missing=missing, gaps=gaps,
        )  # fmt: skip
        records, dates, kinds = read_columns(source, settings, csv, dates, None)
        if records.csv is not None:  # an encoding that is not stated is detected in each file
            csv = replace(records.csv, encoding=csv.encoding)
        self._read(settings, records, csv, dates, freq, Learned(kinds, None))

    def read(self, source: Any) -> "Table":
        """Another file, frame or query, read in the same way: same columns of X in same order.

        Args:
            source: as in the constructor, with as much history as the lags need.
        """
        records, dates = self._records(source)
        return self._again(records, dates)

    def append(self, source: Any) -> "Table":
        """New rows after the last ones: X and Y are those of the new rows only.

        Args:
            source: as in the constructor, with rows that follow the last date of each group.
        """
        records, dates = self._records(source)
        tail = self.memory.tail.set_axis([REMEMBERED] * len(self.memory.tail))
        place = records.place

        def where(i: Any) -> str:
            return "the rows read before" if i == REMEMBERED else place(i)

        both = pd.concat([tail, records.frame])
        return self._again(replace(records, frame=both, place=where), dates)

    def next(self, known: Any = None, /, **values: Any) -> pd.DataFrame:
        """X of the next decision: one row for each group that has a row on the last date.

        Args:
            known: frame, path or Query with the columns ``date``, ``group`` and ``known`` for the
                dates to come; groups without rows in it get no row of X.
            **values: or each known column by name: a number or text for all groups, or a list of
                ``horizon`` of them.

        The row's date is ``gap + 1`` periods after the last date.
        """
        return next_features(self.memory, known, values)

    def split(self, *, val: float = 0.16, test: float = 0.2) -> Parts:
        """Train, validation and test rows in order of time.

        Args:
            val: float, default 0.16. The share of dates before the test rows, to choose the epoch.
            test: float, default 0.2. The share of the last dates.

        All rows of a date are in one part. ``gap + horizon - 1`` dates are dropped before each
        cut, so that every outcome of a part was known when the next part was first decided.
        """
        dates = self.X.index.get_level_values(0)
        every = dates.unique()
        reach = self.memory.settings.gap + self.memory.settings.horizon - 1
        a, b = (round((1 - share) * len(every)) for share in (val + test, test))
        if not (val > 0 and test > 0 and a > reach and a < b - reach and b < len(every)):
            raise ValueError(
                f"split needs shares val and test that leave dates to every part, but got val "
                f"{val:g} and test {test:g} of {len(every)} dates, of which {reach} are dropped "
                f"before each cut. Bring more rows or other shares."
            )
        cuts = ((0, a - reach), (a, b - reach), (b, len(every)))
        parts = []
        for start, end in cuts:
            some = (dates >= every[start]) & (dates <= every[end - 1])
            parts.append(Pairs(self.X[some], self.Y[some]))
        return Parts(*parts)

    @property
    def block(self) -> int:
        """Rows that share dates: ``block=`` and ``gap=`` of ``compare`` and ``evaluate``."""
        per_date = self.X.index.get_level_values(0).value_counts().max() if len(self.X) else 1
        return int(per_date) * (self.memory.settings.gap + self.memory.settings.horizon)

    def save(self, path: str | Path) -> None:
        """Write settings, categories, formats and the last rows of each group as JSON.

        Args:
            path: the file. X and Y are not in it.
        """
        memory_file.save(self.memory, Path(path))

    @staticmethod
    def load(path: str | Path) -> "Table":
        """A table that ``save`` wrote: ``next``, ``read`` and ``append`` work; X and Y are empty.

        Args:
            path: the file.
        """
        memory = memory_file.load(Path(path))
        frame = memory.tail.set_axis([REMEMBERED] * len(memory.tail))
        records = Records(frame, str(path), lambda i: "the rows read before")
        made = Table.__new__(Table)
        learned = Learned(memory.kinds, memory.encoding)
        made._read(memory.settings, records, memory.csv, memory.dates, memory.freq, learned)
        return made

    def __repr__(self) -> str:
        shapes = f"X {self.X.shape}, Y {self.Y.shape}"
        if self.X.empty:
            return f"Table({shapes})"
        dates = self.X.index.get_level_values(0)
        return f"Table({shapes}, {brief(dates[0])} to {brief(dates[-1])} every {self.memory.freq})"

    def _records(self, source: Any) -> tuple[Records, DateFormat]:
        known = self.memory
        records, dates, _ = read_columns(
            source, known.settings, known.csv, known.dates, known.kinds
        )
        return records, dates

    def _again(self, records: Records, dates: DateFormat) -> "Table":
        made = Table.__new__(Table)
        known = self.memory
        learned = Learned(known.kinds, known.encoding)
        made._read(known.settings, records, known.csv, dates, known.freq, learned)
        return made

    def _read(
        self,
        settings: Settings,
        records: Records,
        csv: CsvFormat,
        dates: DateFormat,
        freq: str | None,
        learned: Learned,
    ) -> None:
        panel = make_panel(records, settings, freq)
        made = make_pairs(panel, records, settings, learned)
        self.X, self.Y = made.X, made.Y
        self.memory = memory_file.Memory(
            settings, csv, dates, panel.freq, learned.kinds, made.encoding, made.tail
        )
