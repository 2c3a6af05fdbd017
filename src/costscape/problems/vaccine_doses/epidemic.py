"""Where an epidemic stands, read from counts of cases.

A case is counted when it turns infectious. So on day t the infectious are the cases of the last
1 / gamma = 10 days, the exposed those of the next 1 / sigma = 5, the recovered all earlier ones.
Whoever is infected on day t is a case 1 / sigma days later, and the model of beta is

    cases[t + 5, k] ~ Poisson( beta_k S[t, k] I[t, k] / N[k] ),

whose likelihood has one maximum in beta_k, sum_t cases[t + 5, k] / sum_t S I / N, and falls on
both sides of it: the best within bounds is that value moved to the nearer bound.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

LATENT, INFECTIOUS = 5, 10  # days: 1 / sigma, 1 / gamma


@dataclass(frozen=True, eq=False)
class Epidemic:
    """K regions at the start: people, their shares S, E, I, R (4, K), and rates a day.

    ``beta`` is the rate of transmission in each region; 1 / sigma days pass from infection to
    being infectious, 1 / gamma days from there to recovery.
    """

    population: Float[Tensor, "K"]
    shares: Float[Tensor, "4 K"]
    beta: Float[Tensor, "K"]
    sigma: float = 1 / LATENT
    gamma: float = 1 / INFECTIOUS

    def __post_init__(self) -> None:
        K = len(self.population)
        if self.shares.shape != (4, K) or self.beta.shape != (K,):
            raise ValueError(
                f"Epidemic needs shares of shape (4, {K}) and beta of shape ({K},) for "
                f"{K} regions, but got {tuple(self.shares.shape)} and {tuple(self.beta.shape)}. "
                f"The rows of shares are S, E, I, R."
            )
        off = float((self.shares.sum(0) - 1).abs().max())
        if not (off <= 1e-5 and bool((self.shares >= 0).all())):
            raise ValueError(
                f"Epidemic needs shares of S, E, I, R that are not negative and add up to 1 in "
                f"each region, but the sum is off by up to {off:g} and the least share is "
                f"{float(self.shares.min()):g}. Divide people by the region's population."
            )
        rates = (float(self.beta.min()), self.sigma, self.gamma)
        if not (bool((self.population > 0).all()) and min(rates) >= 0):
            raise ValueError(
                f"Epidemic needs people in every region and rates of at least 0, but the least "
                f"population is {float(self.population.min()):g} and the least rates beta, sigma, "
                f"gamma are {rates}."
            )

    def with_beta(self, beta: float | Float[Tensor, "K"]) -> "Epidemic":
        """The same state, with another rate of transmission; a number serves every region."""
        return replace(self, beta=torch.as_tensor(beta).to(self.beta).expand(len(self.beta)))


def epidemic_state(
    cases: Float[np.ndarray, "T K"],
    dates: Sequence[Any] | np.ndarray,
    population: Float[np.ndarray, "K"],
    day: str,
    *,
    beta: Float[np.ndarray, "K"] | float,
    dtype: torch.dtype | None = None,
) -> Epidemic:
    """The state on ``day`` from cumulative cases, one row for each of ``dates``, a day apart.

    Uses the cases of five days after ``day``: the exposed are known only later.
    """
    days = _dates(dates, cases)
    want = np.datetime64(day)
    t = int((want - days[0]).astype(int))
    if not INFECTIOUS <= t < len(days) - LATENT:
        raise ValueError(
            f"The state of {want} needs the cases from {INFECTIOUS} days before to {LATENT} days "
            f"after, but the cases run from {days[0]} to {days[-1]}. Choose a day between "
            f"{days[0] + INFECTIOUS} and {days[-1] - LATENT}."
        )
    parts = _compartments(cases, population)[:, t - INFECTIOUS]
    kind = dtype or torch.get_default_dtype()
    people = torch.as_tensor(population, dtype=kind)
    rate = torch.as_tensor(beta, dtype=kind).expand(len(people)).clone()
    return Epidemic(people, torch.as_tensor(parts / population, dtype=kind), rate)


def fit_beta(
    cases: Float[np.ndarray, "T K"],
    population: Float[np.ndarray, "K"],
    *,
    low: float = 0.01,
    high: float = 0.4,
) -> Float[np.ndarray, "K"]:
    """beta_k of greatest likelihood within [low, high], from cumulative cases day by day.

    A region without cases says nothing about its beta and gets ``low``.
    """
    if len(cases) <= INFECTIOUS + LATENT:
        raise ValueError(
            f"fit_beta needs more than {INFECTIOUS + LATENT} days of cumulative cases, but got "
            f"{len(cases)}."
        )
    S, _, I, _ = _compartments(cases, population)
    exposure = (S * I / population).sum(0)
    # the infections of day t are the cases counted 5 days later
    new = np.diff(cases, axis=0)[INFECTIOUS + LATENT - 1 :].sum(0)
    rate = np.divide(new, exposure, out=np.full(len(new), low), where=exposure > 0)
    return np.asarray(rate.clip(low, high))


def _compartments(cases: np.ndarray, population: np.ndarray) -> np.ndarray:
    """S, E, I, R in people for each day from the tenth to the sixth last."""
    c = np.asarray(cases, dtype=float)
    if c.ndim != 2 or c.shape[1] != len(population) or (np.diff(c, axis=0) < 0).any():
        raise ValueError(
            f"Cumulative cases need one row a day, one column for each of the {len(population)} "
            f"regions, and may not fall, but got shape {c.shape}. Add up daily cases first."
        )
    now = c[INFECTIOUS : len(c) - LATENT]
    E = c[INFECTIOUS + LATENT :] - now
    R = c[: len(now)]
    return np.stack([population - now - E, E, now - R, R])


def _dates(dates: Sequence[Any] | np.ndarray, cases: np.ndarray) -> np.ndarray:
    days = np.asarray(dates, dtype="datetime64[D]")
    if len(days) != len(cases) or (np.diff(days).astype(int) != 1).any():
        raise ValueError(
            f"Each row of cases needs its date, one day after the last, but got {len(days)} "
            f"dates for {len(cases)} rows. Fill missing days first."
        )
    return days
