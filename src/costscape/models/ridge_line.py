"""The linear map L from x to y that a network of outcomes starts from: ridge regression.

    L = argmin_L  sum_i |t_i - c - L z_i|^2 + n penalty |L|^2,        c not penalised

The penalty is that of least generalised cross-validation, n RSS / (n - 1 - degrees of freedom)^2
(Golub, Heath and Wahba, 1979).

A map of many numbers is L = M P with P (64, k) and M (m, 64): the fitted values keep the 64
directions in which they vary most (reduced-rank regression, Izenman, 1975). P is not learned
further, since a step of Adam moves all its numbers alike, and many of them together move y far.
Where x has more than 1,000 numbers, at most 2,000 rows are used, evenly spread.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

WIDEST = 1000  # numbers of x for a map that is learned whole
LARGEST = 20_000  # numbers of such a map
RANK = 64  # of a larger one
MOST_ROWS = 2000  # where x is wider: beyond, the decomposition would take minutes
PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)  # for each row
ROUNDING = 1e-12  # of the largest eigenvalue: what counts as none


class Ridge(NamedTuple):
    """A regression in the r directions of z that vary: with z - mean = U diag(sizes) V^T.

    Its slopes are V diag(1 / sizes) fitted, and its fitted values U fitted.
    """

    mean_z: Float[Tensor, "k"]
    mean_t: Float[Tensor, "m"]
    directions: Float[Tensor, "k r"]  # V
    sizes: Float[Tensor, "r"]
    fitted: Float[Tensor, "r m"]


def line_from(z: Float[Tensor, "n k"], t: Float[Tensor, "n m"]) -> nn.Module:
    """The map z -> t of ridge regression: a linear layer, or a fixed and a learned one.

    Args:
        z: standardised features of the training rows, (n, k).
        t: standardised outcomes, (n, m).

    Cost: an eigendecomposition of size k, or of 2,000 for a wider x, and n k (k + m).
    """
    k, m = z.shape[1], t.shape[1]
    if k > WIDEST and len(z) > MOST_ROWS:
        some = torch.linspace(0, len(z) - 1, MOST_ROWS, dtype=torch.float64).round().long()
        z, t = z[some.to(z.device)], t[some.to(z.device)]
    n = len(z)
    fit = ridge(z.double(), t.double())
    if k <= WIDEST and k * m <= LARGEST:
        slopes = fit.directions @ (fit.fitted / fit.sizes[:, None])
        return _layer(slopes, fit.mean_t - fit.mean_z @ slopes, z)
    values, vectors = torch.linalg.eigh(fit.fitted @ fit.fitted.T)
    most = vectors[:, values.argsort(descending=True)[:RANK]]  # (r, at most 64)
    into = n**0.5 * fit.directions @ (most / fit.sizes[:, None])  # numbers of deviation 1
    out = most.T @ fit.fitted / n**0.5
    into, out = (
        nn.functional.pad(into, (0, RANK - into.shape[1])),
        nn.functional.pad(out, (0, 0, 0, RANK - len(out))),
    )
    fixed = _layer(into, -fit.mean_z @ into, z).requires_grad_(False)
    return nn.Sequential(fixed, _layer(out, fit.mean_t, z))


def ridge(z: Float[Tensor, "n k"], t: Float[Tensor, "n m"]) -> Ridge:
    """The regression with the best of six penalties, from 1e-4 to 10 for each row."""
    n, k = z.shape
    mean_z, mean_t = z.mean(0), t.mean(0)
    z, t = z - mean_z, t - mean_t
    values, vectors = torch.linalg.eigh(z.T @ z if k <= n else z @ z.T)
    there = values > ROUNDING * values.max()
    values, vectors = values[there], vectors[:, there]
    sizes = values.sqrt()
    directions = vectors if k <= n else z.T @ (vectors / sizes)
    along = (z @ directions).T @ t / sizes[:, None]  # U^T t, (r, m)
    total = t.square().sum()
    best, shrink = float("inf"), torch.zeros_like(values)
    for penalty in PENALTIES:
        kept = values / (values + penalty * n)
        rss = total - (along.square() * (kept * (2 - kept))[:, None]).sum()
        score = float(rss / (n - 1 - kept.sum()).clamp(min=1e-9) ** 2)
        if score < best:
            best, shrink = score, kept
    return Ridge(mean_z, mean_t, directions, sizes, shrink[:, None] * along)


def _layer(slopes: Float[Tensor, "k m"], bias: Float[Tensor, "m"], like: Tensor) -> nn.Linear:
    k, m = slopes.shape
    layer = nn.Linear(k, m, device=like.device, dtype=like.dtype)
    with torch.no_grad():
        layer.weight.copy_(slopes.T)
        layer.bias.copy_(bias)
    return layer
