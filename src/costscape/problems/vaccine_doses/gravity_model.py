"""Made-up trips between the 47 prefectures and infections, for where the real files are absent.

    trips[t, i, j] ~ Poisson( 0.06 P_i s_ij c_t(d_ij) h_t(i, j) e_t(i, j) ),
    s_ij ~ P_j / (d_ij + 20 km)^2  for j != i,  s_ii = 1 - sum_j s_ij,

a gravity model on the populations P and the distances d: on average 4.6 % of the trips leave their
prefecture. c is the calendar: commuting (short ways) falls at weekends and holidays, travel (long
ways) rises. h is slow noise. e is the state of emergency: April and May 2020 everywhere, January
and February 2021 in eleven prefectures; its depth is drawn. Infections are Poisson around three
waves. The calendar is that of the real days; the numbers are nobody's.
"""

import numpy as np

from costscape.problems.vaccine_doses.prefectures import PREFECTURES, distances

FIRST_DAY, DAYS = np.datetime64("2020-04-01"), 334
FIRST_CASE, CASE_DAYS = np.datetime64("2020-01-16"), 447
SAMPLED = 0.06  # trips a day for each inhabitant
LEAVING = 0.046  # share of the trips that end in another prefecture, mean over prefectures
_HOLIDAYS = (
    "2020-04-29 2020-05-03 2020-05-04 2020-05-05 2020-05-06 2020-07-23 2020-07-24 2020-08-10 "
    "2020-08-13 2020-08-14 2020-08-15 2020-09-21 2020-09-22 2020-11-03 2020-11-23 2020-12-29 "
    "2020-12-30 2020-12-31 2021-01-01 2021-01-02 2021-01-03 2021-01-11 2021-02-11 2021-02-23"
)
SECOND_EMERGENCY = (8, 10, 11, 12, 13, 20, 22, 25, 26, 27, 39)
WAVES = (("2020-04-12", 14.0, 550.0), ("2020-08-05", 20.0, 1300.0), ("2021-01-10", 24.0, 5500.0))


def gravity_trips(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Counts (334, 47, 47), int64, from i (axis 1) to j (axis 2), and their days (334,)."""
    rng = np.random.default_rng([seed, 0])
    days = FIRST_DAY + np.arange(DAYS)
    people = _people()
    rate = SAMPLED * people[:, None] * _shares(people) * _calendar(days)
    away = ~np.eye(len(people), dtype=bool)
    slow = _slow_noise(rng, DAYS, len(people), sd=0.06)
    held = _emergency(rng, days)
    # a trip is held back by the stricter of its two ends; within a prefecture half as much
    between = np.minimum(held[:, :, None], held[:, None, :])
    rate *= np.exp(slow[:, :, None] + slow[:, None, :]) * np.where(
        away, between, (1 + between) / 2
    )
    rate *= rng.gamma(50.0, 1 / 50.0, rate.shape)
    # every prefecture moves every day, so that shares of its trips exist
    return rng.poisson(rate) + np.eye(len(people), dtype=np.int64), days


def wave_cases(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Cumulative infections (447, 47), int64, and their days (447,)."""
    rng = np.random.default_rng([seed, 1])
    days = FIRST_CASE + np.arange(CASE_DAYS)
    people = _people()
    national = sum(
        peak * np.exp(-0.5 * ((days - np.datetime64(at)).astype(float) / width) ** 2)
        for at, width, peak in WAVES
    )
    # crowded prefectures are hit harder, and luck stays with a place for weeks
    risk = people**1.3 / (people**1.3).sum()
    luck = np.exp(_slow_noise(rng, CASE_DAYS, len(people), sd=0.25))
    return rng.poisson(np.asarray(national)[:, None] * risk * luck).cumsum(axis=0), days


def _people() -> np.ndarray:
    return np.array([p.population for p in PREFECTURES], np.float64)


def _shares(people: np.ndarray) -> np.ndarray:
    pull = people / (distances() + 20.0) ** 2
    np.fill_diagonal(pull, 0.0)
    shares: np.ndarray = pull * LEAVING / pull.sum(axis=1).mean()
    np.fill_diagonal(shares, 1 - shares.sum(axis=1))
    return shares


def _calendar(days: np.ndarray) -> np.ndarray:
    """Factor of a day on a way of given length (T, 47, 47)."""
    weekday = (days.astype(np.int64) + 3) % 7  # 1970 began on a Thursday, day 3
    work = np.array([1.0, 1.0, 1.0, 1.0, 1.04, 0.8, 0.7])[weekday]
    travel = np.array([0.95, 0.95, 0.95, 1.0, 1.15, 1.0, 1.05])[weekday]
    free = np.isin(days, np.array(_HOLIDAYS.split(), "datetime64[D]"))
    work, travel = np.where(free, 0.65, work), np.where(free, 1.2, travel)
    commuting = np.exp(-distances() / 100.0)
    factor: np.ndarray = commuting * work[:, None, None] + (1 - commuting) * travel[:, None, None]
    own = np.arange(len(commuting))
    factor[:, own, own] = np.sqrt(work)[:, None]  # errands near home go on when offices close
    return factor


def _emergency(rng: np.random.Generator, days: np.ndarray) -> np.ndarray:
    """Factor (T, 47): falls within days, recovers over weeks."""
    count = len(PREFECTURES)
    first = rng.uniform(0.3, 0.5, count)
    second = np.zeros(count)
    second[list(SECOND_EMERGENCY)] = rng.uniform(0.15, 0.3, len(SECOND_EMERGENCY))
    spring = _pulse(days, "2020-04-07", "2020-05-25")
    winter = _pulse(days, "2021-01-08", "2021-03-21")
    return 1 - spring[:, None] * first - winter[:, None] * second


def _pulse(days: np.ndarray, start: str, end: str) -> np.ndarray:
    since = (days - np.datetime64(start)).astype(float)
    after = (days - np.datetime64(end)).astype(float)
    pulse: np.ndarray = (1 / (1 + np.exp(-since / 2))) * np.exp(-np.maximum(after, 0) / 14)
    return pulse


def _slow_noise(rng: np.random.Generator, days: int, count: int, sd: float) -> np.ndarray:
    """First-order autoregression with coefficient 0.9 and standard deviation sd, (days, count)."""
    shocks = rng.normal(size=(days, count))
    noise = np.empty_like(shocks)
    noise[0] = shocks[0]
    for t in range(1, days):
        noise[t] = 0.9 * noise[t - 1] + np.sqrt(1 - 0.81) * shocks[t]
    return sd * noise
