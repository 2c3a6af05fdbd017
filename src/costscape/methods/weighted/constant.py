"""The best constant action: what x is worth shows in how much it is beaten by."""

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from costscape.data import Dataset
from costscape.methods.base import Method
from costscape.scenarios import ExpectedCost, Scenarios
from costscape.solvers import Auto, Solver
from costscape.solvers.solver import check_feasible
from costscape.task import Task


@dataclass
class Constant(Method):
    """argmin_a mean_i f(y_i, a) over the training labels, whatever x.

    ``action``: a rule of thumb to take instead, one number for each coordinate.
    """

    task: Task
    action: tuple[float, ...] | None = None
    solver: Solver = field(default_factory=Auto)
    seed: int = 0

    def __post_init__(self) -> None:
        if self.action is not None and len(self.action) != self.task.feasible.dim:
            raise ValueError(
                f"Constant needs an action of {self.task.feasible.dim} numbers, as the feasible "
                f"set has, but got {len(self.action)}."
            )

    def _fit(self, train: Dataset, val: Dataset) -> None:
        lower = self.task.feasible.bounds[0]
        self.task_ = self.task
        if self.action is not None:
            told = lower.new_tensor(self.action)
            check_feasible(told[None], self.task.feasible, "Constant")
            self.model_ = _Same(told)
            return
        y = train.y.to(lower.device)
        labels = Scenarios(y.new_full((1, len(y)), 1 / len(y)), y.unsqueeze(0))
        g = ExpectedCost(self.task, labels)
        self.model_ = _Same(self.solver.minimise(g, self.task.feasible, 1).action[0])

    def _decide(self, x: Tensor) -> Tensor:
        action: Tensor = self._fitted()(x)
        return action

    def _facts(self) -> dict[str, Any]:
        return {}

    def _rebuild(self, facts: dict[str, Any]) -> nn.Module:
        return _Same(torch.zeros(self.task.feasible.dim))


class _Same(nn.Module):
    def __init__(self, action: Tensor) -> None:
        super().__init__()
        self.register_buffer("action", action.clone())
        self.action: Tensor

    def forward(self, x: Tensor) -> Tensor:
        return self.action.expand(len(x), -1)
