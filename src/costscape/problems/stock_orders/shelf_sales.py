"""Daily sales of bakeries and of a restaurant, on whose rows nothing was ever chosen.

    x = s[t-14:t],   y = s[t+7:t+14],   s = sales / mean sales of the training days

as ``sales`` has them, so that the recipe of the stores serves unchanged.
"""

from pathlib import Path

import numpy as np

from costscape.problems.stock_orders.sales import PooledSales, pool

EMBEDDED = Path(__file__).parents[1] / "embedded"
SOURCE = "ddop2, Apache-2.0, embedded"


def bakery_sales(store: int = 2) -> PooledSales:
    """Sales of a bakery's three products, 2016-01-02 to 2019-04-30, each over its training mean.

    ``store`` is one of the 35 numbers of the source, which has no names; its products are 101, 109
    and 110. Bakeries 5 and 22 opened after the training days, so they are refused.

    >>> bakery_sales(store=2).items
    (101, 109, 110)
    """
    with np.load(EMBEDDED / "bakery_sales.npz") as file:
        stores, products = file["stores"].tolist(), file["products"].tolist()
        if store not in stores:
            raise ValueError(
                f"The bakeries have the numbers {stores}, but got {store!r}. Name one of them."
            )
        sold, start = file["sold"][stores.index(store)], str(file["start"])
    return _pool(sold, start, products, f"sales of bakery {store}, 3 products pooled")


def restaurant_sales() -> PooledSales:
    """Sales of a restaurant's seven dishes, 2013-10-04 to 2015-11-07, each over its training mean.

    >>> restaurant_sales().items
    ('calamari', 'fish', 'shrimp', 'chicken', 'koefte', 'lamb', 'steak')
    """
    with np.load(EMBEDDED / "restaurant_sales.npz") as file:
        sold, start, dishes = file["sold"], str(file["start"]), file["dishes"].tolist()
    return _pool(sold, start, dishes, "sales of the restaurant YAZ, 7 dishes pooled")


def _pool(sold: np.ndarray, start: str, names: list[int | str], words: str) -> PooledSales:
    days = np.datetime64(start) + np.arange(sold.shape[1])
    source = f"{words}, {days[0]} to {days[-1]}, {SOURCE}"
    return pool(days, sold.T.astype(np.float64), names, source)
