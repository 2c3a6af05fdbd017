"""Hourly load of PJM's grid: the last day's load and the calendar, and the next day's load.

The files are those of Donti, Amos and Kolter (2017): seconds since 1970, load in units that the
paper does not name, temperature in degrees Fahrenheit.

Temperatures are measurements in the first file only, to 2011-12-30. In the second file they are
filler: a line from 12.8 up to 97.0 (end of June 2012) and down again, without days or nights, and
1.4 from 2014-01-24 on. All test days of the paper have the constant 1.4. A network that learns
from measured temperatures reads it as deep frost in July, so the filler is left out by default.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float

from costscape.data import Dataset, Splits
from costscape.problems.files.sources import PUBLIC, find, standing, together
from costscape.problems.generator_schedule.us_calendar import (
    NEW_YORK,
    SATURDAY,
    federal_holidays,
    is_summer_time,
)

HOURS = 24
CALENDAR = 5
FEATURES = HOURS + CALENDAR  # without temperatures
HEAT_FEATURES = FEATURES + 5 * HOURS
FEWEST_HOURS = 23  # of a day that is used: one hour is missing when the clocks go forward
VALIDATION = 0.2  # of the rows before the test
PAPER_TEST = date(2014, 12, 30)  # the first of the last 20 % of the paper's rows
MEASURED_TEST = date(2011, 1, 1)


@dataclass(frozen=True, eq=False)
class PJM:
    """Pairs as of ``day_pairs`` in time order; ``dates`` are the days of y."""

    splits: Splits
    source: str


@dataclass(frozen=True, eq=False)
class Days:
    """Consecutive days with their load and temperature at each hour in New York."""

    dates: list[date]
    load: Float[np.ndarray, "n 24"]
    temperature: Float[np.ndarray, "n 24"]


def pjm(folder: Path | str | None = None, *, measured: bool = False, filler: bool = False) -> PJM:
    """Read the load of PJM's grid: features of each day, and the load of its 24 hours.

    Args:
        folder: path, default None. The folder of both files; None looks in the folder named by
            COSTSCAPE_DATA and in the cache (``costscape fetch pjm``).
        measured: bool, default False. False takes both files without temperatures, x (n, 29), and
            the test days of the paper, 2014-12-30 to 2016-09-27, 638 rows. True takes the first
            file alone, whose temperatures are measurements, x (n, 149), with 2011 as test days,
            364 rows.
        filler: bool, default False. True takes both files with their temperatures, x (n, 149),
            as published. They are no measurements from 2011-12-31 on.

    The validation rows are the last fifth of the rows before the test. The paper draws its
    held-out rows at random from them, standardises features with statistics of all rows of a
    file, and has 2016-09-28 too, of which the file has one hour.
    """
    if measured and filler:
        raise ValueError(
            "pjm needs either measured=True, the days whose temperatures are measurements, or "
            "filler=True, all days, but got both. Leave one out."
        )
    files = together("pjm", Path(folder)) if folder is not None else find("pjm")
    if files is None:
        raise FileNotFoundError(
            f"pjm needs the files {[f.name for f in PUBLIC['pjm']]}, which are neither in the "
            f"folder named by COSTSCAPE_DATA nor in the cache. Run `costscape fetch pjm`."
        )
    days = read_days(files[:1] if measured else files)
    kind = "measured" if measured else "as published (filler from 2011-12-31 on)"
    heat = f"temperatures {kind}" if measured or filler else "without temperatures"
    return PJM(
        split_at(
            day_pairs(days, temperatures=measured or filler),
            MEASURED_TEST if measured else PAPER_TEST,
        ),
        f"load of PJM's grid (United States), {days.dates[0]} to {days.dates[-1]}, {heat}, "
        f"{standing('pjm', files)}",
    )


def read_days(paths: Sequence[Path]) -> Days:
    """Read files that follow each other in time.

    Of an hour that a file has twice the later line counts. A missing hour takes the value of the
    next hour of its day, or of the last one where there is no next. Days with less than 23 hours
    at the ends of a file are dropped.
    """
    parts = [_read_file(path) for path in paths]
    dates = [day for part in parts for day in part.dates]
    gaps = np.flatnonzero(np.diff([day.toordinal() for day in dates]) != 1)
    if len(gaps):
        before, after = dates[gaps[0]], dates[gaps[0] + 1]
        raise ValueError(
            f"The load needs every day once and in order, but {before} is followed by {after} "
            f"({len(gaps)} such places). Fill the missing days, or cut the file there."
        )
    return Days(
        dates,
        np.concatenate([part.load for part in parts]),
        np.concatenate([part.temperature for part in parts]),
    )


def day_pairs(days: Days, *, temperatures: bool) -> Dataset:
    """Return x (n, 29 or 149) and y (n, 24), float32, for each day but the first.

    x holds, in this order: the load of the day before; with ``temperatures``, the temperature of
    the day before and its square, and the temperature of the day itself, as if forecast without
    error, its square and cube, each for 24 hours; whether the day is a weekend, a federal
    holiday, in daylight-saving time; and cosine and sine of 2 pi (day of the year) / 365. Methods
    standardise x by the training rows.
    """
    load, heat = days.load, days.temperature
    holidays = federal_holidays(days.dates[0].year, days.dates[-1].year)
    angle = 2 * np.pi * np.array([day.timetuple().tm_yday for day in days.dates]) / 365
    calendar = np.column_stack(
        [
            [day.weekday() >= SATURDAY for day in days.dates],
            [day in holidays for day in days.dates],
            [is_summer_time(day) for day in days.dates],
            np.cos(angle),
            np.sin(angle),
        ]
    )
    past, next_ = slice(None, -1), slice(1, None)
    powers = [heat[past], heat[past] ** 2, heat[next_], heat[next_] ** 2, heat[next_] ** 3]
    x = np.hstack([load[past], *(powers if temperatures else []), calendar[next_]])
    return Dataset(
        torch.from_numpy(x.astype(np.float32)),
        torch.from_numpy(load[next_].astype(np.float32)),
        np.array(days.dates[1:], dtype="datetime64[D]"),
    )


def split_at(pairs: Dataset, test: date) -> Splits:
    """Cut in time order: the test from that day on, and the last fifth of the rest to validate."""
    assert pairs.dates is not None
    end = int(np.searchsorted(pairs.dates, np.datetime64(test)))
    cut = end - round(VALIDATION * end)
    parts = Splits(pairs[:cut], pairs[cut:end], pairs[end:])
    if not (0 < cut < end < len(pairs)):
        raise ValueError(
            f"The load needs days before and after {test}, where the test begins, but has "
            f"{pairs.dates[0]} to {pairs.dates[-1]}. Bring more days."
        )
    return parts


def _read_file(path: Path) -> Days:
    try:
        table = np.loadtxt(path, dtype=np.float64, ndmin=2)
    except ValueError as error:
        raise ValueError(
            f"{path} needs three numbers in each line, but {error}. Download it again."
        ) from error
    if table.shape[1] != 3 or not np.isfinite(table).all():
        raise ValueError(
            f"{path} needs a time, a load and a temperature in each line, all finite, but has "
            f"{table.shape[1]} columns and {int((~np.isfinite(table)).sum())} numbers that are "
            f"not finite. Download it again."
        )
    moments = [datetime.fromtimestamp(second, UTC).astimezone(NEW_YORK) for second in table[:, 0]]
    days = sorted({moment.date() for moment in moments})
    row = {day: i for i, day in enumerate(days)}
    at = ([row[moment.date()] for moment in moments], [moment.hour for moment in moments])
    hourly = np.full((2, len(days), HOURS), np.nan)
    hourly[(slice(None), *at)] = table[:, 1:].T
    known = np.isfinite(hourly[0]).sum(1)
    whole = np.flatnonzero(known >= FEWEST_HOURS)
    if len(whole) == 0 or (known[whole[0] : whole[-1] + 1] < FEWEST_HOURS).any():
        raise ValueError(
            f"{path} needs at least {FEWEST_HOURS} hours of every day, but "
            f"{days[int(np.argmin(known))]} has {int(known.min())}. Fill that day, or cut the "
            f"file there."
        )
    used = slice(whole[0], whole[-1] + 1)
    load, temperature = (_fill(part[used]) for part in hourly)
    return Days(days[used], load, temperature)


def _fill(hourly: Float[np.ndarray, "n 24"]) -> Float[np.ndarray, "n 24"]:
    """Each missing hour as the next hour of its day, or the last one."""
    filled = hourly.copy()
    for h in reversed(range(HOURS - 1)):
        filled[:, h] = np.where(np.isnan(filled[:, h]), filled[:, h + 1], filled[:, h])
    for h in range(1, HOURS):
        filled[:, h] = np.where(np.isnan(filled[:, h]), filled[:, h - 1], filled[:, h])
    return filled
