"""What methods with a forecast p(y | x) share: the network, its draws, its first fit."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Generator, Tensor, nn

from costscape.data import Dataset
from costscape.methods.method import seeded
from costscape.methods.selection import validation_cost
from costscape.methods.surfaces import ScenarioMethod
from costscape.models import Builder, Units, encoder_for
from costscape.models.forecast_contract import Forecast, ForecastNetwork
from costscape.models.relative_outcomes import Level
from costscape.scenarios import ExpectedCost
from costscape.task import Task
from costscape.training import Fit, History, Training, fit_all
from costscape.training.compiled_loss import Loss
from costscape.training.fit_state import Score, copy_of

Network = ForecastNetwork


class ForecastMethod(ScenarioMethod):
    """Fits a forecast by likelihood, and then as the method has it.

    A forecast with a law decides by the mean cost of ``draws`` draws from it. Where ``draws`` is
    None, a mixture decides by its expected cost in closed form, if the task has one. A point
    decides by its own cost.
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
        self.forecast.check(self.task, self.draws)

    def chosen(self) -> dict[str, Any]:
        """``epoch`` of the later stage whose weights are used; 0 is the first stage, unchanged."""
        later = self.history_[1:]
        return {"epoch": max(h.best_epoch + 1 for h in later)} if later else {}

    def _fit(self, train: Dataset, val: Dataset) -> None:
        task, train, val = self._on_device(train, val)
        with seeded(self.seed, train.x.device):
            model = self._network(train)
        model = model.to(train.x)
        self.history_ = self._learn(task, model, train, val)
        self.model_ = model.eval()

    def _by_likelihood(self, task: Task, model: Network, train: Dataset, val: Dataset) -> History:
        """The first stage: the forecast's loss, least squares for a point."""
        loss: Loss = lambda batch, rng: model.loss(batch.x, batch.y, rng).mean()  # noqa: E731
        history = self._stage(task, model, loss, train, val, "likelihood")
        with torch.no_grad():
            model.calibrate(train.x, train.y, Generator(train.x.device).manual_seed(self.seed))
        return history

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
        start, kept, least = copy_of(model), None, float("inf")
        best, histories = start, []
        for i, training in enumerate(ways):
            model.load_state_dict(start)
            name = "decisions" if len(ways) == 1 else f"decisions-{i}"
            history = self._stage(task, model, loss, train, val, name, training, pairs)
            if history.best_epoch >= 0 and history.best < least:
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
        encoder = encoder_for(self.encoder, tuple(train.x.shape[1:]))
        return self.forecast.network(encoder, units, train.x, train.y, self.draws)

    def _facts(self) -> dict[str, Any]:
        return {}

    def _rebuild(self, facts: dict[str, Any]) -> nn.Module:
        with seeded(self.seed):  # fresh weights are drawn, to be overwritten
            return self._network(Dataset(*self._blank(2)))

    def _cost(self, task: Task, model: nn.Module, x: Tensor) -> ExpectedCost:
        assert isinstance(model, ForecastNetwork)
        return model.expected_cost(task, x, self.draws)

    def _surface(self, x: Tensor) -> ExpectedCost:
        model, task = self._fitted(), self.task_
        assert task is not None
        with torch.no_grad():
            return self._cost(task, model, x)
