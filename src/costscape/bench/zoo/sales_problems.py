"""Stock decisions on daily sales of items 11 to 50. To add one, add an entry to SALES.

Sales are multiples of an item's mean, at most 3. Data are the same for every seed.
"""

from collections.abc import Callable
from functools import partial
from itertools import product

import torch
from torch import Tensor

from costscape.bench.zoo.assemble import Parts, from_parts
from costscape.bench.zoo.coupled_costs import Transfer
from costscape.bench.zoo.decisions import coupled, ramp_limits, separable
from costscape.bench.zoo.real_series import item_sales, lag_table, series_windows
from costscape.bench.zoo.separable_costs import (
    Fined,
    Priced,
    Stepped,
    asymmetric,
    newsvendor,
)
from costscape.bench.zoo.simulators import CarriedStock
from costscape.data import Dataset, Splits
from costscape.problems.problem import Problem
from costscape.sets import Box, Budget, Finite, Simplex

SOURCE = "store item demand set (ddop2, Apache-2.0)"
HIGH = 3.0
LAGS = (1, 2, 7, 14, 28)
CRATES = [list(plan) for plan in product((0.4, 0.8, 1.2, 1.6, 2.0), repeat=2)]


def _series(*items: int, history: int, gap: int, horizon: int) -> Splits:
    return series_windows(*item_sales(*items), history, gap, horizon)


def _rows(*items: int, horizon: int = 1, gap: int = 0) -> Splits:
    return lag_table(*item_sales(*items), LAGS, gap, horizon)


def _pooled(*items: int, horizon: int) -> Splits:
    """Rows of all items in order of time, with a one-hot item."""
    parts = [_rows(i, horizon=horizon) for i in items]
    which = torch.eye(len(items))

    def pool(chosen: Callable[[Splits], Dataset]) -> Dataset:
        each = [chosen(p) for p in parts]
        x = [torch.cat([p.x, w.expand(len(p), -1)], 1) for p, w in zip(each, which, strict=True)]
        return Dataset(_mixed(x), _mixed([p.y for p in each]))

    return Splits(pool(lambda p: p.train), pool(lambda p: p.val), pool(lambda p: p.test))


def _mixed(parts: list[Tensor]) -> Tensor:
    return torch.stack(parts, 1).flatten(0, 1)


_PARTS: dict[str, Parts] = {
    "zoo-item13-rare-shortage": (
        lambda: _series(13, history=14, gap=0, horizon=7),
        lambda: separable(newsvendor(0.98), Box(0.0, HIGH, dim=7)),
    ),
    "zoo-item22-quadratic": (
        lambda: _series(22, history=28, gap=3, horizon=4),
        lambda: separable(asymmetric(10.0, 2.0), Box(0.0, HIGH, dim=4)),
    ),
    "zoo-item31-tomorrow": (
        lambda: _rows(31),
        lambda: separable(newsvendor(0.95), Box(0.0, HIGH, dim=1)),
    ),
    "zoo-item36-fine": (
        lambda: _rows(36, gap=1, horizon=2),
        lambda: separable(Fined(3.0, 2.0, 1.5, 0.1), Box(0.0, HIGH, dim=2), convex=False),
    ),
    "zoo-items-pooled": (
        lambda: _pooled(*range(38, 46), horizon=3),
        lambda: separable(newsvendor(0.8, squared=1.0), Box(0.0, HIGH, dim=3)),
    ),
    "zoo-shelf-budget": (
        lambda: _rows(11, 14, 19, 23, 28, 33),
        lambda: separable(
            Priced(newsvendor(0.85), (0.5, 0.8, 1.0, 1.2, 1.5, 2.0)), Budget(total=6.0, dim=6)
        ),
    ),
    # one delivery is split over the next five days
    "zoo-item24-simplex": (
        lambda: _rows(24, horizon=5),
        lambda: separable(asymmetric(8.0, 1.0), Simplex(total=6.0, dim=5)),
    ),
    "zoo-crates": (
        lambda: _rows(17, 34, gap=1),
        lambda: separable(Stepped(0.4, 0.2, 8.0, 1.0), Finite(CRATES), convex=False),
    ),
    "zoo-item46-ramp": (
        lambda: _series(46, history=14, gap=1, horizon=7),
        lambda: separable(newsvendor(0.9), ramp_limits(7, HIGH, 0.1875), ramp=0.1875),
    ),
    "zoo-item18-stock-steps": (
        lambda: _series(18, history=21, gap=0, horizon=7),
        lambda: coupled(
            CarriedStock(start=0.5, buy=1.0, hold=0.3, lost=6.0), Box(0.0, HIGH, dim=7)
        ),
    ),
    "zoo-items-transfer": (
        lambda: _rows(25, 29, 48, 50),
        lambda: coupled(Transfer(short=9.0, spare=3.0, move=1.0), Box(0.0, HIGH, dim=4)),
    ),
}
SALES: dict[str, Callable[[int], Problem]] = {
    name: partial(from_parts, name, SOURCE, parts) for name, parts in _PARTS.items()
}
