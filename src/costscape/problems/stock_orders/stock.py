"""Stock for an uncertain demand: under-buying costs more than over-buying."""

from functools import partial

import torch

from costscape.problems.two_sided import TwoSided, check_prices
from costscape.sets.box import Box
from costscape.task import SeparableTask


def inventory(
    days: int = 7, under: float = 20.0, over: float = 5.0, cap: float = 3.0
) -> SeparableTask:
    """f(y, a) = sum_i under (y_i - a_i)+ + over (a_i - y_i)+ + (a_i - y_i)^2 on 0 <= a <= cap.

    Defaults are the paper's (Appendix, Inventory Optimization).
    """
    check_prices("inventory", {"under": under, "over": over})
    cost = TwoSided(short=under, spare=over, short_squared=1.0, spare_squared=1.0, cubic=0.0)
    box = Box(0.0, cap, dim=days)
    return SeparableTask(
        cost,
        box,
        convex=True,
        hindsight=partial(torch.clip, min=0.0, max=float(box.upper[0])),
        cvxpy=cost.cvxpy,
        normal=cost.mean,
    )
