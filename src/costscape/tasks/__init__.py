"""What a choice costs: f(y, a) over a feasible set C."""

from costscape.tasks.base import SeparableTask, Task
from costscape.tasks.inventory import inventory
from costscape.tasks.synthetic import MixtureTruth, synthetic_convex, synthetic_nonconvex
from costscape.tasks.wind import profit, wind_bidding

__all__ = [
    "MixtureTruth",
    "SeparableTask",
    "Task",
    "inventory",
    "profit",
    "synthetic_convex",
    "synthetic_nonconvex",
    "wind_bidding",
]
