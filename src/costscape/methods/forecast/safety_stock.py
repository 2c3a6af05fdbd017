"""Safety stock: a point forecast and a fixed margin, then the best action for that outcome.

    a(x) = argmin_a f(y_hat(x) + s, a),     s_j = the q quantile of y_j - y_hat_j(x) over val rows

q is the one of LEVELS whose decisions cost least on validation rows: for each coordinate by itself
where the cost is a sum over coordinates and the set a box, else the same for all. For orders, s is
the stock that is held against forecasts that are too low.
"""

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from costscape.data import Dataset
from costscape.methods.forecast.two_stage import TwoStage
from costscape.methods.surfaces import ScenarioMethod
from costscape.models import Builder, Point
from costscape.models.relative_outcomes import Level
from costscape.scenarios import ExpectedCost, Scenarios
from costscape.solvers import Auto, Solver
from costscape.task import SeparableTask, Task
from costscape.training import Training
from costscape.training.settings import Decay

LEVELS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
SCORED = 256  # validation rows that choose the level, at most


@dataclass
class SafetyStock(ScenarioMethod):
    """Adds a fixed margin to a point forecast, and decides as if that were the outcome.

    The margin of each coordinate is a quantile of the forecast errors on the validation rows. The
    level of the quantile is one of 0.05, 0.1, 0.2, ..., 0.9, 0.95, chosen by decision cost: for
    each coordinate where the task is a SeparableTask on a Box, else one for all.

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
    ema: Decay | None = 0.995
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
            some = val[:: -(-len(val) // SCORED)]
            shape, y, C = val.y.shape[1:], task.join(some.x, some.y), task.sets(some.x)
            costs = []
            for margin in margins:
                shifted = _Shifted(forecast, margin.reshape(shape))
                g = ExpectedCost.at(task, some.x, shifted(some.x))
                a = self.solver.coarse().minimise(g, C, len(some)).action
                costs.append(_by_coordinate(task, y, a, errors.shape[1]))
        best = torch.stack(costs).argmin(0, keepdim=True)  # a level for each number of y
        chosen = _Shifted(forecast, margins.gather(0, best).reshape(shape))
        chosen.levels.copy_(errors.new_tensor(LEVELS)[best[0]].reshape(shape))
        self.model_ = chosen.eval()

    def chosen(self) -> dict[str, Any]:
        """``levels`` of the quantiles that are the margins, one for each number of y."""
        model = self.model_
        if not isinstance(model, _Shifted):
            return {}
        return {"levels": [round(q, 3) for q in model.levels.flatten().tolist()]}

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
        return {}

    def _rebuild(self, facts: dict[str, Any]) -> nn.Module:
        point = self._point()
        point.x_shape_, point.y_shape_ = self.x_shape_, self.y_shape_
        return _Shifted(point._rebuild({}), self._blank(1)[1][0])


def _by_coordinate(task: Task, y: Tensor, a: Tensor, numbers: int) -> Tensor:
    """The mean cost of each coordinate, where they are decided one by one, else of all."""
    alone = isinstance(task, SeparableTask) and task.feasible.by_coordinate
    if isinstance(task, SeparableTask) and alone and a.shape[1] == numbers:
        return task.terms(y, a).mean(0)
    return task.cost(y, a).mean().expand(numbers)


class _Shifted(nn.Module):
    """A point forecast and a margin as one scenario; ``levels`` are those of the quantiles."""

    def __init__(self, forecast: nn.Module, margin: Tensor) -> None:
        super().__init__()
        self.forecast = forecast
        self.register_buffer("margin", margin.clone())
        self.register_buffer("levels", torch.zeros_like(margin))
        self.margin: Tensor
        self.levels: Tensor

    def forward(self, x: Tensor) -> Scenarios:
        s: Scenarios = self.forecast(x)
        return Scenarios(s.weights, s.values + self.margin, own=True)
