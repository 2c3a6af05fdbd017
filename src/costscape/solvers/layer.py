"""The contract of a differentiable argmin."""

from abc import ABC, abstractmethod

from jaxtyping import Float
from torch import Tensor

from costscape.scenarios import ExpectedCost
from costscape.task import Refusal, Task
from costscape.training.settings import Checked


class Layer(Checked, ABC):
    """The base of all layers: a*(x) = argmin over C of g(x, a), with gradients to the scenarios.

    A layer is a frozen dataclass of settings; this base has none. The answer is differentiable
    once in ``g.scenarios.weights`` and ``g.scenarios.values``; row b depends on row b of g alone.
    ``Implicit`` has an example.
    """

    def __call__(self, g: ExpectedCost) -> Float[Tensor, "B d"]:
        if reason := self.refuses(g.task):
            raise Refusal(f"{type(self).__name__} {reason}.")
        return self._argmin(g)

    @abstractmethod
    def refuses(self, task: Task) -> str | None:
        """Why this layer cannot take the task, or None if it can."""

    @abstractmethod
    def _argmin(self, g: ExpectedCost) -> Tensor:
        """The decisions (B, d), once the task is known to fit."""
