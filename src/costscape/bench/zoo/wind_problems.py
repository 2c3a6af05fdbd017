"""Decisions on the hourly energy of a wind farm. To add one, add an entry to WIND.

Energy is in units of one turbine at full power, at most 4. Data are the same for every seed.
"""

from collections.abc import Callable
from functools import partial
from itertools import product

from costscape.bench.zoo.assemble import Parts, from_parts
from costscape.bench.zoo.decisions import ramp_limits, separable
from costscape.bench.zoo.real_series import farm_energy, lag_table, series_windows
from costscape.bench.zoo.separable_costs import Fined, asymmetric, newsvendor
from costscape.data import Splits
from costscape.problems.problem import Problem
from costscape.sets import Box, Finite, Simplex

SOURCE = "La Haute Borne wind farm (ENGIE)"
HIGH = 4.0
LAGS = (1, 2, 3, 6, 12, 24)
SHIFTS = [list(plan) for plan in product((0.25, 1.0, 2.0, 3.5), repeat=2)]


def _series(history: int, gap: int, horizon: int, every: int) -> Splits:
    return series_windows(*farm_energy(), history, gap, horizon, every)


def _rows(gap: int, horizon: int, every: int) -> Splits:
    return lag_table(*farm_energy(), LAGS, gap, horizon, every)


_PARTS: dict[str, Parts] = {
    "zoo-wind-next-hours": (
        lambda: _series(history=24, gap=0, horizon=4, every=4),
        lambda: separable(newsvendor(0.35), Box(0.0, HIGH, dim=4)),
    ),
    "zoo-wind-ramp": (
        lambda: _series(history=12, gap=1, horizon=8, every=6),
        lambda: separable(asymmetric(2.0, 6.0), ramp_limits(8, HIGH, 0.5), ramp=0.5),
    ),
    # a load of 3 units is split over the next 6 hours; energy beyond the farm's is imported
    "zoo-wind-load": (
        lambda: _series(history=12, gap=0, horizon=6, every=6),
        lambda: separable(newsvendor(0.2), Simplex(total=3.0, dim=6)),
    ),
    # line capacity booked; energy far beyond it is fined
    "zoo-wind-line": (
        lambda: _rows(gap=2, horizon=4, every=5),
        lambda: separable(Fined(5.0, 2.0, 4.0, 0.25), Box(0.0, HIGH, dim=4), convex=False),
    ),
    "zoo-wind-list": (
        lambda: _rows(gap=5, horizon=2, every=8),
        lambda: separable(asymmetric(1.0, 3.0), Finite(SHIFTS)),
    ),
}
WIND: dict[str, Callable[[int], Problem]] = {
    name: partial(from_parts, name, SOURCE, parts) for name, parts in _PARTS.items()
}
