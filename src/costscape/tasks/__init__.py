"""What a choice costs: f(y, a) over a feasible set C."""

from costscape.tasks.base import SeparableTask, Task
from costscape.tasks.epidemic import Epidemic, epidemic_state, fit_beta
from costscape.tasks.inventory import inventory
from costscape.tasks.store import by_item, store_inventory
from costscape.tasks.synthetic import MixtureTruth, synthetic_convex, synthetic_nonconvex
from costscape.tasks.vaccine import proportional, vaccine, vaccine_wave
from costscape.tasks.wind import profit, wind_bidding, wind_bidding_with_reserve

__all__ = [
    "Epidemic",
    "MixtureTruth",
    "SeparableTask",
    "Task",
    "by_item",
    "epidemic_state",
    "fit_beta",
    "inventory",
    "profit",
    "proportional",
    "store_inventory",
    "synthetic_convex",
    "synthetic_nonconvex",
    "vaccine",
    "vaccine_wave",
    "wind_bidding",
    "wind_bidding_with_reserve",
]
