"""Decisions on daily sales and on the hourly energy of a wind farm. To add one, add an entry.

Sales are multiples of an item's mean, at most 3; energy is in units of one turbine at full power,
at most 4. Data are the same for every seed.
"""

from collections.abc import Callable
from functools import partial
from itertools import product

import torch

from costscape.bench.zoo.assemble import assemble
from costscape.bench.zoo.real_series import farm_energy, item_sales, lag_table, series_windows
from costscape.bench.zoo.zoo_costs import (
    CarriedStock,
    Priced,
    asymmetric,
    fined,
    newsvendor,
    stepped,
    transfer,
)
from costscape.bench.zoo.zoo_tasks import coupled, ramp_limits, separable
from costscape.data import Dataset, Splits
from costscape.problems.problem import Problem
from costscape.sets import Box, Budget, Finite, Simplex
from costscape.task import Task

SALES = "store item demand set (ddop2, Apache-2.0)"
WIND = "La Haute Borne wind farm (ENGIE)"
MOST_SALES, MOST_ENERGY = 3.0, 4.0
CRATES = [list(plan) for plan in product((0.4, 0.8, 1.2, 1.6, 2.0), repeat=2)]
SHIFTS = [list(plan) for plan in product((0.25, 1.0, 2.0, 3.5), repeat=2)]


def _sales(*items: int, history: int, gap: int, horizon: int) -> Splits:
    return series_windows(*item_sales(*items), history, gap, horizon)


def _sales_table(*items: int, horizon: int = 1, gap: int = 0) -> Splits:
    return lag_table(*item_sales(*items), (1, 2, 7, 14, 28), gap, horizon)


def _pooled(*items: int, horizon: int) -> Splits:
    """Rows of all items in order of time, with a one-hot item."""
    each = [_sales_table(i, horizon=horizon) for i in items]
    return Splits(*(_mixed([getattr(p, part) for p in each]) for part in ("train", "val", "test")))


def _mixed(parts: list[Dataset]) -> Dataset:
    codes = torch.eye(len(parts))
    x = [torch.cat([p.x, w.expand(len(p), -1)], 1) for p, w in zip(parts, codes, strict=True)]
    y = [p.y for p in parts]
    return Dataset(torch.stack(x, 1).flatten(0, 1), torch.stack(y, 1).flatten(0, 1))


def _energy(history: int, gap: int, horizon: int, every: int) -> Splits:
    return series_windows(*farm_energy(), history, gap, horizon, every)


def _energy_table(gap: int, horizon: int, every: int) -> Splits:
    return lag_table(*farm_energy(), (1, 2, 3, 6, 12, 24), gap, horizon, every)


# makers of the data and of the task
PARTS: dict[str, tuple[Callable[[], Splits], Callable[[], Task]]] = {
    "zoo-item13-rare-shortage": (
        lambda: _sales(13, history=14, gap=0, horizon=7),
        lambda: separable(newsvendor(0.98), Box(0.0, MOST_SALES, dim=7)),
    ),
    "zoo-item22-quadratic": (
        lambda: _sales(22, history=28, gap=3, horizon=4),
        lambda: separable(asymmetric(10.0, 2.0), Box(0.0, MOST_SALES, dim=4)),
    ),
    "zoo-item31-tomorrow": (
        lambda: _sales_table(31),
        lambda: separable(newsvendor(0.95), Box(0.0, MOST_SALES, dim=1)),
    ),
    "zoo-item36-fine": (
        lambda: _sales_table(36, gap=1, horizon=2),
        lambda: separable(
            partial(fined, short=3.0, spare=2.0, fine=1.5, slack=0.1),
            Box(0.0, MOST_SALES, dim=2),
            convex=False,
        ),
    ),
    "zoo-items-pooled": (
        lambda: _pooled(*range(38, 46), horizon=3),
        lambda: separable(newsvendor(0.8, squared=1.0), Box(0.0, MOST_SALES, dim=3)),
    ),
    "zoo-shelf-budget": (
        lambda: _sales_table(11, 14, 19, 23, 28, 33),
        lambda: separable(
            Priced(newsvendor(0.85), (0.5, 0.8, 1.0, 1.2, 1.5, 2.0)), Budget(total=6.0, dim=6)
        ),
    ),
    # one delivery is split over the next five days
    "zoo-item24-simplex": (
        lambda: _sales_table(24, horizon=5),
        lambda: separable(asymmetric(8.0, 1.0), Simplex(total=6.0, dim=5)),
    ),
    "zoo-crates": (
        lambda: _sales_table(17, 34, gap=1),
        lambda: separable(
            partial(stepped, crate=0.4, fee=0.2, short=8.0, spare=1.0),
            Finite(CRATES),
            convex=False,
        ),
    ),
    "zoo-item46-ramp": (
        lambda: _sales(46, history=14, gap=1, horizon=7),
        lambda: separable(newsvendor(0.9), ramp_limits(7, MOST_SALES, 0.1875)),
    ),
    "zoo-item18-stock-steps": (
        lambda: _sales(18, history=21, gap=0, horizon=7),
        lambda: coupled(
            CarriedStock(start=0.5, buy=1.0, hold=0.3, lost=6.0), Box(0.0, MOST_SALES, dim=7)
        ),
    ),
    "zoo-items-transfer": (
        lambda: _sales_table(25, 29, 48, 50),
        lambda: coupled(
            partial(transfer, short=9.0, spare=3.0, move=1.0), Box(0.0, MOST_SALES, dim=4)
        ),
    ),
    "zoo-wind-next-hours": (
        lambda: _energy(history=24, gap=0, horizon=4, every=4),
        lambda: separable(newsvendor(0.35), Box(0.0, MOST_ENERGY, dim=4)),
    ),
    "zoo-wind-ramp": (
        lambda: _energy(history=12, gap=1, horizon=8, every=6),
        lambda: separable(asymmetric(2.0, 6.0), ramp_limits(8, MOST_ENERGY, 0.5)),
    ),
    # a load of 3 units is split over the next 6 hours; energy beyond the farm's is imported
    "zoo-wind-load": (
        lambda: _energy(history=12, gap=0, horizon=6, every=6),
        lambda: separable(newsvendor(0.2), Simplex(total=3.0, dim=6)),
    ),
    # line capacity booked; energy far beyond it is fined
    "zoo-wind-line": (
        lambda: _energy_table(gap=2, horizon=4, every=5),
        lambda: separable(
            partial(fined, short=5.0, spare=2.0, fine=4.0, slack=0.25),
            Box(0.0, MOST_ENERGY, dim=4),
            convex=False,
        ),
    ),
    "zoo-wind-list": (
        lambda: _energy_table(gap=5, horizon=2, every=8),
        lambda: separable(asymmetric(1.0, 3.0), Finite(SHIFTS)),
    ),
}


def _make(name: str, seed: int) -> Problem:
    data, task = PARTS[name]
    source = WIND if name.startswith("zoo-wind") else SALES
    return assemble(data(), task(), f"{name}: {source}, embedded, for seed {seed}")


SERIES: dict[str, Callable[[int], Problem]] = {name: partial(_make, name) for name in PARTS}
