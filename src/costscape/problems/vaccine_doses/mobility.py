"""Daily trips between the 47 prefectures of Japan: last week tells about the next.

    x[t, i, j] = log(1 + trips from i to j on day t),
    y[t, i, j] = trips from i to j / all trips from i on day t, zero for i = j,

t = 0..6 in each of the two weeks. The counts are a sample of people, so shares are what means
something. Trips within a prefecture count in the denominator: about 4.6 % leave.
"""

import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from costscape.data.dataset import Dataset, Splits, split
from costscape.data.windows import windows
from costscape.problems.files.csv_columns import read_table
from costscape.problems.files.sources import find, standing, together
from costscape.problems.vaccine_doses.gravity_model import gravity_trips, wave_cases
from costscape.problems.vaccine_doses.japan_calendar import calendar_flags
from costscape.problems.vaccine_doses.prefectures import PREFECTURES, land_borders

WEEK = 7
K = len(PREFECTURES)
FILE_DAYS = np.arange("2018-01-01", "2021-03-01", dtype="datetime64[D]")
PAPER_START = np.datetime64("2020-04-01")
CALENDAR_CUTS = np.datetime64("2019-02-01"), np.datetime64("2020-02-01")


@dataclass(frozen=True, eq=False)
class Mobility:
    """Weeks of trips, and what an epidemic on them needs.

    x and y of the splits are (n, 7, 47, 47) in float32, axes: pair, day, from, to; dates are the
    first day of y. ``cases`` are cumulative at the end of each of ``case_dates``, float64 as the
    populations are: single precision loses small differences of infections.
    """

    splits: Splits
    source: str
    population: Float[Tensor, "47"]
    adjacency: Float[Tensor, "47 47"]
    cases: Float[Tensor, "T 47"]
    case_dates: np.ndarray


def mobility(path: Path | str | None = None, *, all_days: bool = False) -> Mobility:
    """Read the paper's 334 days, 2020-04-01 to 2021-02-28; without its files, made-up ones.

    Pairs have a stride of one day and are cut 64 / 16 / 20 in order of time; the 13 before each
    cut are dropped, so that no day is in two parts.

    Args:
        path: path, default None. A folder with the four files; None looks in the folder named by
            COSTSCAPE_DATA and in the cache.
        all_days: bool, default False. True takes all days of the file, 2018-01-01 to 2021-02-28,
            with the flags of ``calendar_weeks`` in x. There are no made-up ones.
    """
    files = together("mobility", Path(path)) if path is not None else find("mobility")
    if files is None:
        if all_days:
            raise FileNotFoundError(
                "The trips from 2018 on are in the public files only, which are neither in the "
                "folder named by COSTSCAPE_DATA nor in the cache. Run `costscape fetch mobility`."
            )
        return generated_mobility()
    trips_file, cases_file, population_file, borders_file = files
    days = FILE_DAYS if all_days else FILE_DAYS[FILE_DAYS >= PAPER_START]
    trips = _read_trips(trips_file)[-len(days) :]
    names, population = _read_population(population_file)
    cases, case_dates = _read_cases(cases_file, names)
    return Mobility(
        calendar_weeks(trips, days) if all_days else trip_weeks(trips, days),
        f"trips between 47 Japanese prefectures, {days[0]} to {days[-1]}, "
        f"{'with calendar flags, ' if all_days else ''}{standing('mobility', files)}",
        torch.from_numpy(population),
        torch.from_numpy(_read_borders(borders_file)),
        torch.from_numpy(cases),
        case_dates,
    )


def generated_mobility(seed: int = 0) -> Mobility:
    """Trips of a gravity model and infections in three waves, over the calendar of the real ones.

    Populations and borders are real; all else is made up and says so in ``source``.
    """
    trips, days = gravity_trips(seed)
    cases, case_dates = wave_cases(seed)
    return Mobility(
        trip_weeks(trips, days),
        f"GENERATED trips and infections of 47 Japanese prefectures (gravity model, seed {seed}), "
        f"not real data: the public files were not used",
        torch.tensor([p.population for p in PREFECTURES], dtype=torch.float64),
        torch.from_numpy(land_borders()),
        torch.from_numpy(cases.astype(np.float64)),
        case_dates,
    )


def trip_weeks(trips: np.ndarray, days: np.ndarray) -> Splits:
    """Counts (T, K, K) from i to j as pairs of weeks: logarithms of one, shares of the next."""
    return split(_week_pairs(trips, days), train=0.64, val=0.16, reach=2 * WEEK - 1)


