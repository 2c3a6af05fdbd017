"""What methods with a forecast p(y | x) share: the network, its draws, its first fit."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from costscape.data import Dataset
from costscape.methods.method import seeded
from costscape.methods.selection import validation_cost
from costscape.methods.surfaces import ScenarioMethod
from costscape.models import Builder, Units, by_shape
from costscape.models.forecasts import Forecast, Mixture, MixtureForecast, Point, PointForecast
from costscape.models.relative_outcomes import Level
from costscape.scenarios import ExpectedCost
from costscape.task import Task
from costscape.training import Fit, History, Training, fit_all
from costscape.training.compiled_loss import Loss
from costscape.training.fit_state import Score, copy_of
from costscape.training.settings import check_ema

SHOWN = 1000  # draws of scenarios() where deciding needs none

Network = PointForecast | MixtureForecast


class ForecastMethod(ScenarioMethod):
    """Fits a forecast by likelihood, and then as the method has it.

    A mixture decides by the mean cost of ``draws`` draws from it, or, where ``draws`` is None, by
    its expected cost in closed form, if the task knows one. A point decides by its own cost.
    """

    forecast: Forecast
    draws: int | None
    encoder: Builder | None
    level: Level | None
    ema: float | None
    training: Training

    history_: list[History]

    @abstractmethod
    def _learn(self, task: Task, model: Network, train: Dataset, val: Dataset) -> list[History]:
        """Fit the fresh model; one history for each stage."""

    def __post_init__(self) -> None:
        check_ema(type(self).__name__, self.ema)
        if self.draws is not None and self.draws < 1:
            raise ValueError(
                f"{type(self).__name__} needs draws of at least 1, or None for the closed form, "
                f"but got {self.draws}."
            )
        if self.draws is None and isinstance(self.forecast, Mixture):
            self.task.of_normals()  # says so where the task does not know it

    def _fit(self, train: Dataset, val: Dataset) -> None:
        task, train, val = self._on_device(train, val)
        with seeded(self.seed, train.x.device):
            model = self._network(train)
        model = model.to(train.x)
        self.history_ = self._learn(task, model, train, val)
        self.model_ = model.eval()

    def _by_likelihood(self, task: Task, model: Network, train: Dataset, val: Dataset) -> History:
        """The first stage: least squares for a point, maximum likelihood for a mixture."""
        loss: Loss = lambda batch, rng: model.loss(batch.x, batch.y).mean()  # noqa: E731
        return self._stage(task, model, loss, train, val, "likelihood")

    def _stage(
        self,
        task: Task,
        model: Network,
        loss: Loss,
        train: Dataset,
        val: Dataset,
        name: str,
        training: Training | None = None,
        pairs: Dataset | None = None,
    ) -> History:
        """Minimise a loss over the training pairs; the epoch is chosen by decision cost.

        ``pairs`` are what the loss sees of them, where that is not (x, y).
        """
        training = training or self.training
        path = training.checkpoint
        fit = Fit(
            model,
            loss,
            seed=self.seed,
            score=self._score(task, val),
            ema=self.ema,
            title=f"{type(self).__name__} {name}",
            recipe=name + self._recipe(model, train, val),
        )
        training = replace(training, checkpoint=None if path is None else f"{path}.{name}")
        return fit_all([fit], pairs or train, training)[0]

    def _refine(
        self,
        task: Task,
        model: Network,
        loss: Loss,
        train: Dataset,
        val: Dataset,
        ways: Sequence[Training],
        pairs: Dataset | None = None,
    ) -> list[History]:
        """The later stage, each of ``ways`` from the same start.

        The model is left where its decisions cost least on val: after one of them, or at the
        start. The histories of the others say -1 for their best epoch.
        """
        start, kept = copy_of(model), None
        with torch.no_grad():
            least = self._score(task, val)(model.eval())
        best, histories = start, []
        for i, training in enumerate(ways):
            model.load_state_dict(start)
            name = "decisions" if len(ways) == 1 else f"decisions-{i}"
            history = self._stage(task, model, loss, train, val, name, training, pairs)
            if history.best < least:
                least, best, kept = history.best, copy_of(model), i
            histories.append(history)
        model.load_state_dict(best)
        for i, history in enumerate(histories):
            if i != kept:
                history.best_epoch = -1
        return histories

    def _score(self, task: Task, val: Dataset) -> Score:
        return validation_cost(task, val, self.solver, lambda m, x: self._cost(task, m, x))

    def _network(self, train: Dataset) -> Network:
        units = Units(train.x, train.y, self.level)
        encoder = (self.encoder or by_shape(tuple(train.x.shape[1:])))()
        if isinstance(self.forecast, Point):
            return PointForecast(encoder, units, tuple(train.y.shape[1:]))
        k = self.forecast.components
        rows = torch.randint(len(train), (k,)).to(train.x.device)
        labels = units.standard(train.x[rows], train.y[rows])
        return MixtureForecast(encoder, units, labels, self.draws or SHOWN)

    def _facts(self) -> dict[str, Any]:
        return {}

    def _rebuild(self, facts: dict[str, Any]) -> nn.Module:
        with seeded(self.seed):  # fresh weights are drawn, to be overwritten
            return self._network(Dataset(*self._blank(2)))

    def _cost(self, task: Task, model: nn.Module, x: Tensor) -> ExpectedCost:
        if self.draws is None and isinstance(model, MixtureForecast):
            return ExpectedCost(task.of_normals(), model.laws(x))
        return ExpectedCost(task, model(x))

    def _surface(self, x: Tensor) -> ExpectedCost:
        model, task = self._fitted(), self.task_
        assert task is not None
        with torch.no_grad():
            return self._cost(task, model, x)
