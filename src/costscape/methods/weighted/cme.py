"""Conditional mean embedding: the weights of kernel ridge regression, on all labels at once.

    g(x, a) = sum_i w_i(x) f(y_i, a),   w(x) = beta(x)+ / sum beta(x)+,
    beta(x) = (K + n penalty I)^-1 k(x),   K_ij = exp(-|x_i - x_j|^2 / (2 width^2))

on standardised features. With many rows, the Nystroem form over m landmarks among them,

    beta(x) = K_nm (K_mn K_nm + n penalty K_mm)^-1 k_m(x)

Song, Huang, Smola and Fukumizu, Hilbert Space Embeddings of Conditional Distributions, ICML 2009;
Gruenewaelder, Lever, Baldassarre, Patterson, Gretton and Pontil, Conditional Mean Embeddings as
Regressors, ICML 2012.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from costscape.data import Dataset
from costscape.methods.surfaces import ScenarioMethod
from costscape.methods.weighted.weighted_labels import (
    WeightedLabels,
    affinity,
    cheapest,
    gaussian,
    median_distance,
    score_of_weights,
)
from costscape.models import Standardise
from costscape.solvers import Auto, Solver
from costscape.task import Task
from costscape.training.settings import Count, Positive

WIDTHS = (1.0, 0.5, 0.25, 0.125, 0.0625)  # of the median distance
PENALTIES = (1.0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
JITTER = 1e-8  # on the diagonal of K_mm, whose least eigenvalues are rounded to zero


@dataclass
class CME(ScenarioMethod):
    """Kernel ridge weights, negative ones clipped to 0 and the rest scaled to sum 1.

    Should every weight be clipped, which the full form does not allow, the landmarks are weighted
    by the kernel. Memory: landmarks x n numbers.

    Args:
        task: Task. The cost and the feasible set.
        penalty: float, default None: of 1, 10^-1, ..., 10^-6 the one that costs least on
            validation.
        width: float, default None: of 1, 1/2, 1/4, 1/8, 1/16 times the median distance between
            training rows the one that costs least on validation.
        landmarks: int, default 1000. Above so many rows, the Nystroem form with that many rows
            drawn uniformly.
        solver: Solver, default Auto().
        seed: int, default 0. Of the landmarks.

    >>> import costscape as cs
    >>> cs.CME(cs.problems.inventory(), landmarks=500).landmarks
    500
    """

    task: Task
    penalty: Positive | None = None
    width: Positive | None = None
    landmarks: Count = 1000
    solver: Solver = field(default_factory=Auto)
    seed: int = 0

    def _fit(self, train: Dataset, val: Dataset) -> None:
        task, train, val = self._on_device(train, val)
        models = self._models(train)  # one at a time: each holds m x n numbers
        self.model_ = cheapest(models, lambda: score_of_weights(task, train, val, self.solver))

    def _models(self, train: Dataset) -> Iterator["Embedding"]:
        """All pairs tried; one factorisation for each width serves all penalties."""
        scaler = Standardise(train.x)
        x = scaler(train.x).flatten(1)
        unit = median_distance(x)
        index = _drawn(len(x), self.landmarks, self.seed).to(x.device)
        factors = _exact if len(index) == len(x) else _nystroem
        widths = [unit * part for part in WIDTHS] if self.width is None else [self.width]
        penalties = PENALTIES if self.penalty is None else (self.penalty,)
        for width in widths:
            left, right, spectrum = factors(x, index, width)
            for penalty in penalties:
                yield Embedding(
                    scaler, x[index], train.y, index, left, right, spectrum, width, penalty
                )

    def chosen(self) -> dict[str, Any]:
        model = self.model_
        if not isinstance(model, Embedding):
            return {}
        return {"width": model.width, "penalty": model.penalty}

    def _facts(self) -> dict[str, Any]:
        model = self.model_
        assert isinstance(model, Embedding)
        sizes = {"rows": len(model.y), "landmarks": len(model.index)}
        return {**sizes, "width": model.width, "penalty": model.penalty}

    def _rebuild(self, facts: dict[str, Any]) -> nn.Module:
        x, y = self._blank(facts["rows"])
        m, width, penalty = facts["landmarks"], facts["width"], facts["penalty"]
        index = torch.arange(m, device=x.device)
        left = torch.zeros(m, m, dtype=torch.float64, device=x.device)
        parts = (x[:m].flatten(1), y, index, left, left.new_zeros(m, len(y)), left[0])
        return Embedding(Standardise(x), *parts, width, penalty)


class Embedding(WeightedLabels):
    """beta(x) = right^T (spectrum + n penalty)^-1 left^T k_m(x), with k_m(x) at the centres."""

    def __init__(
        self,
        scaler: Standardise,
        centres: Float[Tensor, "m p"],
        y: Float[Tensor, "n ..."],
        index: Int[Tensor, "m"],
        left: Float[Tensor, "m m"],
        right: Float[Tensor, "m n"],
        spectrum: Float[Tensor, "m"],
        width: float,
        penalty: float,
    ) -> None:
        super().__init__(y)
        self.scaler = scaler
        self.width = width
        self.penalty = penalty
        self.register_buffer("centres", centres)
        self.register_buffer("index", index)
        # large numbers of either sign cancel in k_m(x)^T left: it stays double, as bits, whatever
        # the precision the model is moved to
        self.register_buffer("left_bits", (left / (spectrum + len(y) * penalty)).view(torch.int64))
        self.register_buffer("right", right.to(y.dtype))
        self.centres: Tensor
        self.index: Tensor
        self.left_bits: Tensor
        self.right: Tensor

    def coefficients(self, x: Float[Tensor, "B ..."]) -> Float[Tensor, "B n"]:
        """beta(x), as it is before clipping."""
        z = self.scaler(x).flatten(1).double()
        near = affinity(z, self.centres)
        return self._solve(gaussian(near, self.width, z.square().sum(1, keepdim=True) / 2))

    def unscaled(self, x: Float[Tensor, "B ..."]) -> Float[Tensor, "B n"]:
        near = affinity(self.scaler(x).flatten(1), self.centres)
        k = gaussian(near, self.width, near.amax(1, keepdim=True))
        beta = self._solve(k).clamp(min=0)
        lost = ~(beta > 0).any(1)
        beta[lost] = torch.zeros_like(beta[lost]).index_copy(1, self.index, k[lost].to(beta))
        return beta

    def _solve(self, k: Tensor) -> Tensor:
        left = self.left_bits.view(torch.float64)
        return (k @ left).to(self.right) @ self.right


def _drawn(rows: int, landmarks: int, seed: int) -> Tensor:
    """The indices of the landmarks, in order; all rows where there are not more."""
    rng = torch.Generator().manual_seed(seed)
    return torch.randperm(rows, generator=rng)[:landmarks].sort().values


def _exact(x: Tensor, index: Tensor, width: float) -> tuple[Tensor, Tensor, Tensor]:
    """K = left diag(spectrum) right, left orthogonal and right its transpose."""
    spectrum, left = torch.linalg.eigh(_kernel(x, x, width))
    return left, left.T, spectrum.clamp(min=0)


def _nystroem(x: Tensor, index: Tensor, width: float) -> tuple[Tensor, Tensor, Tensor]:
    """With K_mm = L L^T and L^-1 K_mn K_nm L^-T = V diag(spectrum) V^T:

    left = L^-T V and right = V^T L^-1 K_mn.
    """
    centres = x[index]
    kernel = _kernel(centres, centres, width)
    kernel.diagonal().add_(JITTER)
    lower = torch.linalg.cholesky(kernel)
    features = torch.linalg.solve_triangular(lower, _kernel(centres, x, width), upper=False)
    spectrum, v = torch.linalg.eigh(features @ features.T)
    left = torch.linalg.solve_triangular(lower.T, v, upper=True)
    return left, v.T @ features, spectrum.clamp(min=0)


def _kernel(z: Tensor, x: Tensor, width: float) -> Tensor:
    peak = z.double().square().sum(1, keepdim=True) / 2
    return gaussian(affinity(z, x), width, peak)
