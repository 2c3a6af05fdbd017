"""DFL: train the forecast on the cost of the decisions it leads to.

    fit     min  mean_(x, y)  f(y, a*(x)),   a*(x) = argmin_a mean_m f(y_m, a),   y_m ~ p(. | x)

with draws y_m through which gradients flow, and the derivative of the argmin by the optimality
conditions. Donti, Amos and Kolter, Task-based End-to-end Model Learning in Stochastic
Optimization, NeurIPS 2017.
"""

from dataclasses import dataclass, field, replace

from torch import Generator, Tensor

from costscape.data import Dataset
from costscape.methods.forecast.forecast_method import ForecastMethod, Network
from costscape.models import Builder, Forecast, Point
from costscape.models.relative_outcomes import Level
from costscape.solvers import Auto, Implicit, Layer, Solver
from costscape.task import Refusal, Task
from costscape.training import History, Training
from costscape.training.compiled_loss import Loss
from costscape.training.settings import RATE


@dataclass
class DFL(ForecastMethod):
    """A two-stage fit, then the same network on decision cost, a solver in every step.

    - ``forecast``: Point(), Mixture(k), Quantiles() or Flow(). A point decides as if it were
      certain, so on a lopsided cost it learns to forecast not the mean but the outcome whose best
      action is wanted.
    - ``draws``: of each step and of deciding; None is the task's closed form.
    - ``layer``: Implicit(), or CvxpyLayer() for a convex cost written for cvxpy.
    - ``rates``: learning rates of the second stage over that of the first. Each is tried from the
      same start; what decides best on validation data is kept, the start itself among them. A
      point on a lopsided cost has far to go, and a mixture near its optimum is soon spoilt.
    - ``encoder``, ``level``, ``ema``: as of TwoStage.
    """

    task: Task
    forecast: Forecast = field(default_factory=Point)
    draws: int | None = 100
    layer: Layer = field(default_factory=Implicit)
    rates: tuple[float, ...] = (0.3, 0.03)
    encoder: Builder | None = None
    level: Level | None = None
    ema: float | None = 0.995
    solver: Solver = field(default_factory=Auto)
    training: Training = field(default_factory=Training)
    seed: int = 0

    def _learn(self, task: Task, model: Network, train: Dataset, val: Dataset) -> list[History]:
        if reason := self.layer.refuses(task):
            raise Refusal(f"DFL's {type(self.layer).__name__} {reason}.")
        first = self._by_likelihood(task, model, train, val)
        lr = self.training.lr or RATE
        ways = [replace(self.training, lr=lr * rate) for rate in self.rates]
        loss: Loss = lambda batch, rng: self.loss(task, model, batch, rng)  # noqa: E731
        return [first, *self._refine(task, model, loss, train, val, ways)]

    def loss(self, task: Task, model: Network, batch: Dataset, rng: Generator) -> Tensor:
        """The mean cost of the decisions on one batch, with fresh draws."""
        g = model.expected_cost(task, batch.x, self.draws, rng)
        return task.cost(batch.y, self.layer(g)).mean()
