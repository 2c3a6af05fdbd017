"""Inventory as it is run: one item, all items of a store pooled, and the shelf."""

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
from costscape.problems.stock_orders.shelf_sales import bakery_sales, restaurant_sales
from costscape.problems.stock_orders.stock import inventory

# On the rows of the shelf nothing was ever chosen. It has stores 2 to 10 of the sales set, a
# restaurant, and ten bakeries: those of the lowest numbers whose products all sold on nine of ten
# training days.
SHELF = range(2, 11)
BAKERIES = (2, 3, 17, 19, 20, 21, 24, 26, 27, 30)


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


def bakery(seed: int = 0, store: int = 2) -> Problem:
    """The same for the three products of bakery N, such as 2, 3 or 17.

    Those of BAKERIES are in the contest.
    """
    data: PooledSales = read_once(bakery_sales, (store,), None)
    return _stock(data.splits, data.source)


def restaurant(seed: int = 0) -> Problem:
    """Stock of a restaurant's seven dishes for days 7 to 13 ahead, from 14 days, pooled."""
    data: PooledSales = read_once(restaurant_sales, (), None)
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