def calendar_weeks(trips: np.ndarray, days: np.ndarray) -> Splits:
    """Return the pairs of ``trip_weeks`` with the calendar of the week of y in x.

    x (n, 7, K, K + 3): each prefecture has, after its row of logarithms, the ``calendar_flags``
    of the day of y, which are known when deciding. Training pairs have a y that begins before
    February 2019, validation pairs one before February 2020: the 13 pairs before each cut, which
    are dropped, are in no holiday season.
    """
    pairs = _week_pairs(trips, days)
    flags = windows(torch.from_numpy(calendar_flags(days)), WEEK, 0, WEEK).y
    spread = flags[:, :, None].expand(-1, -1, trips.shape[1], -1)
    dates = pairs.dates
    assert dates is not None
    first, second = (float((dates < cut).mean()) for cut in CALENDAR_CUTS)
    whole = Dataset(torch.cat([pairs.x, spread], -1), pairs.y, dates)
    return split(whole, train=first, val=second - first, reach=2 * WEEK - 1)


def _week_pairs(trips: np.ndarray, days: np.ndarray) -> Dataset:
    from_each = trips.sum(axis=2, keepdims=True)
    if not from_each.all():
        t, i = (int(v[0]) for v in np.nonzero(from_each[:, :, 0] == 0))
        raise ValueError(
            f"Shares of trips need a trip from every prefecture on every day, but on {days[t]} "
            f"number {i + 1} has none. Fill that day."
        )
    shares = (trips / from_each * ~np.eye(trips.shape[1], dtype=bool)).astype(np.float32)
    logs = np.log1p(trips.astype(np.float64)).astype(np.float32)
    past = windows(torch.from_numpy(logs), WEEK, 0, WEEK, days)
    future = windows(torch.from_numpy(shares), WEEK, 0, WEEK)
    return Dataset(past.x, future.y, past.dates)


def _read_trips(path: Path) -> np.ndarray:
    from scipy import sparse  # slow to import

    matrix = _load(path, sparse.load_npz)
    if matrix.shape != (len(FILE_DAYS), K * K):
        raise ValueError(
            f"{path} needs a row for each of the {len(FILE_DAYS)} days {FILE_DAYS[0]} to "
            f"{FILE_DAYS[-1]} and {K * K} columns, but has {matrix.shape}. Download it again."
        )
    counts: np.ndarray = matrix.toarray()
    if (bad := ~(counts >= 0) | (counts % 1 != 0)).any():
        row = int(np.argmax(bad.any(axis=1)))
        raise ValueError(
            f"{path} needs counts of trips, but row {row} ({FILE_DAYS[row]}) has "
            f"{counts[row][bad[row]][0]:g}. Download it again."
        )
    return counts.astype(np.int64).reshape(-1, K, K)


def _read_population(path: Path) -> tuple[list[str], np.ndarray]:
    table = read_table(path, ["gid", "ken", "population"])
    number, people = table.numbers("gid"), table.numbers("population")
    if number.tolist() != list(range(1, K + 1)):
        raise ValueError(
            f"{path} needs the prefectures 1 to {K} in column 'gid', in order, but has "
            f"{len(number)} rows from {number[0]:g} to {number[-1]:g}. Sort or complete them."
        )
    table.refuse(people <= 0, "needs inhabitants in every prefecture", people)
    return table.columns["ken"], people


def _read_cases(path: Path, names: list[str]) -> tuple[np.ndarray, np.ndarray]:
    table = read_table(path, ["Day", *names])
    days = table.times("Day", step=np.timedelta64(1, "D"), format="%Y-%m-%d")
    cases = np.stack([table.numbers(n) for n in names], axis=1)
    falls = np.diff(cases, axis=0, prepend=np.zeros((1, K))).min(axis=1)
    table.refuse(falls < 0, "needs sums of cases that never fall", falls)
    return cases, days.astype("datetime64[D]")


def _read_borders(path: Path) -> np.ndarray:
    matrix = _load(path, np.load)
    if matrix.shape != (K, K) or not np.isin(matrix, (0, 1)).all() or (matrix != matrix.T).any():
        raise ValueError(
            f"{path} needs a symmetric ({K}, {K}) matrix of 0 and 1, but has another of shape "
            f"{matrix.shape}. Download it again."
        )
    borders: np.ndarray = matrix.astype(np.float32)
    return borders


def _load(path: Path, read: Callable[[BinaryIO], Any]) -> Any:
    try:
        with path.open("rb") as file:  # numpy leaves a broken file open when it opens it itself
            return read(file)
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"{path} is not a whole file ({error}). Download it again.") from error
