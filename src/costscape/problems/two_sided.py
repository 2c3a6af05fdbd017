"""The cost of being short and of being spare, and its mean under a normal law."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite, pi, sqrt
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True)
class TwoSided:
    """short (y-a)+ + spare (a-y)+ + short_squared (y-a)+^2 + spare_squared (a-y)+^2 + cubic a^3.

    One coordinate's cost, and its mean and slope when y ~ N(m, s^2). With z = (a - m) / s and the
    standard normal's density phi and distribution Phi, the partial moments are

        E (a-y)+   = s (phi + z Phi),             E (y-a)+   = E (a-y)+ - s z,
        E (a-y)+^2 = s^2 ((1+z^2) Phi + z phi),   E (y-a)+^2 = s^2 (1+z^2) - E (a-y)+^2,

    each written below without the difference, which would cancel in the tails.
    """

    short: float
    spare: float
    short_squared: float
    spare_squared: float
    cubic: float = 0.0

    def __call__(
        self, y: Float[Tensor, "*#batch d"], a: Float[Tensor, "*#batch d"]
    ) -> Float[Tensor, "*batch d"]:
        r = y - a
        short = r.relu()  # a relu's slope is quicker to compute than a clamp's
        spare = short - r
        cost = _part(short, self.short, self.short_squared)
        cost = cost + _part(spare, self.spare, self.spare_squared)
        return cost + self.cubic * a**3 if self.cubic else cost

    def mean(self, m: Tensor, s: Tensor | float, a: Tensor) -> Tensor:
        z = (a - m) / s
        phi, below, above = standard_normal(z)
        linear = self.short * (phi - z * above) + self.spare * (phi + z * below)
        squared = self.short_squared * ((1 + z**2) * above - z * phi) + self.spare_squared * (
            (1 + z**2) * below + z * phi
        )
        return s * linear + s**2 * squared + self.cubic * a**3

    def slope(self, m: Tensor, s: float, a: Tensor) -> Tensor:
        """d mean / d a."""
        z = (a - m) / s
        phi, below, above = standard_normal(z)
        linear = self.spare * below - self.short * above
        squared = self.spare_squared * (phi + z * below) - self.short_squared * (phi - z * above)
        return linear + 2 * s * squared + 3 * self.cubic * a**2

    def cvxpy_terms(self, y: Any, a: Any) -> Any:
        """The cost for cvxpy, without a^3, which is not convex."""
        import cvxpy as cp

        short, spare = cp.pos(y - a), cp.pos(a - y)
        terms = self.short * short + self.spare * spare
        return (
            terms + self.short_squared * cp.square(short) + self.spare_squared * cp.square(spare)
        )

    def cvxpy(self, y: Any, a: Any) -> Any:
        import cvxpy as cp

        return cp.sum(self.cvxpy_terms(y, a), axis=1)


def check_prices(owner: str, prices: Mapping[str, float]) -> None:
    """Raise an error for a price below 0 or not finite, for which hindsight is not optimal.

    - ``owner``: the function whose arguments the prices are, named in the error.
    - ``prices``: each price by its argument's name.
    """
    for name, price in prices.items():
        if not (isfinite(price) and price >= 0):
            raise ValueError(
                f"{owner} needs finite prices >= 0, but {name} is {price}. A cost is positive: "
                f"drop the sign, or write your own SeparableTask."
            )


def _part(v: Tensor, linear: float, squared: float) -> Tensor:
    return v * (linear + squared * v) if squared else linear * v


def standard_normal(z: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The standard normal's density at z, and its mass below and above z."""
    density = torch.exp(-(z**2) / 2) / sqrt(2 * pi)
    return density, torch.special.ndtr(z), torch.special.ndtr(-z)
