"""What methods need of a forecast of y given x: settings that build a network, and the network."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Generator, Tensor, nn

from costscape.models.scaling import Units
from costscape.scenarios import ExpectedCost, Scenarios
from costscape.task import Task
from costscape.training.settings import Checked


class ForecastNetwork(nn.Module, ABC):
    """x -> scenarios of y, trained by a loss of each pair."""

    encoder: nn.Module
    units: Units

    @abstractmethod
    def forward(self, x: Float[Tensor, "B ..."]) -> Scenarios:
        """The scenarios to decide for: repeatable, and the same for a row in any batch."""

    @abstractmethod
    def mean(self, x: Float[Tensor, "B ..."]) -> Float[Tensor, "B ..."]:
        """The mean outcome, in the user's units."""

    @abstractmethod
    def loss(
        self, x: Float[Tensor, "B ..."], y: Float[Tensor, "B ..."], rng: Generator | None = None
    ) -> Float[Tensor, "B"]:
        """The training loss of each pair; a loss with random numbers draws them from ``rng``."""

    @abstractmethod
    def samples(
        self, x: Float[Tensor, "B ..."], draws: int, rng: Generator
    ) -> Float[Tensor, "B M ..."]:
        """Fresh draws of weight 1 / M through which gradients flow."""

    def calibrate(
        self, x: Float[Tensor, "n ..."], y: Float[Tensor, "n ..."], rng: Generator
    ) -> None:
        """Store what forward needs of the training pairs, once the weights are trained."""

    def expected_cost(
        self,
        task: Task,
        x: Float[Tensor, "B ..."],
        draws: int | None,
        rng: Generator | None = None,
    ) -> ExpectedCost:
        """g(x, .) for deciding, or with fresh draws from ``rng`` for a training step."""
        if rng is None:
            return ExpectedCost.at(task, x, self(x))
        y = self.samples(x, draws or 1, rng)
        equal = torch.full_like(y.flatten(2)[..., 0], 1 / y.shape[1])
        return ExpectedCost.at(task, x, Scenarios(equal, y))


@dataclass(frozen=True)
class Forecast(Checked, ABC):
    """The settings of a forecast, from which a method builds its network."""

    @abstractmethod
    def network(
        self,
        encoder: nn.Module,
        units: Units,
        x: Float[Tensor, "n ..."],
        y: Float[Tensor, "n ..."],
        draws: int | None,
    ) -> ForecastNetwork:
        """A fresh network; ``x`` and ``y`` are the training pairs, ``draws`` those of deciding."""

    @abstractmethod
    def check(self, task: Task, draws: int | None) -> None:
        """Raise an error where draws=None needs a closed form that there is not."""
