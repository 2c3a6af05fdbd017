"""Kernel smoothing: decide for what followed similar x, the more similar the more it counts.

    g(x, a) = sum_i w_i(x) f(y_i, a),   w_i(x) = K(x, x_i) / sum_j K(x, x_j),
    K(x, x') = exp(-|x - x'|^2 / (2 width^2))

on standardised features. Nadaraya, On Estimating Regression, 1964; Watson, Smooth Regression
Analysis, 1964; as weights for decisions: Bertsimas and Kallus, From Predictive to Prescriptive
Analytics, Management Science 2020.
"""

from dataclasses import dataclass, field
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from costscape.data import Dataset
from costscape.methods.surfaces import ScenarioMethod
from costscape.methods.update_result import NewRows
from costscape.methods.weighted.weighted_labels import (
    WeightedLabels,
    affinity,
    appended,
    cheapest,
    gaussian,
    median_distance,
    score_of_weights,
)
from costscape.models import Standardise
from costscape.solvers import Auto, Solver
from costscape.task import Task
from costscape.training.settings import Positive

TRIED = tuple(2 ** (-i / 2) for i in range(14))  # of the median distance: 1, 0.71, ... 0.011


@dataclass
class KernelSmoother(ScenarioMethod):
    """Nadaraya-Watson weights with a Gaussian kernel.

    An x far from every row gets the nearest row's label, as in the limit of the formula.

    Args:
        task: Task. The cost and the feasible set.
        width: float, in standard deviations of the features, default None: the one of 14 that
            costs least on validation, the median distance between training rows times 1, 2^-1/2,
            2^-1, ..., 2^-13/2.
        solver: Solver, default Auto().
        seed: int, default 0. Not used.

    >>> import costscape as cs
    >>> cs.KernelSmoother(cs.problems.inventory(), width=0.5).width
    0.5
    """

    task: Task
    width: Positive | None = None
    solver: Solver = field(default_factory=Auto)
    seed: int = 0

    def _fit(self, train: Dataset, val: Dataset) -> None:
        task, train, val = self._on_device(train, val)
        scaler = Standardise(train.x)
        x = scaler(train.x).flatten(1)
        unit = median_distance(x)
        widths = [unit * part for part in TRIED] if self.width is None else [self.width]
        self.model_ = cheapest(
            (Smoother(scaler, x, train.y, width) for width in widths),
            lambda: score_of_weights(task, train, val, self.solver),
        )

    def _updated(self, batch: NewRows) -> nn.Module | None:
        return appended(self._fitted(), batch.new)

    def chosen(self) -> dict[str, Any]:
        return {"width": self.model_.width} if isinstance(self.model_, Smoother) else {}

    def _facts(self) -> dict[str, Any]:
        assert isinstance(self.model_, Smoother)
        return {"width": self.model_.width, "rows": len(self.model_.y)}

    def _rebuild(self, facts: dict[str, Any]) -> nn.Module:
        x, y = self._blank(facts["rows"])
        return Smoother(Standardise(x), x.flatten(1), y, facts["width"])


class Smoother(WeightedLabels):
    """``x`` is standardised and flattened."""

    def __init__(
        self,
        scaler: Standardise,
        x: Float[Tensor, "n p"],
        y: Float[Tensor, "n ..."],
        width: float,
    ) -> None:
        super().__init__(y)
        self.scaler = scaler
        self.width = width
        self.register_buffer("x", x)
        self.x: Tensor

    def unscaled(self, x: Float[Tensor, "B ..."]) -> Float[Tensor, "B n"]:
        near = affinity(self.scaler(x).flatten(1), self.x)
        return gaussian(near, self.width, near.amax(1, keepdim=True))
