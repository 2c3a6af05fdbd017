"""Federal holidays of the United States, and hours of the clock in New York."""

from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

NEW_YORK = ZoneInfo("America/New_York")

MONDAY, THURSDAY, SATURDAY, SUNDAY = 0, 3, 5, 6
# month, weekday, which one of the month (-1: the last)
FLOATING = (
    (1, MONDAY, 3),  # Martin Luther King
    (2, MONDAY, 3),  # Washington
    (5, MONDAY, -1),  # Memorial Day
    (9, MONDAY, 1),  # Labor Day
    (10, MONDAY, 2),  # Columbus Day
    (11, THURSDAY, 4),  # Thanksgiving
)
FIXED = ((1, 1), (7, 4), (11, 11), (12, 25))  # month, day; kept on the nearest weekday


def federal_holidays(first: int, last: int) -> frozenset[date]:
    """Return the days on which federal holidays are observed in the years first to last.

    A holiday on a Saturday is observed on the Friday before, one on a Sunday on the Monday after.
    Holidays that began after 2016 are not included.

    >>> sorted(federal_holidays(2012, 2012))[0]
    datetime.date(2012, 1, 2)
    """
    years = range(first, last + 2)  # 1 January of the next year may be observed in this one
    days = {_observed(date(year, month, day)) for year in years for month, day in FIXED}
    days |= {_nth(year, *rule) for year in years for rule in FLOATING}
    return frozenset(day for day in days if first <= day.year <= last)


def is_summer_time(day: date) -> bool:
    """Return whether daylight-saving time holds in New York as the day begins."""
    return bool(datetime.combine(day, time(), NEW_YORK).dst())


def _observed(day: date) -> date:
    return day + timedelta({SATURDAY: -1, SUNDAY: 1}.get(day.weekday(), 0))


def _nth(year: int, month: int, weekday: int, which: int) -> date:
    if which < 0:
        end = date(year, month, 31)  # Memorial Day: May has 31 days
        return end - timedelta((end.weekday() - weekday) % 7)
    start = date(year, month, 1)
    return start + timedelta((weekday - start.weekday()) % 7 + 7 * (which - 1))
