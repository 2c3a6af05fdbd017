"""Stock for an uncertain demand: under-buying costs more than over-buying."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from costscape.sets.box import Box
from costscape.tasks.base import SeparableTask
from costscape.tasks.prices import check_prices


def inventory(
    days: int = 7, under: float = 20.0, over: float = 5.0, cap: float = 3.0
) -> SeparableTask:
    """f(y, a) = sum_i under (y_i - a_i)+ + over (a_i - y_i)+ + (a_i - y_i)^2 on 0 <= a <= cap.

    Defaults are the paper's (Appendix, Inventory Optimization).
    """
    stock = _Stock(under, over)
    return SeparableTask(
        stock,
        Box(0.0, cap, dim=days),
        convex=True,
        hindsight=partial(torch.clip, min=0.0, max=cap),
        cvxpy=stock.cvxpy,
    )


@dataclass(frozen=True)
class _Stock:
    """A class, not a closure, so that the task can be pickled."""

    under: float
    over: float

    def __post_init__(self) -> None:
        check_prices("inventory", vars(self))

    def __call__(
        self, y: Float[Tensor, "*#batch d"], a: Float[Tensor, "*#batch d"]
    ) -> Float[Tensor, "*batch d"]:
        short, spare = (y - a).clamp(min=0), (a - y).clamp(min=0)
        return self.under * short + self.over * spare + (a - y) ** 2

    def cvxpy(self, y: Any, a: Any) -> Any:
        import cvxpy as cp

        terms = self.under * cp.pos(y - a) + self.over * cp.pos(a - y) + cp.square(a - y)
        return cp.sum(terms, axis=1)
