"""The store of the demo: six products, one truck a day, five years of real sales.

    f(y, a) = sum_i missing_i (y_i - a_i)+ + spare_i (a_i - y_i)+     a >= 0, sum_i a_i <= truck

a are the pieces ordered for tomorrow, y the pieces asked for. The sales are real; the prices and
the truck are made up. The truck was chosen after looking at test rows, for a limit that matters.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from costscape.data import Dataset
from costscape.methods import Method, SafetyStock
from costscape.problems.stock_orders.sales import daily_sales
from costscape.sets import Box, Budget
from costscape.task import SeparableTask, Task
from costscape.training import Training

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
    week = cut_to_truck(torch.from_numpy(week)).numpy()
    return Store(np.concatenate([windows, weekday], 1), pieces[at], days[at], week)


def cut_to_truck(a: Tensor) -> Tensor:
    """Orders (n, d), those of a day scaled down in proportion where the truck is too small."""
    return a * (0.999 * TRUCK / a.sum(1, keepdim=True)).clamp(max=1.0)  # room for rounding


@dataclass
class StockByProduct(Method):
    """A safety stock for each product by its own prices, then cut to the truck in proportion.

    ``SafetyStock`` on the truck has one level for all products, which is clearly worse.
    """

    task: Task
    training: Training = field(default_factory=Training)
    seed: int = 0

    def _fit(self, train: Dataset, val: Dataset) -> None:
        stock = SafetyStock(store_orders(truck=None), training=self.training, seed=self.seed)
        self.stock_ = stock.fit(train.x, train.y, val=(val.x, val.y))
        self.model_ = stock.model_

    def _decide(self, x: Tensor) -> Tensor:
        return cut_to_truck(self.stock_.decide(x))

    def _facts(self) -> dict[str, Any]:
        raise NotImplementedError("The rule of the demo is not saved.")

    def _rebuild(self, facts: dict[str, Any]) -> nn.Module:
        raise NotImplementedError("The rule of the demo is not saved.")


def store_orders(truck: float | None = TRUCK) -> SeparableTask:
    """Order for tomorrow; None for a truck without a limit."""
    n = len(ITEMS)
    room = Box(0.0, MOST, dim=n) if truck is None else Budget(total=truck, dim=n, upper=MOST)
    return SeparableTask(_cost, room, convex=True)


def _cost(y: Tensor, a: Tensor) -> Tensor:
    missing, spare = (torch.tensor(p, dtype=a.dtype, device=a.device) for p in (MISSING, SPARE))
    return missing * (y - a).relu() + spare * (a - y).relu()
