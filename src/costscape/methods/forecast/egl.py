"""EGL: one learned loss for all pairs, fitted where models really predict.

    sample   yhat_nk: the predictions at x_n of least-squares models along their training,
             with ``perturb`` every second one with noise added
             t_nk = f(y_n, a(yhat_nk)) - f(y_n, a(y_n))
    fit      theta(x, y): mean_nk (phi(yhat_nk - c_n; theta(x_n, y_n)) - t_nk)^2 -> min
    train    mean_n phi(m(x_n) - c_n; theta(x_n, y_n)) -> min over the forecaster m, theta fixed

The loss phi is one of local_losses; one network theta gives its parameters for every pair, so that
a few samples of each are enough. For a mixture the draws are moved so that their mean is at
yhat_nk; centres c_n are those of LODL. Shah, Wilder, Perrault and Tambe, Leaving the Nest: Going
Beyond Local Loss Functions for Predict-Then-Optimize, AAAI 2024.
"""

from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Generator, Tensor, nn

from costscape.data import Dataset
from costscape.methods.forecast.decision_samples import Forecasts, perturbations
from costscape.methods.forecast.forecast_method import Network
from costscape.methods.forecast.local_loss_method import (
    Fitted,
    LocalLossMethod,
    around_best,
    first_moves,
)
from costscape.methods.forecast.local_losses import LocalLoss, LossNetwork
from costscape.methods.method import seeded
from costscape.models import Builder, Units, encoder_for
from costscape.models.forecasts import Forecast, MixtureForecast, Point, PointForecast
from costscape.models.relative_outcomes import Level
from costscape.solvers import Auto, Solver
from costscape.task import Task
from costscape.training import Fit, Training, fit_all
from costscape.training.settings import Count, Decay, Positive

MODELS = 4  # fresh least-squares fits whose predictions are the samples
WIDTH = 64
EPOCHS = 30  # of the fit of theta


