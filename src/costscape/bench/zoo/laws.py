"""Known laws of y given x: mixtures of m(x) + s(x) e, with e a noise of mean 0 and variance 1.

To add a noise, add its quantile function.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, sqrt

import numpy as np
import torch
from jaxtyping import Float
from scipy.special import stdtrit
from torch import Tensor

from costscape.bench.zoo.mean_maps import Map, MapMaker
from costscape.scenarios import Scenarios

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
class Part:
    """One component: y = mean(x) + spread(x) e, the coordinates of e independent."""

    mean: Map
    spread: Map
    noise: Quantile


@dataclass(frozen=True)
class Law:
    """y comes from parts[k] with probability chances(x)[k] and is clipped to [low, high].

    All coordinates of y come from the same part. ``chances`` None: there is one part.
    """

    parts: tuple[Part, ...]
    low: float
    high: float
    chances: Map | None = None

    def sample(
        self, x: Float[Tensor, "n ..."], dim: int, rng: np.random.Generator
    ) -> Float[Tensor, "n d"]:
        """One outcome for each row of x."""
        x = x.double()
        u = torch.from_numpy(rng.uniform(1e-9, 1 - 1e-9, (len(x), dim)))
        below = torch.from_numpy(rng.uniform(size=(len(x), 1)))
        part = (below > self._chances(x).cumsum(-1)[:, :-1]).sum(-1)
        values = torch.stack([p.mean(x) + p.spread(x) * p.noise(u) for p in self.parts])
        y = values[part, torch.arange(len(x))].clamp(self.low, self.high)
        return y.float()

    def scenarios(self, x: Float[Tensor, "n ..."], u: Float[Tensor, "S d"]) -> Scenarios:
        """The law given each x as weighted outcomes, from S equally likely probabilities u."""
        x = x.double()
        values = [p.mean(x)[:, None] + p.spread(x)[:, None] * p.noise(u)[None] for p in self.parts]
        weights = self._chances(x).repeat_interleave(len(u), -1) / len(u)
        return Scenarios(weights, torch.cat(values, 1).clamp(self.low, self.high), own=True)

    def _chances(self, x: Tensor) -> Tensor:
        return x.new_ones(len(x), 1) if self.chances is None else self.chances(x)


LawMaker = Callable[[np.random.Generator, int], Law]  # (rng, d) -> a law of y in R^d


def one_part(
    mean: MapMaker,
    noise: Quantile,
    spread: float | Map = 0.5,
    low: float = 0.0,
    high: float = 6.0,
) -> LawMaker:
    """y = mean(x) + spread(x) e, with the mean's coefficients drawn from the rng."""

    def make(rng: np.random.Generator, dim: int) -> Law:
        return Law((Part(mean(rng, dim), _as_map(spread), noise),), low, high)

    return make


def two_parts(
    mean: MapMaker,
    other: MapMaker,
    noise: Quantile,
    chance: Map,
    spread: float | Map = 0.3,
    other_spread: float | Map = 0.3,
    high: float = 6.0,
) -> LawMaker:
    """y comes from ``mean`` with probability chance(x), (n, 1), and from ``other`` otherwise."""

    def make(rng: np.random.Generator, dim: int) -> Law:
        parts = (
            Part(mean(rng, dim), _as_map(spread), noise),
            Part(other(rng, dim), _as_map(other_spread), noise),
        )
        return Law(parts, 0.0, high, lambda x: torch.cat([chance(x), 1 - chance(x)], -1))

    return make


def _as_map(spread: float | Map) -> Map:
    if callable(spread):
        return spread
    return lambda x: x.new_full((len(x), 1), spread)
