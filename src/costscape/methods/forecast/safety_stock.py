"""Safety stock: a point forecast and a fixed margin, then the best action for that outcome.

    a(x) = argmin_a f(y_hat(x) + s, a),     s_j = the q quantile of y_j - y_hat_j(x) over val rows

One level q serves all coordinates: that of LEVELS whose decisions cost least on validation rows.
For orders, s is the stock that is held against forecasts that are too low.
"""

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from costscape.data import Dataset
from costscape.methods.forecast.two_stage import TwoStage
from costscape.methods.selection import validation_cost
from costscape.methods.surfaces import ScenarioMethod
from costscape.models import Builder, Point
from costscape.models.relative_outcomes import Level
from costscape.scenarios import Scenarios
from costscape.solvers import Auto, Solver
from costscape.task import Task
from costscape.training import Training

LEVELS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
SCORED = 256  # validation rows that choose the level, at most


@dataclass
class SafetyStock(ScenarioMethod):
    """Adds a fixed margin to a point forecast, and decides as if that were the outcome.

    The margin of each coordinate is a quantile of the forecast errors on the validation rows. The
    level of the quantile is one of 0.05, 0.1, 0.2, ..., 0.9, 0.95, chosen by decision cost.

    Args:
        task: Task. The cost and the feasible set.
        encoder: function without arguments that builds the network of the forecast, default None:
            an MLP for rows and an LSTM for sequences.
        level: function from x, shape (B, ...), to one positive number for each row, shape (B,),
            default None. Windows and outcomes are divided by that number, as in WindowLevels.
        ema: float between 0 and 1, default 0.995. Decay of the moving average of the weights.
        solver: Solver, default Auto().
        training: Training, default Training(). Epochs, learning rate, device and so on.
        seed: int, default 0. Seed of the initial weights and the batches.

    Cost: one point forecast, and 11 scores on at most 256 validation rows.

    >>> import torch, costscape as cs
    >>> x = torch.rand(60, 2, generator=torch.Generator().manual_seed(0))
    >>> task = cs.problems.inventory(days=1)
    >>> training = cs.Training(epochs=1, progress=False)
    >>> method = cs.SafetyStock(task, training=training).fit(x, 1 + x[:, :1])
    >>> method.decide(x[:3]).shape
    torch.Size([3, 1])
    """

    task: Task
    encoder: Builder | None = None
    level: Level | None = None
    ema: float | None = 0.995
    solver: Solver = field(default_factory=Auto)
    training: Training = field(default_factory=Training)
    seed: int = 0

    def _fit(self, train: Dataset, val: Dataset) -> None:
        point = self._point().fit(train.x, train.y, val=(val.x, val.y))
        task, train, val = self._on_device(train, val)
        forecast = point._fitted()
        with torch.no_grad():
            errors = (val.y - forecast(val.x).values[:, 0]).flatten(1)
            margins = torch.quantile(errors, errors.new_tensor(LEVELS), 0)
            score = validation_cost(task, val[:: -(-len(val) // SCORED)], self.solver)
            models = [
                _Shifted(forecast, s.reshape(val.y.shape[1:]), q)
                for q, s in zip(LEVELS, margins, strict=True)
            ]
            self.model_ = min(models, key=score).eval()

    def chosen(self) -> dict[str, Any]:
        """``level`` of the quantile that is the margin."""
        return {} if self.model_ is None else self._facts()

    def _point(self) -> TwoStage:
        return TwoStage(
            self._task(),
            Point(),
            encoder=self.encoder,
            level=self.level,
            ema=self.ema,
            solver=self.solver,
            training=self.training,
            seed=self.seed,
        )

    def _facts(self) -> dict[str, Any]:
        model = self.model_
        assert isinstance(model, _Shifted)
        return {"level": model.level}

    def _rebuild(self, facts: dict[str, Any]) -> nn.Module:
        point = self._point()
        point.x_shape_, point.y_shape_ = self.x_shape_, self.y_shape_
        return _Shifted(point._rebuild({}), self._blank(1)[1][0], facts["level"])


class _Shifted(nn.Module):
    """A point forecast and a margin, the quantile of this level, as one scenario."""

    def __init__(self, forecast: nn.Module, margin: Tensor, level: float) -> None:
        super().__init__()
        self.forecast, self.level = forecast, level
        self.register_buffer("margin", margin.clone())
        self.margin: Tensor

    def forward(self, x: Tensor) -> Scenarios:
        s: Scenarios = self.forecast(x)
        return Scenarios(s.weights, s.values + self.margin, own=True)
