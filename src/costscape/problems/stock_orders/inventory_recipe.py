"""Inventory as it is run: one item, or all items of a store pooled."""

import os

import numpy as np

from costscape.data import Splits
from costscape.models import LSTM
from costscape.problems.files.sources import VARIABLE
from costscape.problems.problem import Problem, fixed_epochs, read_once
from costscape.problems.stock_orders.sales import (
    GAP,
    HISTORY,
    HORIZON,
    PooledSales,
    Sales,
    pooled_sales,
    sales,
)
from costscape.problems.stock_orders.stock import inventory

SHELF = range(2, 11)  # stores on whose rows nothing was ever chosen


def one_item(seed: int = 0, item: int = 1) -> Problem:
    """Stock of one item for days 7 to 13 ahead, from 14 days (the same for every seed)."""
    data: Sales = read_once(sales, (item,), os.environ.get(VARIABLE))
    return _stock(data.splits, data.source)


def whole_store(seed: int = 0) -> Problem:
    """The same for all items of a store, each in its own mean sales, pooled."""
    data: PooledSales = read_once(pooled_sales, (), os.environ.get(VARIABLE))
    return _stock(data.splits, data.source)


def shelf_store(seed: int = 0, store: int = 2) -> Problem:
    """All items of store N, 2 to 10; inventory-store is store 1.

    Nothing is chosen on these rows: a method runs here once all is decided.
    """
    if store not in SHELF:
        raise ValueError(
            f"The shelf has the stores {SHELF[0]} to {SHELF[-1]}, but got {store}. Store 1 is the "
            f"problem inventory-store."
        )
    data: PooledSales = read_once(pooled_sales, (store,), os.environ.get(VARIABLE))
    return _stock(data.splits, data.source)


def _stock(data: Splits, source: str) -> Problem:
    return Problem(
        data=data,
        task=inventory(),
        encoder=LSTM,
        training=fixed_epochs(200),
        points=230,
        variances=(0.05, 0.1, 0.2),
        source=source,
        reach=np.timedelta64(HISTORY + GAP + HORIZON, "D"),
    )
