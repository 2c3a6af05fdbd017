"""Values of resources that are one cubic of one feature each.

    x_i ~ U[-1, 1],    y_i = 10 x_i^3 - 6.5 x_i,    i = 1..d

The law is that of the task "linear model" of Shah, Wang, Wilder, Perrault and Tambe,
Decision-Focused Learning without Decision-Making: Learning Locally Optimized Decision Losses,
NeurIPS 2022. There is no noise: y is a function of x. The best linear forecast by least squares
has the slope

    E[x y] / E[x^2] = 3 (10 / 5 - 6.5 / 3) = -1/2,

so it ranks the resource with the least x first, whose value is near -3.5, the least there is. A
linear forecast with a positive slope ranks x = 1 first, whose value is 3.5, the most there is.
"""

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from costscape.data import Dataset, Splits


def cubic_values(
    rows: tuple[int, int, int] = (5000, 500, 1000), *, resources: int = 50, seed: int = 0
) -> Splits:
    """Draw features and values of resources.

    Args:
        rows: three ints, default (5000, 500, 1000). Training, validation and test rows.
        resources: int, default 50. Numbers of x, and of y.
        seed: int, default 0. Draws x.

    Returns:
        Splits with x (n, resources) and y (n, resources) in float32.

    >>> data = cubic_values((6, 2, 2), resources=3)
    >>> data.train.x.shape, data.test.y.shape
    (torch.Size([6, 3]), torch.Size([2, 3]))
    """
    rng = Generator().manual_seed(seed)
    x = 2 * torch.rand(sum(rows), resources, generator=rng) - 1
    parts = zip(x.split(rows), cubic(x).split(rows), strict=True)
    return Splits(*(Dataset(*part) for part in parts))


def cubic(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """Return the value of a resource with feature x."""
    return 10 * x**3 - 6.5 * x
