"""A budget that is shared among groups before their needs are known."""

from costscape.sets import Simplex, Whole
from costscape.sets.validation import Numbers
from costscape.task import SeparableTask
from costscape.tasks.linear_sides import LinearSides, prices


def allocation(
    unmet: Numbers,
    idle: Numbers = 0.0,
    *,
    budget: float = 1.0,
    unit: Numbers | None = None,
    dim: int | None = None,
) -> SeparableTask:
    """Give a_i of a budget to each group before the need y_i is known; all of it is given.

        f(y, a) = sum_i unmet_i (y_i - a_i)+ + idle_i (a_i - y_i)+,   a >= 0, sum_i a_i = budget

    Args:
        unmet: a number or a vector (d,). The cost of a unit of need that is not met.
        idle: a number or a vector (d,), default 0. The cost of a unit that a group does not need.
        budget: float, default 1: a is the shares.
        unit: a number or a vector (d,), default None. Whole multiples of it are given.
        dim: int, default None. d, where all prices are numbers.

    If not all needs to be given, use ``newsvendor`` with ``capacity``.

    >>> import costscape as cs
    >>> import torch
    >>> task = cs.allocation(unmet=[3.0, 1.0], budget=10.0)
    >>> task.cost(torch.tensor([8.0, 6.0]), torch.tensor([6.0, 4.0]))
    tensor(8.)
    """
    price = prices("allocation", dim, unmet=unmet, idle=idle)
    cost = LinearSides(price["unmet"], price["idle"])
    base = Simplex(total=budget, dim=len(price["unmet"]))
    return SeparableTask(
        cost,
        base if unit is None else Whole(base, unit),
        convex=True,
        cvxpy=cost.cvxpy,
        normal=cost.mean,
    )
