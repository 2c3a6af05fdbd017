"""Costs of edges that are a power of a linear map of x, times noise.

    x ~ N(0, I_p),    y_e = (((B x)_e / sqrt(p) + 3)^degree + 1) / 3.5^degree * u_e

with entries of B that are 0 or 1 with equal chance, and u_e ~ U[1 - noise, 1 + noise]. The law is
that of Elmachtoub and Grigas, Management Science 2022, section 6; the divisor 3.5^degree is
PyEPO's (Tang and Khalil, Mathematical Programming Computation 2024). A linear forecast of y is
right for degree 1, and the more wrong the higher the degree.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Generator, Tensor, nn

from costscape.data import Dataset, Splits
from costscape.sets import Finite


@dataclass(frozen=True, eq=False)
class EdgeCosts:
    """Pairs x (n, p), y (n, edges) in float32, and the map B (edges, p) behind them."""

    splits: Splits
    map: Float[Tensor, "e p"]


def edge_costs(
    rows: tuple[int, int, int] = (1000, 250, 1000),
    *,
    edges: int = 40,
    features: int = 5,
    degree: int = 4,
    noise: float = 0.5,
    seed: int = 0,
) -> EdgeCosts:
    """Draw features and costs of edges.

    Args:
        rows: three ints, default (1000, 250, 1000). Training, validation and test rows.
        edges: int, default 40. Numbers of y; 40 for a grid of 5 x 5 nodes.
        features: int, default 5. Numbers of x.
        degree: int >= 1, default 4. The power.
        noise: float in [0, 1), default 0.5. Half the width of the noise.
        seed: int, default 0. Draws B, x and the noise.

    >>> data = edge_costs((6, 2, 2), edges=4)
    >>> data.splits.train.x.shape, data.splits.test.y.shape
    (torch.Size([6, 5]), torch.Size([2, 4]))
    """
    if degree < 1 or not 0 <= noise < 1:
        raise ValueError(
            f"edge_costs needs degree >= 1 and noise in [0, 1), but got degree {degree} and noise "
            f"{noise:g}. With noise of 1 an edge may cost nothing."
        )
    rng = Generator().manual_seed(seed)
    table = torch.bernoulli(torch.full((edges, features), 0.5), generator=rng)
    x = torch.randn(sum(rows), features, generator=rng)
    u = 1 + noise * (2 * torch.rand(sum(rows), edges, generator=rng) - 1)
    parts = zip(x.split(rows), (mean_costs(table, degree, x) * u).split(rows), strict=True)
    return EdgeCosts(Splits(*(Dataset(*part) for part in parts)), table)


def mean_costs(
    table: Float[Tensor, "e p"], degree: int, x: Float[Tensor, "*batch p"]
) -> Float[Tensor, "*batch e"]:
    """Return E[y | x], the formula above without its noise, whose mean is 1."""
    linear = x @ table.to(x).T / x.shape[-1] ** 0.5
    costs: Tensor = ((linear + 3) ** degree + 1) / 3.5**degree
    return costs


class PathTruth(nn.Module):
    """Computes how much more a path costs on average than the best path for x.

    Args:
        paths: Finite. All paths.
        table: (edges, p). The map B of ``edge_costs``.
        degree: int. The power.
    """

    table: Tensor
    actions: Tensor

    def __init__(self, paths: Finite, table: Float[Tensor, "e p"], degree: int) -> None:
        super().__init__()
        self.degree = degree
        # the set itself would be moved, under the task's feet, when the truth changes device
        self.register_buffer("actions", paths.actions)
        self.register_buffer("table", table)

    def gap(self, x: Float[Tensor, "B p"], a: Float[Tensor, "B e"]) -> Float[Tensor, "B"]:
        """Return E[f(y, a) | x] - min over all paths of the same."""
        m = mean_costs(self.table, self.degree, x.double())
        least = (m @ self.actions.to(m).T).amin(-1)
        return (m * a).sum(-1) - least
