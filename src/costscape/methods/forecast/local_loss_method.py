"""What LODL and EGL share: a second stage on a learned loss for each pair.

``lodl`` has the formulas.
"""

from abc import abstractmethod
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from costscape.data import Dataset
from costscape.methods.forecast.decision_samples import (
    Forecasts,
    Sampler,
    best_move,
)
from costscape.methods.forecast.forecast_method import ForecastMethod, Network
from costscape.methods.forecast.local_losses import LocalLoss
from costscape.models.forecasts import Mixture, MixtureForecast, Point
from costscape.task import Refusal, Task
from costscape.training import History

STRETCH = 0.3  # standard deviation of the logarithm of the factor, for ``spread`` of 1


@dataclass(frozen=True)
class Fitted:
    """phi_n for n pairs, at (m - centre_n) / unit(x_n), and its weight in the training loss.

    m is (P, ...): the mean, and with ``stretch`` the log deviations.
    """

    centre: Float[Tensor, "n ..."]
    weight: Float[Tensor, "n"]
    parameters: Float[Tensor, "n p"]


class LocalLossMethod(ForecastMethod):
    """A forecast by likelihood, then trained on a learned loss for each pair.

    Errors are measured in ``spread`` standard deviations of the first forecast's residuals. The
    epoch whose decisions cost least on the validation rows is used, or the first stage. Of a
    mixture the locations are trained, with ``stretch`` all parameters.
    """

    takes_context: ClassVar[bool] = False
    takes_row_sets: ClassVar[bool] = False

    loss: LocalLoss
    samples: int | None
    spread: float
    stretch: bool
    cache: Path | str | None

    radius_: Tensor  # one unit of error, in standard deviations of the labels

    @abstractmethod
    def _fit_losses(self, task: Task, model: Network, train: Dataset) -> Fitted:
        """Sample decisions and fit phi_n to them."""

    def resolved_defaults(self, train: Dataset) -> dict[str, Any]:
        return {**super().resolved_defaults(train), "acceptance": "least validation cost"}

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.forecast, Point | Mixture):
            raise Refusal(
                f"{type(self).__name__} needs forecast=Point() or Mixture(k), whose mean it "
                f"trains, but got {self.forecast!r}. TwoStage and DFL take every forecast."
            )

    def _learn(self, task: Task, model: Network, train: Dataset, val: Dataset) -> list[History]:
        first = self._by_likelihood(task, model, train, val)
        with torch.no_grad():
            one = torch.ones_like(train.y[:, None])
            residual = (train.y - model.mean(train.x))[:, None] / model.units.spread(train.x, one)
        self.radius_ = self.spread * residual.std(0, correction=0).clamp(min=1e-6)
        fitted = self._fit_losses(task, model, train)
        return [first, *self._train(task, model, fitted, train, val)]

    def _unit(self, model: Network, x: Tensor) -> Tensor:
        """One unit of error at each x, (B, 1, P, *y_shape), of the numbers of ``_state``."""
        shift = model.units.spread(x, self.radius_.expand(len(x), *self.radius_.shape))
        if not self._stretches(model):
            return shift.unsqueeze(2)
        return torch.stack([shift, torch.full_like(shift, STRETCH * self.spread)], 2)

    def _state(self, model: Network, x: Tensor) -> Tensor:
        """What a local loss sees of the forecast, (B, P, *y_shape), P = 2 with ``stretch``."""
        parts = [model.mean(x)]
        if self._stretches(model):
            assert isinstance(model, MixtureForecast)
            parts.append(model.log_deviation(x))
        return torch.stack(parts, 1)

    def _stretches(self, model: Network) -> bool:
        return self.stretch and isinstance(model, MixtureForecast)

    def _shifts(self, model: Network, shifts: Tensor) -> Tensor:
        """Moves (n, K, P, ...) that shift a forecast and leave its deviations."""
        still = [torch.zeros_like(shifts)] * self._stretches(model)
        return torch.stack([shifts, *still], 2)

    def _losses(self, sets: Forecasts, moves: Tensor) -> Tensor:
        """t_nk of moves (n, K, P, ...)."""
        return self._sampler().losses(sets, moves if moves.shape[2] > 1 else moves[:, :, 0])

    def _sampler(self) -> Sampler:
        return Sampler(
            self.solver, self.cache, f"{type(self).__name__} samples", self.training.progress
        )

    def _train(
        self, task: Task, model: Network, fitted: Fitted, train: Dataset, val: Dataset
    ) -> list[History]:
        d = fitted.centre[0].numel()
        # a loss travels with its x through the shuffled batches, in the place of the label
        packed = torch.cat(
            [fitted.centre.flatten(1), fitted.weight[:, None], fitted.parameters], 1
        )

        def loss(batch: Dataset, rng: Generator) -> Tensor:
            centre, weight, parameters = batch.y.split([d, 1, batch.y.shape[1] - d - 1], 1)
            error = (self._state(model, batch.x).flatten(1) - centre)[:, None]
            e = error / self._unit(model, batch.x).flatten(2)
            value: Tensor = (weight * self.loss.value(parameters, e)).mean()
            return value

        if isinstance(model, MixtureForecast) and not self.stretch:
            locations = getattr(model.head, "location", model.head)  # an own head may be one piece
            model.requires_grad_(False)
            locations.requires_grad_(True)
        pairs = Dataset(train.x, packed)
        histories = self._refine(task, model, loss, train, val, [self.training], pairs)
        model.requires_grad_(True)
        return histories


def first_moves(
    sampler: Sampler, sets: Forecasts, mean: Float[Tensor, "n ..."]
) -> Float[Tensor, "n G ..."]:
    """Shifts that may bring the decision of a set to the best one.

    For costs of y - a that is the difference of the decisions, a(y_n) - a(F_n), in the interior
    of C; also tried are the mean to y_n, and no move.
    """
    y = sets.y
    guesses = [y - mean, torch.zeros_like(y)]
    if sets.task.feasible.dim == prod(y.shape[1:]):
        shift = sampler.hindsight(sets.task, y) - sampler.decisions(sets)
        guesses.insert(0, shift.reshape(y.shape))
    return torch.stack(guesses, 1)


def around_best(
    state: Float[Tensor, "n ..."], moves: Float[Tensor, "n K ..."], t: Float[Tensor, "n K"]
) -> tuple[Tensor, Tensor, Tensor]:
    """The state with the least loss, the moves from it, and their losses over that least."""
    best = best_move(t, moves)
    over = t - t.min(1, keepdim=True).values
    return state + best, moves - best[:, None], over
