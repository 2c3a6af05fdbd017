"""The best constant action: what x is worth shows in how much it is beaten by."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from costscape.data import Dataset
from costscape.methods.method import Method
from costscape.methods.selection import mean_cost
from costscape.solvers import Auto, Solver
from costscape.solvers.solver import check_feasible
from costscape.task import Task


@dataclass
class Constant(Method):
    """argmin_a mean_i f(y_i, a) over the training labels, whatever x.

    Args:
        task: Task. The cost and the feasible set.
        action: tuple of d numbers, a rule of thumb to take instead; default None.
        solver: Solver, default Auto().
        seed: int, default 0. Not used.

    >>> import costscape as cs
    >>> cs.Constant(cs.Task(lambda y, a: (y - a).square().sum(-1), cs.Box(0.0, 1.0, dim=1))).seed
    0
    """

    takes_row_sets: ClassVar[bool] = False

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
        task = self._task()
        lower = task.feasible.bounds[0]
        if self.action is not None:
            action = lower.new_tensor(self.action)
            check_feasible(action[None], task.feasible, "Constant")
        else:
            g = mean_cost(task, task.join(train.x, train.y).to(lower.device))
            action = self.solver.minimise(g, task.feasible, 1).action[0]
        self.model_ = _Same(action)

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
