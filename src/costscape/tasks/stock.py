"""Orders before the demand is known: a missing piece and a spare piece have a price each."""

from torch import Tensor

from costscape.chance import Chance
from costscape.sets import Box, Budget, Whole
from costscape.sets.constraint_set import Polyhedral
from costscape.sets.validation import Numbers
from costscape.task import SeparableTask
from costscape.tasks.linear_sides import CutOff, LinearSides, prices


def newsvendor(
    under: Numbers,
    over: Numbers,
    *,
    capacity: float | None = None,
    upper: Numbers | None = None,
    pack: Numbers | None = None,
    service: float | None = None,
    dim: int | None = None,
) -> SeparableTask:
    """Order a_i pieces of each product (or for each day) before the demand y_i is known.

        f(y, a) = sum_i under_i (y_i - a_i)+ + over_i (a_i - y_i)+
        C = {a : 0 <= a_i <= upper_i, sum_i a_i <= capacity, a_i a multiple of pack_i}

    Args:
        under: a number or a vector (d,). The cost of a missing piece, such as lost profit.
        over: a number or a vector (d,). The cost of a spare piece, such as waste.
        capacity: float, default None. The most pieces in all.
        upper: a number or a vector (d,), default None. The most pieces of each product. One of
            capacity and upper is needed.
        pack: a number or a vector (d,), default None. Pieces in a pack: orders are whole packs.
        service: float in (0, 1), default None. The least probability with which the order of each
            product covers its demand; decisions keep it, see ``Chance``.
        dim: int, default None. d, where all prices are numbers.

    For one product without limits the best order is the under / (under + over) quantile of the
    demand. With neither capacity nor pack, the best order in hindsight is y, cut off at upper.

    >>> import costscape as cs
    >>> import torch
    >>> task = cs.newsvendor(under=[2.0, 3.0], over=[0.5, 1.0], capacity=150, pack=[12, 6])
    >>> task.cost(torch.tensor([30.0, 9.0]), torch.tensor([24.0, 12.0]))
    tensor(15.)
    """
    price = prices("newsvendor", dim, under=under, over=over)
    cost = LinearSides(**price)
    d = len(price["under"])
    if capacity is None and upper is None:
        raise ValueError(
            "newsvendor needs capacity=, the most pieces in all, or upper=, the most of each "
            "product, since actions are sampled between bounds, but got neither. Pass a number "
            "well above the largest demand."
        )
    limited: Polyhedral
    if capacity is not None:
        limited = Budget(total=capacity, dim=d, upper=upper)
    else:
        assert upper is not None
        limited = Box(0.0, upper, dim=d)
    plain = capacity is None and pack is None
    return SeparableTask(
        cost,
        limited if pack is None else Whole(limited, pack),
        convex=True,
        hindsight=CutOff(limited.bounds[1]) if plain else None,
        cvxpy=cost.cvxpy,
        normal=cost.mean,
        chance=None if service is None else Chance(_missing, service),
    )


def _missing(y: Tensor, a: Tensor) -> Tensor:
    return y - a
