"""DFL: train the forecast on the cost of the decisions it leads to.

    fit     min  mean_(x, y)  f(y, a*(x)),   a*(x) = argmin_a mean_m f(y_m, a),   y_m ~ p(. | x)

with draws y_m through which gradients flow, and the derivative of the argmin by the optimality
conditions. Donti, Amos and Kolter, Task-based End-to-end Model Learning in Stochastic
Optimization, NeurIPS 2017.
"""

from dataclasses import dataclass, field, replace
from typing import ClassVar

from torch import Generator, Tensor

from costscape.data import Dataset
from costscape.methods.forecast.forecast_method import ForecastMethod, Network
from costscape.models import Builder, Forecast, Point
from costscape.models.relative_outcomes import Level
from costscape.solvers import Auto, Layer, Solver, argmin_layer
from costscape.task import Refusal, Task
from costscape.training import History, Training
from costscape.training.compiled_loss import Loss
from costscape.training.settings import RATE, Count, Decay, Positive


@dataclass
class DFL(ForecastMethod):
    """Fits a forecast as TwoStage does, then trains the same network on the cost of its decisions.

    Every step of the second stage solves for the decisions and differentiates the argmin. With a
    point forecast and a lopsided cost, the forecast moves from the mean to the outcome whose best
    action is wanted.

    Args:
        task: Task. The cost and the feasible set.
        forecast: Forecast, default Point(). Point(), Mixture(k), Quantiles() or Flow(). A point
            decides as if it were certain.
        draws: int, default 100. Number of outcomes sampled from the forecast in each training step
            and to decide; None uses the expected cost in closed form, for a mixture and a task
            that has one.
        layer: Layer, default None: SoftChoice() for a Finite list of actions, Implicit(solver)
            for other sets. Differentiable argmin of the second stage; CvxpyLayer() for a convex
            cost written for cvxpy.
        rates: tuple of float, default (0.3, 0.03). Learning rates of the second stage, as
            multiples of the rate of the first. Each rate starts from the first stage; the result
            whose decisions cost least on the validation rows is used, which may be the first
            stage. A point forecast on a lopsided cost needs a high rate; a mixture near its
            optimum needs a low one.
        encoder: function without arguments that builds the network from x to its code, default
            None: an MLP for rows and an LSTM for sequences.
        level: function from x, shape (B, ...), to one positive number for each row, shape (B,),
            default None. Windows and outcomes are divided by that number, as in WindowLevels.
        ema: float between 0 and 1, default 0.995. Decay of the moving average of the weights of
            the network; None uses the weights of the epoch itself.
        solver: Solver, default Auto(), the strongest one that accepts the problem. Minimises the
            expected cost over the feasible set, for validation and in ``decide``.
        training: Training, default Training(). Epochs, learning rate, device and so on, of both
            stages.
        seed: int, default 0. Seed of the initial weights, the batches and the samples.

    Cost: one solve for each row and epoch of the second stage, for each of ``rates``.

    >>> import numpy as np
    >>> import costscape as cs
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.random((40, 3)), rng.random((40, 2))
    >>> training = cs.Training(epochs=1, progress=False)
    >>> method = cs.DFL(cs.problems.inventory(days=2), draws=10, training=training)
    >>> method.fit(X, Y).decide(X[:5]).shape
    (5, 2)
    """

    takes_row_sets: ClassVar[bool] = False

    task: Task
    forecast: Forecast = field(default_factory=Point)
    draws: Count | None = 100
    layer: Layer | None = None
    rates: tuple[Positive, ...] = (0.3, 0.03)
    encoder: Builder | None = None
    level: Level | None = None
    ema: Decay | None = 0.995
    solver: Solver = field(default_factory=Auto)
    training: Training = field(default_factory=Training)
    seed: int = 0

    def _learn(self, task: Task, model: Network, train: Dataset, val: Dataset) -> list[History]:
        layer = self._layer(task)
        if reason := layer.refuses(task.relaxed()):
            raise Refusal(f"DFL's {type(layer).__name__} {reason}.")
        first = self._by_likelihood(task, model, train, val)
        lr = self.training.lr or RATE
        ways = [replace(self.training, lr=lr * rate) for rate in self.rates]
        loss: Loss = lambda batch, rng: self.loss(task, model, batch, rng)  # noqa: E731
        return [first, *self._refine(task, model, loss, train, val, ways)]

    def loss(self, task: Task, model: Network, batch: Dataset, rng: Generator) -> Tensor:
        """The mean cost of the decisions on one batch, with fresh draws.

        Whole units have no slope: the layer then decides over the base of the set.
        """
        g = model.expected_cost(task.relaxed(), batch.x, self.draws, rng)
        return task.cost(task.join(batch.x, batch.y), self._layer(task)(g)).mean()

    def _layer(self, task: Task) -> Layer:
        return self.layer or argmin_layer(task.feasible, self.solver)
