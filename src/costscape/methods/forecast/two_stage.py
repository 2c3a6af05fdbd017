"""Two-stage: first forecast y, then decide as if the forecast were the truth.

fit     min  mean_(x, y)  loss of the forecast, such as -log p(y | x)
decide  argmin_a  mean_m f(y_m, a),  y_m ~ p(. | x)
"""

from dataclasses import dataclass, field

from costscape.data import Dataset
from costscape.methods.forecast.forecast_method import ForecastMethod, Network
from costscape.models import Builder
from costscape.models.forecasts import Forecast, Mixture
from costscape.models.relative_outcomes import Level
from costscape.solvers import Auto, Solver
from costscape.task import Task
from costscape.training import History, Training


@dataclass
class TwoStage(ForecastMethod):
    """A forecast by its own loss; the epoch is that of the cheapest decisions.

    - ``forecast``: Point(), Mixture(k), Quantiles() or Flow().
    - ``draws``: how many outcomes stand for the forecast (the paper's 100; 1000 decide clearly
      better), or None for the task's closed form, with a mixture.
    - ``encoder``: a builder; by default an MLP for rows and an LSTM for sequences. ``Flat`` makes
      the forecast linear in x.
    - ``level``: as of WindowLevels, windows and outcomes are seen as multiples of it.
    - ``ema``: decay of the moving average of the weights, or None.
    """

    task: Task
    forecast: Forecast = field(default_factory=Mixture)
    draws: int | None = 100
    encoder: Builder | None = None
    level: Level | None = None
    ema: float | None = 0.995
    solver: Solver = field(default_factory=Auto)
    training: Training = field(default_factory=Training)
    seed: int = 0

    def _learn(self, task: Task, model: Network, train: Dataset, val: Dataset) -> list[History]:
        return [self._by_likelihood(task, model, train, val)]
