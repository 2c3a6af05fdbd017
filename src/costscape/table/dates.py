"""Dates from text: ISO 8601, or day, month and year whose order is stated or evident."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

ISO = r"\d{4}-\d{1,2}-\d{1,2}(?:[T ].*)?"
COMPACT = r"\d{8}"
THREE = r"(\d{1,2})([./-])(\d{1,2})[./-](\d{4})( \d{1,2}:\d{2}(?::\d{2})?)?"


@dataclass(frozen=True)
class DateFormat:
    """How dates are written where they are text.

    Args:
        day_first: bool, default None. True for 31.12.2024, False for 12/31/2024. None takes the
            order from a date that only one of them can read, and refuses if there is none.
        pattern: str, default None. The codes of ``strptime`` for all other ways, such as
            "%d %b %Y" for 31 Dec 2024.

    ISO 8601 (2024-12-31, with or without a time) and 20241231 need neither. Times with an offset
    are converted to UTC.

    >>> import pandas as pd
    >>> times, _ = DateFormat().read(pd.Series(["31.12.2024", "01.02.2025"]))
    >>> times.astype(str).tolist()
    ['2024-12-31', '2025-02-01']
    """

    day_first: bool | None = None
    pattern: str | None = None

    def read(self, column: Any) -> "tuple[Any, DateFormat]":
        """The dates, NaT where the text is no date, and the format with its order resolved."""
        import pandas as pd

        if pd.api.types.is_datetime64_any_dtype(column):
            return _naive(column), self
        texts = column.astype("category")
        words = pd.Series(texts.cat.categories.astype(str), dtype=object).str.strip()
        times, format = self._words(words)
        codes = texts.cat.codes.to_numpy()
        found = np.append(times.to_numpy("datetime64[us]"), np.datetime64("NaT"))[codes]
        return pd.Series(found, column.index), format

    def _words(self, words: Any) -> "tuple[Any, DateFormat]":
        import pandas as pd

        if self.pattern:
            return _naive(pd.to_datetime(words, format=self.pattern, errors="coerce")), self
        if words.str.fullmatch(COMPACT).mean() > 0.5:
            return pd.to_datetime(words, format="%Y%m%d", errors="coerce"), self
        parts = words.str.extract(f"^{THREE}$")
        if parts[0].notna().mean() <= 0.5:
            utc = bool(words.str.contains(r"\d[+-]\d\d:?\d\d$|Z$").any())
            iso = words.where(words.str.fullmatch(ISO))
            return _naive(pd.to_datetime(iso, format="ISO8601", errors="coerce", utc=utc)), self
        day_first = self._order(words, parts)
        order = "%d-%m-%Y" if day_first else "%m-%d-%Y"
        plain = parts[0] + "-" + parts[2] + "-" + parts[3]
        days = pd.to_datetime(plain, format=order, errors="coerce")
        clock = pd.to_timedelta(parts[4].fillna(" 0:00").str.strip().str.replace(
            r"^(\d+:\d+)$", r"\1:00", regex=True))  # fmt: skip
        return days + clock, replace(self, day_first=day_first)

    def _order(self, words: Any, parts: Any) -> bool:
        first, second = (parts[i].astype(float) > 12 for i in (0, 2))
        if self.day_first is not None:
            return self.day_first
        if first.any() and not second.any():
            return True
        if second.any() and not first.any():
            return False
        if first.any():
            raise ValueError(
                f"the dates need one order of day and month, but there are both "
                f"{words[first].iloc[0]!r} and {words[second].iloc[0]!r}. Correct one of them"
            )
        raise ValueError(
            f"the order of day and month is not evident: {words[parts[0].notna()].iloc[0]!r}, "
            f"like all others, can be read in two ways. Pass dates=DateFormat(day_first=True) or "
            f"day_first=False"
        )


def _naive(times: Any) -> Any:
    """Dates in UTC without a time zone."""
    if times.dt.tz is not None:
        times = times.dt.tz_convert("UTC").dt.tz_localize(None)
    return times.dt.as_unit("us")
