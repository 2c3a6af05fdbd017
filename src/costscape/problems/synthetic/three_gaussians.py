"""Pairs whose law is known: a mixture of three Gaussians around linear maps of x.

    x ~ U[-1, 1]^d,   y | x ~ 0.3 N(A_1 x, 0.1 I) + 0.3 N(A_2 x, 0.1 I) + 0.4 N(A_3 x, 0.1 I),

the entries of the maps A_c drawn from U[0, 1] (the paper's Appendix, Synthetic Data).
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from costscape.data.dataset import Dataset, Splits, split

MIXTURE = (0.3, 0.3, 0.4)
VARIANCE = 0.1


@dataclass(frozen=True, eq=False)
class ThreeGaussians:
    """The pairs, and the maps A_c that made them: all there is to know about y given x."""

    splits: Splits
    maps: Float[Tensor, "3 d d"]


def three_gaussians(n: int = 5000, dim: int = 2, seed: int = 0) -> ThreeGaussians:
    """n independent pairs in float32, cut 70 / 15 / 15; the maps depend on dim and seed alone."""
    if n < 1 or dim < 1:
        raise ValueError(f"three_gaussians needs n >= 1 and dim >= 1, but got {n} and {dim}.")
    rng = torch.Generator().manual_seed(seed)
    maps = torch.rand(len(MIXTURE), dim, dim, generator=rng, dtype=torch.float32)
    x = 2 * torch.rand(n, dim, generator=rng, dtype=torch.float32) - 1
    weights = torch.tensor(MIXTURE, dtype=torch.float32)
    which = torch.multinomial(weights, n, replacement=True, generator=rng)
    noise = VARIANCE**0.5 * torch.randn(n, dim, generator=rng, dtype=torch.float32)
    y = torch.einsum("nij,nj->ni", maps[which], x) + noise
    return ThreeGaussians(split(Dataset(x, y), train=0.70, val=0.15), maps)
