"""The cost of a shortage and of a surplus, both linear, with prices by coordinate."""

from math import pi, sqrt
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from costscape.sets.validation import Numbers, as_tensors, as_vector, check_dim


class LinearSides(nn.Module):
    """f_i(y, a) = under_i (y_i - a_i)+ + over_i (a_i - y_i)+.

    Args:
        under: prices (d,) of a missing unit.
        over: prices (d,) of a spare unit.
    """

    under: Tensor
    over: Tensor

    def __init__(self, under: Float[Tensor, "d"], over: Float[Tensor, "d"]) -> None:
        super().__init__()
        self.register_buffer("under", under)
        self.register_buffer("over", over)

    def forward(
        self, y: Float[Tensor, "*#batch d"], a: Float[Tensor, "*#batch d"]
    ) -> Float[Tensor, "*batch d"]:
        short = (y - a).relu()
        return self.under * short + self.over * (short - (y - a))

    def mean(self, m: Tensor, s: Tensor, a: Tensor) -> Tensor:
        """The mean for y_i ~ N(m_i, s_i^2), with z = (a - m) / s: the partial moments are
        E (a-y)+ = s (phi + z Phi(z)) and E (y-a)+ = s (phi - z Phi(-z))."""
        z = (a - m) / s
        phi = torch.exp(-(z**2) / 2) / sqrt(2 * pi)
        below, above = torch.special.ndtr(z), torch.special.ndtr(-z)
        mean: Tensor = s * (self.under * (phi - z * above) + self.over * (phi + z * below))
        return mean

    def cvxpy(self, y: Any, a: Any) -> Any:
        """The S costs of outcomes y (S, d) as an expression in the variable a (1, d)."""
        import cvxpy as cp

        under, over = (v.detach().cpu().double().numpy() for v in (self.under, self.over))
        return cp.pos(y - a) @ under + cp.pos(a - y) @ over


class CutOff:
    """The best action in hindsight on a box: y, cut off at 0 and at upper (d,)."""

    def __init__(self, upper: Float[Tensor, "d"]) -> None:
        self.upper = upper

    def __call__(self, y: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
        return torch.minimum(y.clamp(min=0.0), self.upper.to(y))


def prices(owner: str, dim: int | None, **values: Numbers) -> dict[str, Tensor]:
    """Finite prices >= 0 as vectors of one length.

    Args:
        owner: the function whose arguments the prices are.
        dim: the length; None for that of the longest price.
        **values: a number or a vector each.
    """
    tensors = dict(zip(values, as_tensors(owner, **values), strict=True))
    if dim is None:
        dim = max(v.numel() for v in tensors.values())
    check_dim(owner, dim)
    for name, price in tensors.items():
        if not (price.isfinite() & (price >= 0)).all():
            raise ValueError(
                f"{owner} needs finite prices >= 0, but {name} has {float(price.min()):g}. A cost "
                f"is positive: drop the sign, or write your own SeparableTask."
            )
    return {name: as_vector(owner, name, price, dim) for name, price in tensors.items()}
