"""Two-stage: first forecast y, then decide as if the forecast were the truth.

fit     min  mean_(x, y)  loss of the forecast, such as -log p(y | x)
decide  argmin_a  mean_m f(y_m, a),  y_m ~ p(. | x)
"""

from dataclasses import dataclass, field

import torch
from torch import Generator

from costscape.data import Dataset, join
from costscape.methods.forecast.forecast_method import ForecastMethod, Network
from costscape.methods.update_result import NewRows
from costscape.models import Builder
from costscape.models.forecasts import Forecast, Mixture
from costscape.models.relative_outcomes import Level
from costscape.solvers import Auto, Solver
from costscape.task import Task
from costscape.training import Fit, History, Training, fit_all
from costscape.training.compiled_loss import Loss
from costscape.training.fit_state import twin
from costscape.training.settings import Count, Decay


@dataclass
class TwoStage(ForecastMethod):
    """Fits a forecast of y given x, then decides by the expected cost under the forecast.

    The forecast is trained on its own loss, such as the negative log-likelihood. Early stopping
    selects the epoch whose decisions cost least on the validation rows.

    Args:
        task: Task. The cost and the feasible set.
        forecast: Forecast, default Mixture(), one Gaussian. Point(), Mixture(k), Quantiles() or
            Flow().
        draws: int, default 100. Number of outcomes sampled from the forecast to decide; None uses
            the expected cost in closed form, for a mixture and a task that has one. 100 is the
            paper's number; 1000 decide clearly better.
        encoder: function without arguments that builds the network from x to its code, default
            None: an MLP for rows and an LSTM for sequences. ``Flat`` makes the forecast linear in
            x.
        level: function from x, shape (B, ...), to one positive number for each row, shape (B,),
            default None. Windows and outcomes are divided by that number, as in WindowLevels.
        ema: float between 0 and 1, default 0.995. Decay of the moving average of the weights of
            the network; None uses the weights of the epoch itself.
        solver: Solver, default Auto(), the strongest one that accepts the problem. Minimises the
            expected cost over the feasible set.
        training: Training, default Training(). Epochs, learning rate, device and so on.
        seed: int, default 0. Seed of the initial weights, the batches and the samples.

    >>> import numpy as np
    >>> import costscape as cs
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.random((40, 3)), rng.random((40, 2))
    >>> training = cs.Training(epochs=1, progress=False)
    >>> method = cs.TwoStage(cs.problems.inventory(days=2), cs.Mixture(3), training=training)
    >>> method.fit(X, Y).decide(X[:5]).shape
    (5, 2)
    """

    task: Task
    forecast: Forecast = field(default_factory=Mixture)
    draws: Count | None = 100
    encoder: Builder | None = None
    level: Level | None = None
    ema: Decay | None = 0.995
    solver: Solver = field(default_factory=Auto)
    training: Training = field(default_factory=Training)
    seed: int = 0

    def _learn(self, task: Task, model: Network, train: Dataset, val: Dataset) -> list[History]:
        return [self._by_likelihood(task, model, train, val)]

    def _updated(self, batch: NewRows) -> Network | None:
        model = twin(self._fitted())
        assert isinstance(model, Network)
        loss: Loss = lambda b, rng: model.loss(b.x, b.y, rng).mean()  # noqa: E731
        fit = Fit(model, loss, self.seed, ema=self.ema)
        fit_all([fit], batch.pool, batch.training(self.training))
        pairs, rng = join(batch.old, batch.new), Generator(batch.new.x.device)
        with torch.no_grad():
            model.calibrate(pairs.x, pairs.y, rng.manual_seed(self.seed))
        return model.eval()
