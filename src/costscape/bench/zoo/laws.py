"""Laws of y given x: m(x) + s(x) e, or a mixture of two of them; e has mean 0 and variance 1.

To add a noise e, add its quantile function.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, sqrt

import numpy as np
import torch
from jaxtyping import Float
from scipy.special import stdtrit
from torch import Tensor

from costscape.bench.zoo.maps import Map, MapMaker

Quantile = Callable[[Tensor], Tensor]  # probabilities in (0, 1) -> values of the noise
SIGMA = 0.8  # of the logarithm of the lognormal noise
TAIL = 3.0  # index of the Pareto noise


def gaussian(u: Tensor) -> Tensor:
    z: Tensor = torch.special.ndtri(u)
    return z


def lognormal(u: Tensor) -> Tensor:
    mean = exp(SIGMA**2 / 2)
    return ((SIGMA * gaussian(u)).exp() - mean) / (mean * sqrt(exp(SIGMA**2) - 1))


def student(u: Tensor) -> Tensor:
    """Student's t with 3 degrees of freedom."""
    return torch.from_numpy(np.asarray(stdtrit(3.0, u.numpy()))) / sqrt(3.0)


def pareto(u: Tensor) -> Tensor:
    mean = TAIL / (TAIL - 1)
    return ((1 - u) ** (-1 / TAIL) - mean) / sqrt(TAIL / (TAIL - 2) - mean**2)


@dataclass(frozen=True)
class Law:
    """y = mean(x) + spread(x) e, the coordinates of e independent, clipped to [low, high].

    With a ``chance`` (n, 1) of x there are two means and spreads, and all coordinates of a row
    come from the first of them with that chance.
    """

    means: tuple[MapMaker, ...]
    noise: Quantile
    spreads: tuple[float | Map, ...] = (0.5,)
    chance: Map | None = None
    low: float = 0.0
    high: float = 6.0

    def sample(
        self, maps: list[Map], x: Float[Tensor, "n ..."], dim: int, rng: np.random.Generator
    ) -> Float[Tensor, "n d"]:
        """One outcome for each row of x; ``maps`` are the means with their coefficients."""
        x = x.double()
        u = torch.from_numpy(rng.uniform(1e-9, 1 - 1e-9, (len(x), dim)))
        below = torch.from_numpy(rng.uniform(size=(len(x), 1)))
        parts = [
            mean(x) + (spread(x) if callable(spread) else spread) * self.noise(u)
            for mean, spread in zip(maps, self.spreads, strict=True)
        ]
        y = parts[0]
        if self.chance is not None:
            y = torch.where(below > self.chance(x), parts[1], y)
        return y.clamp(self.low, self.high).float()
