"""What a choice costs: f(y, a) over a feasible set C."""

from costscape.tasks.base import SeparableTask, Task
from costscape.tasks.inventory import inventory
from costscape.tasks.store import by_item, store_inventory
from costscape.tasks.synthetic import MixtureTruth, synthetic_convex, synthetic_nonconvex
from costscape.tasks.wind import profit, wind_bidding, wind_bidding_with_reserve

__all__ = [
    "MixtureTruth",
    "SeparableTask",
    "Task",
    "by_item",
    "inventory",
    "profit",
    "store_inventory",
    "synthetic_convex",
    "synthetic_nonconvex",
    "wind_bidding",
    "wind_bidding_with_reserve",
]
