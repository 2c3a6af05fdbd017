"""Hourly wind energy: the last 24 hours tell about hours 12 to 23 ahead."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from costscape.data.dataset import Dataset, Splits, split
from costscape.data.windows import windows
from costscape.problems.files.csv_columns import read_table
from costscape.problems.files.sources import find, standing

HISTORY, GAP, HORIZON = 24, 12, 12
UNIT = 2.05  # MWh: one of the farm's four turbines for one hour at full power
LA_HAUTE_BORNE = Path(__file__).parents[1] / "embedded" / "la_haute_borne_hourly.csv.gz"
QUARTERS = [f"{h:02}:{m:02}:00" for h in range(24) for m in (0, 15, 30, 45)]


@dataclass(frozen=True, eq=False)
class Wind:
    """Pairs as of ``bidding_windows``; energy is in ``unit``, and bids lie in [0, 4] of it."""

    splits: Splits
    source: str
    unit: str


def wind(path: Path | str | None = None) -> Wind:
    """The paper's wind power, TenneT's grid; where its file is not found, the wind farm we carry.

    The file has a row for each day (dd/mm/YYYY) and a column for each quarter of an hour; four
    quarters are summed to an hour and divided by 1000 (at most 2.88). Its 397 days are 9,481
    windows before those that straddle a cut are dropped.
    """
    files = (Path(path),) if path is not None else find("wind")
    if files is None:
        return Wind(
            wind_farm(),
            "La Haute Borne wind farm 2014-2015 (ENGIE), embedded: TenneT's file was not found",
            f"{UNIT} MWh",
        )
    table = read_table(files[0], ["Date", *QUARTERS])
    days = table.times("Date", step=np.timedelta64(1, "D"), format="%d/%m/%Y")
    quarters = np.stack([table.numbers(q) for q in QUARTERS], axis=1)
    energy = quarters.reshape(-1, 4).sum(axis=1).clip(min=0) / 1000
    hours = (days[:, None] + np.arange(24) * np.timedelta64(1, "h")).reshape(-1)
    return Wind(
        bidding_windows(energy, hours),
        f"wind power of TenneT's grid (Germany), {days[0].astype('datetime64[D]')} to "
        f"{days[-1].astype('datetime64[D]')}, {standing('wind', files)}",
        "GWh",
    )


def wind_farm(path: Path | str = LA_HAUTE_BORNE) -> Splits:
    """La Haute Borne, four turbines of 2.05 MW, every hour of 2014 and 2015; travels with us.

    x (n, 24, 1) and y (n, 12) are float32, in units of ``UNIT`` = 2.05 MWh: the farm makes 4
    units an hour at full power, so bids lie in [0, 4]. Energy in MWh is 2.05 times the number; a
    price of 100 a unit is 48.78 a MWh. Hours in which the farm used more than it made count as 0.

    Data: ENGIE, Etalab Open Licence 2.0. The file's column is called net_energy_kwh and holds MWh.
    """
    table = read_table(path, ["time_utc", "net_energy_kwh"])
    hours = table.times("time_utc", step=np.timedelta64(1, "h"))
    return bidding_windows(table.numbers("net_energy_kwh").clip(min=0) / UNIT, hours)


def bidding_windows(energy: np.ndarray, hours: np.ndarray) -> Splits:
    """Hourly energy (T,) as pairs of stride one, cut 64 / 16 / 20 in order of time.

    x = s[t-24:t] as a sequence (n, 24, 1), y = s[t+12:t+24] as (n, 12), dates the first hour of
    y. The 47 windows before each cut are dropped, so that no hour is in two parts.
    """
    series = torch.from_numpy(energy.astype(np.float32))
    pairs = windows(series, HISTORY, GAP, HORIZON, hours)
    pairs = Dataset(pairs.x.unsqueeze(-1), pairs.y, pairs.dates)
    return split(pairs, train=0.64, val=0.16, reach=HISTORY + GAP + HORIZON - 1)
