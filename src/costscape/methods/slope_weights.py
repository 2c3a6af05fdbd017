"""Weights of candidates by the slopes of their expected costs on held-out rows."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from costscape.methods.selection import HeldOut, Selection
from costscape.sets import Simplex


@dataclass(frozen=True)
class SlopeWeights(Selection):
    """Minimises the held-out slopes loss, a quadratic in the weights.

        min_w  mean_i int ( sum_c w_c dg_c/da (x_i, a) - df/da (y_i, a) )^2 da

    Better than ``Greedy`` where f is convex and rows are few; misled by jumps of f.

    Args:
        steps: int, default 2000. The most steps of accelerated projected gradients.

    >>> SlopeWeights(steps=500)
    SlopeWeights(steps=500)
    """

    steps: int = 2000

    def weights(self, parts: Sequence[HeldOut]) -> Float[Tensor, "K"]:
        size = parts[0].expected.shape[1]
        A, b = torch.zeros(size, size, dtype=torch.float64), torch.zeros(size, dtype=torch.float64)
        for part in parts:
            g, f = _slopes(part)
            A, b = A + (g @ g.T).cpu(), b + (g @ f).cpu()
        return on_simplex(A, b, self.steps)


def _slopes(part: HeldOut) -> tuple[Float[Tensor, "K m"], Float[Tensor, "m"]]:
    """Root-weighted slopes of each candidate and of the observed costs, in one row each."""
    a, g, f = part.action, part.expected, part.observed
    if g.shape[-1] == a.shape[-1]:
        apart = a.diff(dim=1).clamp(min=1e-9).sqrt()
        g, f = g.diff(dim=2) / apart.unsqueeze(1), f.diff(dim=1) / apart
    else:
        g, f = g - g.mean(2, keepdim=True), f - f.mean(1, keepdim=True)
    return g.transpose(0, 1).flatten(1).double(), f.flatten().double()


def on_simplex(A: Float[Tensor, "K K"], b: Float[Tensor, "K"], steps: int) -> Float[Tensor, "K"]:
    """argmin over the simplex of w' A w - 2 b' w, by accelerated projected gradients.

    It stops after ``steps``, or once Frank and Wolfe's gap, a bound on what is left to gain, is
    1e-12 of the largest eigenvalue of A.
    """
    C = Simplex(dim=len(b)).to(A)
    largest = torch.linalg.eigvalsh(A)[-1].clamp(min=1e-30)
    w = torch.full_like(b, 1 / len(b))
    ahead = w
    for k in range(steps):
        slope = 2 * (A @ w - b)
        if slope @ w - slope.min() <= 1e-12 * largest:
            break
        new = C.project(ahead - 0.5 / largest * 2 * (A @ ahead - b))
        ahead = new + k / (k + 3) * (new - w)
        w = new
    return w
