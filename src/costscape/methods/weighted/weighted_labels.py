"""Weights on training labels: g(x, a) = sum_i w_i(x) f(y_i, a) over all n training rows i.

Bertsimas and Kallus, From Predictive to Prescriptive Analytics, Management Science 2020.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from costscape.data import Dataset
from costscape.methods.selection import validation_cost
from costscape.scenarios import Scenarios
from costscape.solvers import Solver
from costscape.task import Task
from costscape.training.fit_state import Score

M = TypeVar("M", bound=nn.Module)
R = TypeVar("R", bound=Any)
BLOCK = 2**22  # numbers in one block of rows, so that temporaries stay in tens of megabytes
PAIRED = 1000  # rows, evenly spread, whose distances give the median
SCORED, FEWEST = 2**22, 256  # weights that score one candidate, and validation rows at least


class WeightedLabels(nn.Module, ABC):
    """All x share the n labels as outcomes, and differ in the weights (B, n) alone."""

    scenarios_are = "outcomes"

    def __init__(self, y: Float[Tensor, "n ..."]) -> None:
        super().__init__()
        self.register_buffer("y", y)
        self.y: Tensor

    @abstractmethod
    def unscaled(self, x: Float[Tensor, "B ..."]) -> Float[Tensor, "B n"]:
        """Weights, none negative, not all zero, up to a factor for each x."""

    def forward(self, x: Float[Tensor, "B ..."]) -> Scenarios:
        rows = max(1, BLOCK // len(self.y))
        parts = [self.unscaled(part) for part in x.split(rows)]
        weights = torch.cat([w / w.sum(1, keepdim=True) for w in parts])
        return Scenarios(weights.to(self.y), self.y.unsqueeze(0))

    def row_weights(self, x: Float[Tensor, "1 ..."], rows: int) -> tuple[Tensor, Tensor]:
        """All training rows and their weights at a single x."""
        return torch.arange(rows), self(x).weights[0]


def score_of_weights(task: Task, train: Dataset, val: Dataset, solver: Solver) -> Score:
    """``validation_cost``, on every k-th row where all would take over 4 million weights.

    A score costs as much as it has weights, a row of n for each validation row, and 256 rows at
    least are kept.
    """
    many = -(-len(val) * len(train) // SCORED)
    return validation_cost(task, val[:: max(1, min(many, len(val) // FEWEST))], solver)


def cheapest(models: Iterator[M], score: Callable[[], Score]) -> M:
    """The first model whose score is least; a single one is not scored."""
    best, scored = next(models), None
    for model in models:  # no more than two exist at a time
        if scored is None:
            scored = score()
            least = scored(best)
        if (cost := scored(model)) < least:
            best, least = model, cost
    return best


def affinity(z: Float[Tensor, "B p"], x: Float[Tensor, "n p"]) -> Float[Tensor, "B n"]:
    """|z|^2 / 2 - |z - x_i|^2 / 2, in double; what z alone adds does not change normed weights.

    Without |z|^2 the differences between rows keep their digits however far z is from them all.
    """
    z, x = z.double(), x.double()
    return z @ x.T - x.square().sum(1) / 2


def gaussian(
    affinity: Float[Tensor, "B n"], width: float, peak: Float[Tensor, "B 1"]
) -> Float[Tensor, "B n"]:
    """exp((affinity - peak) / width^2), at most 1: the kernel itself where peak is |z|^2 / 2.

    With the row's largest affinity as peak, the largest is 1, and no row underflows to zeros.
    """
    # two divisions: the square of a tiny width is zero
    return ((affinity - peak).clamp(max=0) / width / width).exp()


def appended(model: R, new: Dataset) -> R:
    """A copy of a model of rows (``x``, standardised by ``scaler``, and ``y``) with more rows."""
    grown = deepcopy(model)
    grown.x = torch.cat([model.x, model.scaler(new.x).flatten(1)])
    grown.y = torch.cat([model.y, new.y])
    return grown


def median_distance(x: Float[Tensor, "n p"]) -> float:
    """The median distance of distinct points among at most 1000 rows; 1 where all are equal."""
    some = x[:: -(-len(x) // PAIRED)].double()
    distances = torch.pdist(some)
    distances = distances[distances > 0]
    return float(distances.median()) if len(distances) else 1.0