@dataclass
class EGL(LocalLossMethod):
    """Fits one loss for all pairs to decision costs, then trains the forecast on that loss.

    The parameters of the loss are the output of a network of (x, y).

    The epoch whose decisions cost least on the validation rows is used. Where that is the first
    stage, ``history_[1].best_epoch`` is -1.

    Args:
        task: Task. The cost and the feasible set.
        forecast: Forecast, default Point(). Point() or Mixture(k).
        loss: LocalLoss, default LossNetwork(). Family of phi: WeightedMSE(),
            DirectedWeightedMSE(), Quadratic(), DirectedQuadratic() or LossNetwork().
        samples: int, default 32. Number of predictions of each outcome to decide on, a quarter of
            them from each of four least-squares fits.
        perturb: bool, default True. Add noise to every second prediction. Least-squares models all
            predict near the mean; a forecast trained on the learned loss predicts elsewhere. False
            takes the predictions alone, as in the paper.
        spread: float, default 1.5. Standard deviation of the noise, in standard deviations of the
            residuals of the first forecast.
        stretch: bool, default False. Of a mixture, False shifts the draws and trains the
            locations; True also stretches the draws about their mean and trains all parameters.
        draws: int, default 100. Number of outcomes sampled from the forecast to decide; None uses
            the expected cost in closed form, for a mixture and a task that has one.
        encoder: function without arguments that builds the network from x to its code, default
            None: an MLP for rows and an LSTM for sequences.
        level: function from x, shape (B, ...), to one positive number for each row, shape (B,),
            default None. Windows and outcomes are divided by that number, as in WindowLevels.
        cache: Path or str, default None. Folder in which decision samples are stored; a later fit
            with the same data and settings reads them from there.
        ema: float between 0 and 1, default 0.995. Decay of the moving average of the weights of
            the network; None uses the weights of the epoch itself.
        solver: Solver, default Auto(), the strongest one that accepts the problem. Minimises the
            expected cost over the feasible set, also for the decision samples.
        training: Training, default Training(). Epochs, learning rate, device and so on, of both
            stages. The fits of the samples and of the loss use the same settings with fewer
            epochs.
        seed: int, default 0. Seed of the initial weights, the batches and the samples.

    Cost: ``samples`` decisions for each training row, before the second stage.

    >>> import numpy as np
    >>> import costscape as cs
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.random((40, 3)), rng.random((40, 2))
    >>> training = cs.Training(epochs=1, progress=False)
    >>> method = cs.EGL(
    ...     cs.problems.inventory(days=2), loss=cs.WeightedMSE(), samples=8, training=training
    ... )
    >>> method.fit(X, Y).decide(X[:5]).shape
    (5, 2)
    """

    task: Task
    forecast: Forecast = field(default_factory=Point)
    loss: LocalLoss = field(default_factory=LossNetwork)
    samples: Count = 32
    perturb: bool = True
    spread: Positive = 1.5
    stretch: bool = False
    draws: Count | None = 100
    encoder: Builder | None = None
    level: Level | None = None
    cache: Path | str | None = None
    ema: Decay | None = 0.995
    solver: Solver = field(default_factory=Auto)
    training: Training = field(default_factory=Training)
    seed: int = 0

    def _fit_losses(self, task: Task, model: Network, train: Dataset) -> Fitted:
        predicted = self._predictions(train)
        rng = Generator(train.x.device).manual_seed(self.seed)
        with torch.no_grad():
            unit = self._unit(model, train.x)
            noise = unit * perturbations(len(train), self.samples // 2, unit[0, 0], rng)
            noise = noise * self.perturb
            if isinstance(model, MixtureForecast):
                sets = Forecasts(task, self._cost(task, model, train.x), train.y)
                state = self._state(model, train.x)
                guesses = first_moves(self._sampler(), sets, state[:, 0])
                moves = self._shifts(model, predicted - state[:, :1])
                moves[:, 1::2] += noise
                moves = torch.cat([self._shifts(model, guesses), moves], 1)
                centre, e, t = around_best(state, moves, self._losses(sets, moves))
            else:
                centre, e = train.y[:, None], (predicted - train.y[:, None]).unsqueeze(2)
                e[:, 1::2] += noise
                t = self._losses(Forecasts.of_outcomes(task, train.y), e)
            e = (e / unit).flatten(2)
            t = t / t.mean().clamp(min=1e-30)
        theta = self._theta(deepcopy(model.units), train, e, t)
        with torch.no_grad():
            parameters = theta(train.x, train.y)
        return Fitted(centre, torch.ones_like(t[:, 0]), parameters)

    def _predictions(self, train: Dataset) -> Tensor:
        """(n, samples, *y_shape): what least-squares fits predict before and after each epoch."""
        parts = []
        for i, rows in enumerate(torch.arange(self.samples).tensor_split(MODELS)):
            if count := len(rows):
                parts.append(self._along_a_fit(train, count, self.seed + 1 + i))
        return torch.cat(parts, 1)

    def _along_a_fit(self, train: Dataset, count: int, seed: int) -> Tensor:
        seen: list[Tensor] = []

        def keep(fitted: nn.Module) -> float:
            assert isinstance(fitted, PointForecast)
            seen.append(fitted.mean(train.x))
            return 0.0

        with seeded(seed, train.x.device):
            encoder = encoder_for(self.encoder, tuple(train.x.shape[1:]))
            units = Units(train.x, train.y, self.level)
            model = PointForecast(encoder, units, tuple(train.y.shape[1:]))
        model = model.to(train.x).eval()
        if count == 1:
            with torch.no_grad():
                keep(model)
            return seen[0].unsqueeze(1)
        fit = Fit(
            model,
            lambda batch, rng: model.loss(batch.x, batch.y).mean(),
            seed=seed,
            score=keep,
            title="EGL predictions",
        )
        every_epoch = replace(self._short(count - 1), score_every=1)  # for keep
        fit_all([fit], train, every_epoch)
        return torch.stack(seen, 1)

    def _theta(self, units: Units, train: Dataset, e: Tensor, t: Tensor) -> "LossParameters":
        """The network of the loss's parameters, fitted to all samples; not kept in checkpoints."""
        with seeded(self.seed, train.x.device):
            encoder = encoder_for(self.encoder, tuple(train.x.shape[1:]))
            start = self.loss.start(e.shape[2], Generator().manual_seed(self.seed))
            theta = LossParameters(encoder, units, start, train.y[0].numel())
        theta = theta.to(train.x)
        k, d, size = t.shape[1], e.shape[2], train.y[0].numel()
        packed = torch.cat([train.y.flatten(1), t, e.flatten(1)], 1)

        def miss(batch: Dataset, rng: Generator) -> Tensor:
            y, costs, errors = batch.y.split([size, k, k * d], 1)
            phi = self.loss.value(
                theta(batch.x, y.reshape(-1, *self.y_shape_)), errors.unflatten(1, (k, d))
            )
            off: Tensor = phi - costs
            return off.square().mean()

        epochs = min(EPOCHS, self.training.for_rows(len(train)).epochs or EPOCHS)
        fit = Fit(theta, miss, seed=self.seed, title="EGL loss")
        fit_all([fit], Dataset(train.x, packed), self._short(epochs))
        return theta

    def _short(self, epochs: int) -> Training:
        return replace(self.training, epochs=epochs, patience=epochs, smooth=1, checkpoint=None)


class LossParameters(nn.Module):
    """(x, y) -> the parameters of the pair's loss: a common start, and an MLP's departure from it.

    The last layer begins at 0, so that every pair begins at the start.
    """

    def __init__(
        self, encoder: nn.Module, units: Units, start: Float[Tensor, "p"], d: int
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.units = units
        width = int(encoder.out_features) + d  # type: ignore[arg-type]
        self.common = nn.Parameter(start.clone())
        self.hidden = nn.Linear(width, WIDTH)
        self.own = nn.Linear(WIDTH, len(start))
        nn.init.zeros_(self.own.weight)
        nn.init.zeros_(self.own.bias)

    def forward(
        self, x: Float[Tensor, "B ..."], y: Float[Tensor, "B ..."]
    ) -> Float[Tensor, "B p"]:
        code = self.encoder(self.units.inputs(x))
        both = torch.cat([code, self.units.standard(x, y).flatten(1)], 1)
        own: Tensor = self.own(self.hidden(both).relu())
        return self.common + own
