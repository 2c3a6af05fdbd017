"""Choose one of d resources before their values are known.

f(y, a) = -sum_i y_i a_i,    a one of the d unit vectors
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from costscape.sets import Finite
from costscape.task import SeparableTask


def top_one(resources: int = 50) -> SeparableTask:
    """Maximise the value of one resource out of d; ``Exhaustive`` decides, exactly.

    Args:
        resources: int >= 1, default 50. The number d of resources.

    Returns:
        A SeparableTask on a Finite set, the d unit vectors. A cost is minus a value.

    >>> task = top_one(3)
    >>> task.hindsight(torch.tensor([0.1, 2.0, -1.0]))
    tensor([0., 1., 0.])
    """
    return SeparableTask(
        _minus_values,
        Finite(torch.eye(resources)),
        convex=True,
        hindsight=_most_valuable,
        cvxpy=_minus_value,
        normal=_mean_of_minus_values,
    )


def _minus_values(y: Tensor, a: Tensor) -> Tensor:
    return -y * a


def _mean_of_minus_values(m: Tensor, s: Tensor, a: Tensor) -> Tensor:
    return -m * a  # a linear cost depends on the mean only


def _minus_value(y: Any, a: Any) -> Any:
    return -y @ a[0]


def _most_valuable(y: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
    best = y.argmax(-1, keepdim=True)
    return torch.zeros_like(y).scatter(-1, best, 1.0)
