"""From a CSV file, a frame or a query to X, Y, and to the features of tomorrow."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from costscape.table.calendar import Calendar
from costscape.table.csv_format import CsvFormat
from costscape.table.dates import DateFormat
from costscape.table.missing import FillForward, FillValue, InsertDates
from costscape.table.settings import Names, OneHot, checked


class Pairs(NamedTuple):
    """Features X and outcomes Y of the same rows."""

    X: Any
    Y: Any


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
    >>> import pandas as pd
    >>> days = pd.date_range("2024-01-01", periods=5)
    >>> frame = pd.DataFrame({"day": days, "sold": [3, 1, 4, 1, 5]})
    >>> table = cs.Table(frame, date="day", outcome="sold", lags=[1], calendar=None)
    >>> table.X["sold_lag1"].tolist(), table.Y["sold"].tolist()
    ([3.0, 1.0, 4.0, 1.0], [1.0, 4.0, 1.0, 5.0])
    >>> table.next()["sold_lag1"].tolist()  # of 2024-01-06
    [5.0]
    """

    X: Any
    Y: Any

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
        self._take(_reading().first(source, settings, csv, dates))

    def read(self, source: Any) -> "Table":
        """Another file, frame or query, read in the same way: same columns of X in same order.

        Args:
            source: as in the constructor, with as much history as the lags need.
        """
        return Table._of(_reading().again(self.memory, source))

    def append(self, source: Any) -> "Table":
        """New rows after the last ones: X and Y are those of the new rows only.

        Args:
            source: as in the constructor, with rows that follow the last date of each group.
        """
        return Table._of(_reading().appended(self.memory, source))

    def next(self, known: Any = None, /, **values: Any) -> Any:
        """X of the next decision: one row for each group that has a row on the last date.

        Args:
            known: frame, path or Query with the columns ``date``, ``group`` and ``known`` for the
                dates to come; groups without rows in it get no row of X.
            **values: or each known column by name: a number or text for all groups, or a list of
                ``horizon`` of them.

        The row's date is ``gap + 1`` periods after the last date.
        """
        return _reading().next_features(self.memory, known, values)

    def plot(self, decisions: Any, path: str | Path | None = None, past: Any = None) -> Any:
        """Draw the last outcomes of each group and the next decisions; a matplotlib figure.

        Args:
            decisions: frame of decisions for rows of ``next()``, as ``decide`` returns it.
            path: the picture to write, such as "orders.png"; None for none. Its folder is made.
            past: frame of decisions for rows of X, drawn too; None for none.

        Six panels at most, with the last 56 dates of Y.
        """
        from costscape.table.orders_picture import draw_orders

        figure = draw_orders(self.Y, decisions, past)
        if path is not None:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            figure.savefig(path, dpi=110)
        return figure

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
        steps: int = self.memory.settings.gap + self.memory.settings.horizon
        return int(per_date) * steps

    def save(self, path: str | Path) -> None:
        """Write settings, categories, formats and the last rows of each group as JSON.

        Args:
            path: the file. X and Y are not in it.
        """
        _reading().save(self.memory, Path(path))

    @staticmethod
    def load(path: str | Path) -> "Table":
        """A table that ``save`` wrote: ``next``, ``read`` and ``append`` work; X and Y are empty.

        Args:
            path: the file.
        """
        return Table._of(_reading().loaded(Path(path)))

    def __repr__(self) -> str:
        shapes = f"X {self.X.shape}, Y {self.Y.shape}"
        if self.X.empty:
            return f"Table({shapes})"
        dates = self.X.index.get_level_values(0)[[0, -1]]
        first, last = (str(date).removesuffix(" 00:00:00") for date in dates)
        return f"Table({shapes}, {first} to {last} every {self.memory.freq})"

    @staticmethod
    def _of(reading: Any) -> "Table":
        made = Table.__new__(Table)
        made._take(reading)
        return made

    def _take(self, reading: Any) -> None:
        self.X, self.Y, self.memory = reading.X, reading.Y, reading.memory


def _reading() -> Any:
    """The module that needs pandas, or one sentence on how to install it."""
    try:
        import pandas  # noqa: F401
    except ImportError as error:
        raise ImportError(
            "Table needs pandas, which is not installed. Run pip install 'costscape[table]'."
        ) from error
    from costscape.table import reading

    return reading
