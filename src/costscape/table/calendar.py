"""Features of the date itself: they are known for every day to come."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
YEAR = 365.2425  # days


@dataclass(frozen=True)
class Calendar:
    """Which features of the date a ``Table`` adds to X.

    Args:
        weekday: bool, default True. Seven columns, ``weekday_Mon`` to ``weekday_Sun``: 1 on that
            day.
        month: bool, default False. Twelve columns, ``month_1`` to ``month_12``.
        season: int, default 1. So many pairs of waves, ``season_sin1`` and ``season_cos1`` on: the
            sine and cosine of 2 pi k (day of the year) / 365.2425. 0 for none.
        hour: bool, default False. The sine and cosine of the hour, for data finer than a day.
        holidays: dates such as "2024-12-25", default none. One column ``holiday``: 1 on these
            dates. With a horizon h > 1, one column for each of the h steps.

    All features but the holidays are those of the first step of a row: they determine the others.

    >>> import pandas as pd
    >>> days = pd.to_datetime(["2024-12-24", "2024-12-25"])
    >>> Calendar(weekday=False, season=0, holidays=("2024-12-25",)).columns([days])
    {'holiday': array([0, 1], dtype=uint8)}
    """

    weekday: bool = True
    month: bool = False
    season: int = 1
    hour: bool = False
    holidays: Sequence[str] = ()

    def __post_init__(self) -> None:
        if isinstance(self.holidays, str) or self.season < 0:
            raise ValueError(
                f"Calendar needs season >= 0 and a list of holidays, but got season "
                f"{self.season!r} and holidays {self.holidays!r}. Write holidays=['2024-12-25']."
            )
        try:
            days = tuple(
                sorted(date.fromisoformat(str(day)[:10]).isoformat() for day in self.holidays)
            )
        except ValueError as error:
            raise ValueError(
                f"Calendar needs holidays as dates such as '2024-12-25', but got one that is no "
                f"date ({error}). Write year-month-day."
            ) from error
        object.__setattr__(self, "holidays", days)

    def columns(self, steps: Sequence[Any]) -> dict[str, np.ndarray]:
        """The features by name.

        Args:
            steps: the dates (n,) of each of the h steps, as indexes of pandas.
        """
        first = steps[0]
        made: dict[str, np.ndarray] = {}
        if self.weekday:
            day = np.asarray(first.day_of_week)
            made |= {f"weekday_{name}": (day == i).astype(np.uint8) for i, name in enumerate(DAYS)}
        if self.month:
            month = np.asarray(first.month)
            made |= {f"month_{m}": (month == m).astype(np.uint8) for m in range(1, 13)}
        for k in range(1, self.season + 1):
            angle = 2 * np.pi * k * np.asarray(first.day_of_year) / YEAR
            made |= {f"season_sin{k}": np.sin(angle), f"season_cos{k}": np.cos(angle)}
        if self.hour:
            angle = 2 * np.pi * np.asarray(first.hour + first.minute / 60) / 24
            made |= {"hour_sin": np.sin(angle), "hour_cos": np.cos(angle)}
        if self.holidays:
            free = np.array(self.holidays, "datetime64[D]")
            for j, dates in enumerate(steps):
                name = "holiday" if len(steps) == 1 else f"holiday_step{j + 1}"
                made[name] = np.isin(dates.to_numpy().astype("datetime64[D]"), free).astype(
                    np.uint8
                )
        return made
