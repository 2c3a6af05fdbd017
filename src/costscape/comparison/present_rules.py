"""What people decide by now: their decisions so far, a function of X, columns of X."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from costscape.arrays import read
from costscape.data import Dataset
from costscape.methods import Method
from costscape.task import Task

TODAY, LAST = "today's decisions", "last values"


@dataclass
class Rule(Method):
    """Decides by a function of X, which nothing is learned for.

    Args:
        task: Task.
        rule: function from rows of X to their actions, (n, d) or (n,). Rows are a frame with the
            columns of fit, where those have names, else a numpy array.
        seed: int, default 0. Not used.
    """

    task: Task
    rule: Callable[[Any], Any]
    seed: int = 0

    def _fit(self, train: Dataset, val: Dataset) -> None:
        self._move_task(self.device())
        self.model_ = nn.Identity()

    def _decide(self, x: Tensor) -> Tensor:
        rows: Any = x.double().cpu().numpy()
        if self.x_columns_ is not None and x.ndim == 2:
            import pandas as pd

            rows = pd.DataFrame(rows, columns=list(self.x_columns_))
        return actions_of(self.rule(rows), len(x), self._task().feasible.dim).to(x)

    def _facts(self) -> dict[str, Any]:
        return {}

    def _rebuild(self, facts: dict[str, Any]) -> nn.Module:
        return nn.Identity()


@dataclass(frozen=True)
class Columns:
    """The actions are columns of X, such as the sales of a week ago."""

    names: tuple[str, ...]

    def __call__(self, rows: Any) -> Any:
        return rows[list(self.names)].to_numpy()


@dataclass(frozen=True)
class LastValues:
    """The d last values of a window (T, 1), projected onto the set of the task."""

    task: Task

    def __call__(self, rows: Any) -> Any:
        C = self.task.feasible
        last = torch.from_numpy(rows[:, -C.dim :, 0]).to(C.bounds[0])
        return C.project(last).double().cpu().numpy()


def rule_of(today: Any, task: Task, names: Sequence[str] | None) -> Rule | None:
    """``today`` as a method, where it is a function or columns; None for an array."""
    if callable(today):
        return Rule(task, today)
    columns = (today,) if isinstance(today, str) else today
    if not (
        isinstance(columns, list | tuple) and columns and all(isinstance(c, str) for c in columns)
    ):
        return None
    if unknown := [c for c in columns if c not in (names or ())]:
        raise ValueError(
            f"compare needs today to name columns of X, but {unknown[0]!r} is none of them. Name "
            f"columns of a frame, or pass a function of X or an array of decisions."
        )
    return Rule(task, Columns(tuple(columns)))


def last_values(task: Task, x: Tensor, y: Tensor) -> Rule | None:
    """The rule for windows (n, T, 1) of one series, y being its future; None for other rows."""
    if task.context is not None or x.ndim != 3 or y.ndim != 2:
        return None
    _, length, channels = x.shape
    fits = channels == 1 and y.shape[1] == task.feasible.dim <= length
    return Rule(task, LastValues(task)) if fits else None


def actions_of(value: Any, rows: int, dim: int) -> Tensor:
    """Actions (rows, dim) from an array, a frame or a list of the user."""
    a, _ = read(value, "today", torch.float64)
    a = a.reshape(len(a), -1)
    if tuple(a.shape) != (rows, dim):
        raise ValueError(
            f"compare needs today to have one action of {dim} numbers for each of {rows} rows, "
            f"but got shape {tuple(a.shape)}. Pass the decisions of all rows of X, in its order, "
            f"or a function of X."
        )
    return a
