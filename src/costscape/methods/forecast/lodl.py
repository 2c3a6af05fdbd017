"""LODL: train the forecaster on losses that were fitted to what its decisions would cost.

    sample   t_nk = f(y_n, a(F_n + e_nk)) - f(y_n, a(y_n))          (decision_samples)
    fit      phi_n: mean_k (phi_n(e_nk) - t_nk)^2 -> min, each n     (local_losses)
    train    mean_n phi_n(m(x_n) - c_n) -> min over the forecaster m

A point forecast is perturbed around the outcome, F_n = c_n = y_n. A mixture is perturbed as a
set: F_n are its draws at x_n, shifted together, m(x) is its mean, and c_n the mean at which the
decision costs least at y_n. That mean is not y_n: a cost that is not symmetric puts the decision
of a set off its mean. With ``stretch`` the draws are also stretched about their mean, and m(x) and
c_n hold the logarithm of the deviations, too. A shift alone reaches the best decision of a pair,
so the stretch of c_n is mostly 1: the second stage then holds the deviations where they are.

Shah, Wang, Wilder, Perrault and Tambe, Decision-Focused Learning without Decision-Making: Learning
Locally Optimized Decision Losses, NeurIPS 2022.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Generator, Tensor

from costscape.data import Dataset
from costscape.methods.forecast.decision_samples import (
    Forecasts,
    best_move,
    perturbations,
)
from costscape.methods.forecast.forecast_method import Network
from costscape.methods.forecast.local_loss_method import (
    Fitted,
    LocalLossMethod,
    around_best,
    first_moves,
)
from costscape.methods.forecast.local_losses import LocalLoss, LossNetwork, fit_losses
from costscape.models import Builder
from costscape.models.forecasts import Forecast, MixtureForecast, Point
from costscape.models.relative_outcomes import Level
from costscape.solvers import Auto, Solver
from costscape.task import Task
from costscape.training import Training
from costscape.training.settings import Count, Decay, Positive


@dataclass
class LODL(LocalLossMethod):
    """Fits a loss phi_n to decision costs for each pair, then trains the forecast on phi_n.

    The epoch whose decisions cost least on the validation rows is used. Where that is the first
    stage, ``history_[1].best_epoch`` is -1.

    Args:
        task: Task. The cost and the feasible set.
        forecast: Forecast, default Point(). Point() or Mixture(k).
        loss: LocalLoss, default LossNetwork(). Family of phi_n: WeightedMSE(),
            DirectedWeightedMSE(), Quadratic(), DirectedQuadratic() or LossNetwork().
        samples: int, default None: 120 for a point and 30 for a mixture. Number of perturbed
            forecasts to decide on for each pair; the paper has 5,000. A mixture with M draws takes
            M times the work for each, and half as many samples again to find the best location.
        spread: float, default 1.5. Standard deviation of the perturbations, in standard deviations
            of the residuals of the first forecast.
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
            stages.
        seed: int, default 0. Seed of the initial weights, the batches and the samples.

    Cost: ``samples`` decisions for each training row, before the second stage.

    >>> import numpy as np
    >>> import costscape as cs
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.random((40, 3)), rng.random((40, 2))
    >>> training = cs.Training(epochs=1, progress=False)
    >>> method = cs.LODL(
    ...     cs.problems.inventory(days=2), loss=cs.WeightedMSE(), samples=8, training=training
    ... )
    >>> method.fit(X, Y).decide(X[:5]).shape
    (5, 2)
    """

    task: Task
    forecast: Forecast = field(default_factory=Point)
    loss: LocalLoss = field(default_factory=LossNetwork)
    samples: Count | None = None
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

    @classmethod
    def as_in_paper(cls, task: Task, **settings: Any) -> "LODL":
        """The paper's numbers: 5,000 samples for each pair, and 4 layers of 100 units.

        Args:
            task: Task. The cost and the feasible set.
            settings: other arguments of LODL.
        """
        paper = {"loss": LossNetwork(hidden=100, layers=4), "samples": 5000}
        return cls(task, **{**paper, **settings})

    def _fit_losses(self, task: Task, model: Network, train: Dataset) -> Fitted:
        rng = Generator(train.x.device).manual_seed(self.seed)
        with torch.no_grad():
            unit = self._unit(model, train.x)
            k = self.samples or (30 if isinstance(model, MixtureForecast) else 120)
            noise = unit * perturbations(len(train), k, unit[0, 0], rng)
            if isinstance(model, MixtureForecast):
                centre, e, t = self._around_sets(task, model, train, noise)
            else:
                t = self._losses(Forecasts.of_outcomes(task, train.y), noise)
                centre, e = train.y[:, None], noise
            # a pair whose decision hardly matters weighs little; its loss is fitted all the same
            scale = t.mean(1)
            scale = scale.clamp(min=1e-3 * float(scale.mean()) + 1e-30)
        parameters = fit_losses(
            self.loss,
            (e / unit).flatten(2),
            t / scale[:, None],
            seed=self.seed,
            title="LODL losses",
            shown=self.training.progress,
        )
        return Fitted(centre, scale / scale.mean(), parameters)

    def _around_sets(
        self, task: Task, model: MixtureForecast, train: Dataset, noise: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The best states, and moves from them with their losses over that at the best."""
        sets = Forecasts(task, self._cost(task, model, train.x), train.y)
        state = self._state(model, train.x)
        guesses = self._shifts(model, first_moves(self._sampler(), sets, state[:, 0]))
        about = self._shifts(model, (train.y - state[:, 0])[:, None])
        moves = torch.cat([guesses, about + noise[:, ::2]], 1)
        t = self._losses(sets, moves)
        more = best_move(t, moves)[:, None] + noise
        moves, t = torch.cat([moves, more], 1), torch.cat([t, self._losses(sets, more)], 1)
        return around_best(state, moves, t)
