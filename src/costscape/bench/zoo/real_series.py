"""Embedded series of the zoo, without the test rows of the paper's problems, and cuts of them."""

from functools import cache

import numpy as np
import torch
from torch import Tensor

from costscape.data import Dataset, Splits, split, windows
from costscape.problems import read_table
from costscape.problems.stock_orders.sales import GAP, HISTORY, HORIZON, SID_STORE1
from costscape.problems.wind_bids.wind_power import GAP as WIND_GAP
from costscape.problems.wind_bids.wind_power import HISTORY as WIND_HISTORY
from costscape.problems.wind_bids.wind_power import HORIZON as WIND_HORIZON
from costscape.problems.wind_bids.wind_power import LA_HAUTE_BORNE, UNIT

FIRST_ITEM, LAST_ITEM = 11, 50  # items 1 to 10 are problems of the paper
TRAIN, VAL = 0.64, 0.16


@cache
def store() -> tuple[np.ndarray, np.ndarray]:
    """Days (T,) and pieces sold (T, 50), before the days of the test part of ``sales``."""
    with SID_STORE1.open("rb") as opened, np.load(opened) as file:
        pieces, start = file["sales"].T.astype(np.float64), np.datetime64(str(file["start"]))
    known = before_test(len(pieces), HISTORY + GAP + HORIZON)
    return start + np.arange(known), pieces[:known]


def before_test(moments: int, length: int) -> int:
    """How many moments precede the test part, the last 20 % of windows of that length."""
    return round((TRAIN + VAL) * (moments - length + 1))


def item_sales(*items: int) -> tuple[np.ndarray, Tensor]:
    """Days (T,) and sales (T, K) of items 11 to 50, over their means in the first 64 % of days."""
    if not all(FIRST_ITEM <= i <= LAST_ITEM for i in items):
        raise ValueError(
            f"The zoo uses items {FIRST_ITEM} to {LAST_ITEM}, but got {list(items)}. Items 1 to "
            f"10 are problems of the paper."
        )
    days, pieces = store()
    chosen = pieces[:, [i - 1 for i in items]]
    scaled = chosen / chosen[: round(TRAIN * len(chosen))].mean(axis=0)
    return days, torch.from_numpy(scaled.astype(np.float32))


@cache
def farm_energy() -> tuple[np.ndarray, Tensor]:
    """Hours (T,) and energy (T, 1) in [0, 4], before the test part of ``wind_farm``."""
    table = read_table(LA_HAUTE_BORNE, ["time_utc", "net_energy_kwh"])
    hours = table.times("time_utc", step=np.timedelta64(1, "h"))
    energy = table.numbers("net_energy_kwh").clip(min=0) / UNIT
    known = before_test(len(hours), WIND_HISTORY + WIND_GAP + WIND_HORIZON)
    return hours[:known], torch.from_numpy(energy[:known].astype(np.float32))[:, None]


def series_windows(
    dates: np.ndarray, series: Tensor, history: int, gap: int, horizon: int, every: int = 1
) -> Splits:
    """x (n, history, K) and y (n, horizon * K), cut 64 / 16 / 20 in order of time.

    ``every`` keeps one window in so many. Windows that straddle a cut are dropped.
    """
    pairs = windows(series, history, gap, horizon, dates)
    assert pairs.dates is not None
    chosen = slice(None, None, every)
    data = Dataset(pairs.x[chosen], pairs.y[chosen].flatten(1), pairs.dates[chosen])
    return split(data, TRAIN, VAL, reach=-(-(history + gap + horizon - 1) // every))


def lag_table(
    dates: np.ndarray,
    series: Tensor,
    lags: tuple[int, ...],
    gap: int,
    horizon: int,
    every: int = 1,
) -> Splits:
    """Rows of lags, means of the window and the calendar in place of windows.

    x has for each of K series the values ``lags`` steps before the first unknown step and the
    mean over the longest lag, then the columns of ``calendar`` for the first step of y.
    """
    cut = series_windows(dates, series, max(lags), gap, horizon, every)

    def rows(part: Dataset) -> Dataset:
        seen = [part.x[:, -lag] for lag in lags]
        assert part.dates is not None
        x = torch.cat([*seen, part.x.mean(1), calendar(part.dates)], 1)
        return Dataset(x, part.y, part.dates)

    return Splits(rows(cut.train), rows(cut.val), rows(cut.test))


def calendar(dates: np.ndarray) -> Tensor:
    """One-hot weekday (7), and sine and cosine of the time of the year and of the day (4)."""
    days = dates.astype("datetime64[D]")
    weekday = np.eye(7)[(days.astype(np.int64) + 3) % 7]  # 1970-01-01 is a Thursday
    year = (days - days.astype("datetime64[Y]")).astype(np.float64) / 365.25
    day = (dates - days) / np.timedelta64(1, "D")
    turns = 2 * np.pi * np.stack([year, day], 1)
    columns = np.concatenate([weekday, np.sin(turns), np.cos(turns)], 1)
    return torch.from_numpy(columns.astype(np.float32))
