"""Ridge regression with one decomposition for all penalties, and its leave-one-out residuals.

    B = argmin_B  sum_i |t_i - c - B z_i|^2 + n ridge |B|^2,        c not penalised
    Z - mean = U diag(s) V^T,    B = V diag(s / (s^2 + n ridge)) U^T (t - mean)
    h_ii = 1 / n + sum_k U_ik^2 s_k^2 / (s_k^2 + n ridge)

The residual of row i, by the fit without row i at the same n ridge, is e_i / (1 - h_ii).
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

LEAST = 1e-12  # of 1 - h_ii, which is 0 up to rounding where a row is fitted exactly


@dataclass(frozen=True, eq=False)
class Line:
    """t = z @ weight + bias, with the residuals and the leverages h_ii of the fitted rows."""

    weight: Float[Tensor, "p q"]
    bias: Float[Tensor, "q"]
    residuals: Float[Tensor, "n q"]
    leverage: Float[Tensor, "n"]

    def left_out(self) -> Float[Tensor, "n q"]:
        """The residual of each row by the fit without that row."""
        return self.residuals / (1 - self.leverage).clamp(min=LEAST)[:, None]


class RidgePath:
    """Ridge regressions of any targets on the features z, in double precision.

    Args:
        z: features (n, p). They are centred here; scale them before.

    Cost: one singular value decomposition, n p min(n, p), then n min(n, p) q for each fit of q
    targets.
    """

    def __init__(self, z: Float[Tensor, "n p"]) -> None:
        self.z = z.double()
        self.mean = self.z.mean(0)
        self.u, self.s, self.vt = torch.linalg.svd(self.z - self.mean, full_matrices=False)

    def fit(self, t: Float[Tensor, "n q"], ridge: float) -> Line:
        """The regression of the targets t with this penalty."""
        t = t.double()
        centre, n = t.mean(0), len(t)
        shrunk = self.s / (self.s.square() + n * ridge)
        weight = self.vt.T @ (shrunk[:, None] * (self.u.T @ (t - centre)))
        bias = centre - self.mean @ weight
        leverage = 1 / n + self.u.square() @ (shrunk * self.s)
        return Line(weight, bias, t - self.z @ weight - bias, leverage)
