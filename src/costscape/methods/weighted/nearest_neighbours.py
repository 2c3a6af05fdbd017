"""Nearest neighbours: decide for what followed the k most similar x.

    g(x, a) = mean of f(y_i, a) over the k training rows nearest to x

in Euclidean distance of standardised features. Bertsimas and Kallus, From Predictive to
Prescriptive Analytics, Management Science 2020.
"""

from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from costscape.data import Dataset
from costscape.methods.selection import validation_cost
from costscape.methods.surfaces import ScenarioMethod
from costscape.methods.update_result import NewRows
from costscape.methods.weighted.weighted_labels import appended, cheapest
from costscape.models import Standardise
from costscape.scenarios import Scenarios
from costscape.solvers import Auto, Solver
from costscape.task import Task

TRIED = (10, 25, 50, 100, 200, 400)


@dataclass
class NearestNeighbours(ScenarioMethod):
    """Weight 1 / k on the outcomes of the k nearest rows.

    Args:
        task: Task. The cost and the feasible set.
        k: int, default None: the one of 10, 25, 50, 100, 200, 400 that costs least on validation.
        solver: Solver, default Auto().
        seed: int, default 0. Not used.

    >>> import costscape as cs
    >>> cs.NearestNeighbours(cs.problems.inventory(), k=50).k
    50
    """

    task: Task
    k: int | None = None
    solver: Solver = field(default_factory=Auto)
    seed: int = 0

    def _fit(self, train: Dataset, val: Dataset) -> None:
        task, train, val = self._on_device(train, val)
        if self.k is not None and not 1 <= self.k <= len(train):
            raise ValueError(
                f"k needs to be from 1 to the {len(train)} training rows, but is {self.k}."
            )
        sizes = [self.k] if self.k else [k for k in TRIED if k <= len(train)] or [len(train)]
        self.model_ = cheapest(
            (Nearest(Standardise(train.x), train.x, train.y, k) for k in sizes),
            lambda: validation_cost(task, val, self.solver),
        )

    def _updated(self, batch: NewRows) -> nn.Module | None:
        return appended(self._fitted(), batch.new)

    def chosen(self) -> dict[str, Any]:
        return {"k": self.model_.k} if isinstance(self.model_, Nearest) else {}

    def _facts(self) -> dict[str, Any]:
        assert isinstance(self.model_, Nearest)
        return {"k": int(self.model_.k), "rows": len(self.model_.y)}

    def _rebuild(self, facts: dict[str, Any]) -> nn.Module:
        x, y = self._blank(facts["rows"])
        return Nearest(Standardise(x), x, y, facts["k"])


class Nearest(nn.Module):
    """The labels of the k nearest rows, each with weight 1 / k."""

    scenarios_are = "outcomes"

    def __init__(
        self,
        scaler: Standardise,
        x: Float[Tensor, "n ..."],
        y: Float[Tensor, "n ..."],
        k: int,
    ) -> None:
        super().__init__()
        self.scaler = scaler
        self.k = k
        self.register_buffer("x", scaler(x).flatten(1))
        self.register_buffer("y", y)
        self.x: Tensor
        self.y: Tensor

    def nearest(self, x: Float[Tensor, "B ..."]) -> Int[Tensor, "B k"]:
        """The k nearest rows."""
        z = self.scaler(x).flatten(1)
        # cdist multiplies matrices, which in single precision loses the distances of close rows;
        # a block of rows at a time keeps the distances (rows, n) small
        z, rows = z.double(), self.x.double()
        near = [torch.cdist(part, rows).topk(self.k, largest=False).indices
                for part in z.split(1024)]  # fmt: skip
        return torch.cat(near)

    def row_weights(self, x: Float[Tensor, "1 ..."], rows: int) -> tuple[Tensor, Tensor]:
        """The nearest training rows and their weights at a single x."""
        return self.nearest(x)[0], x.new_full((self.k,), 1 / self.k)

    def forward(self, x: Float[Tensor, "B ..."]) -> Scenarios:
        y = self.y[self.nearest(x)]
        return Scenarios(y.new_full((len(x), self.k), 1 / self.k), y, own=True)

    def traceable(self) -> nn.Module:
        """The same without blocks of rows, for export."""
        return _NearestAtOnce(self)


class _NearestAtOnce(nn.Module):
    """Distances are squared, and without the part of x, which is the same for all rows."""

    def __init__(self, model: Nearest) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: Float[Tensor, "B ..."]) -> Scenarios:
        model = self.model
        z, rows = model.scaler(x).flatten(1).double(), model.x.double()
        distance = rows.square().sum(1) - 2 * z @ rows.T
        index = distance.topk(model.k, largest=False).indices
        return Scenarios(torch.full_like(index, 1 / model.k, dtype=x.dtype), model.y[index], True)
