"""The store of the demo: six products, one truck a day, five years of real sales.

    f(y, a) = sum_i missing_i (y_i - a_i)+ + spare_i (a_i - y_i)+     a >= 0, sum_i a_i <= truck

a are the pieces ordered for tomorrow, y the pieces asked for. The sales are real; the prices and
the truck are made up.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from costscape.problems.stock_orders.sales import daily_sales
from costscape.sets import Box, Budget
from costscape.task import SeparableTask

ITEMS = (1, 2, 3, 4, 5, 6)
MISSING = (4.0, 2.0, 6.0, 1.5, 3.0, 2.5)  # euros a piece that is asked for and not there
SPARE = (1.0, 1.5, 0.5, 1.0, 2.0, 1.0)  # euros a piece that is left over
TRUCK = 255.0  # pieces a day, 1.3 times the mean sales
MOST = 160.0  # pieces of one product
HISTORY = 14


@dataclass(frozen=True, eq=False)
class Store:
    """Rows in order of time: ``x`` (n, 91), ``y`` (n, 6), ``dates`` (n,).

    ``last_week`` is what people do: the sales of the same weekday, cut to the truck in proportion.
    """

    x: np.ndarray
    y: np.ndarray
    dates: np.ndarray
    last_week: np.ndarray


def store(every: int = 1) -> Store:
    """The last 14 days and the weekday as features; every k-th day."""
    days, pieces = daily_sales(ITEMS)
    at = np.arange(HISTORY, len(days), every)
    windows = np.stack([pieces[t - HISTORY : t].ravel() for t in at])
    weekday = np.eye(7)[days[at].astype(int) % 7]
    week = pieces[at - 7]
    week = week * np.minimum(1.0, 0.999 * TRUCK / week.sum(1, keepdims=True))
    return Store(np.concatenate([windows, weekday], 1), pieces[at], days[at], week)


def store_orders(truck: float | None = TRUCK) -> SeparableTask:
    """Order for tomorrow; None for a truck without a limit."""
    n = len(ITEMS)
    room = Box(0.0, MOST, dim=n) if truck is None else Budget(total=truck, dim=n, upper=MOST)
    return SeparableTask(_cost, room, convex=True)


def _cost(y: Tensor, a: Tensor) -> Tensor:
    missing, spare = (torch.tensor(p, dtype=a.dtype, device=a.device) for p in (MISSING, SPARE))
    return missing * (y - a).relu() + spare * (a - y).relu()
