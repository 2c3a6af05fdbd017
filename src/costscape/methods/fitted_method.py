"""What a fitted method does: decide, be saved, be restored."""

from abc import ABC, abstractmethod
from dataclasses import fields
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from costscape.arrays import Form, read
from costscape.methods import saving
from costscape.task import Task


class FittedMethod(ABC):
    """x -> a in C, by a model. Names that end in ``_`` are learned."""

    task: Task
    seed: int

    x_shape_: tuple[int, ...] | None = None
    y_shape_: tuple[int, ...] = ()
    columns_: tuple[str, ...] | None = None
    flat_: bool = False  # y came as one number a row, and so do the decisions
    fit_seconds_: float | None = None
    model_: nn.Module | None = None
    task_: Task | None = None  # the task, on the device of the model

    @abstractmethod
    def _decide(self, x: Tensor) -> Tensor:
        """One action (B, d) for each x."""

    @abstractmethod
    def _facts(self) -> dict[str, Any]:
        """What fit chose besides tensors, as JSON: enough to build the model again, empty."""

    @abstractmethod
    def _rebuild(self, facts: dict[str, Any]) -> nn.Module:
        """The model of those facts, its tensors still to be filled."""

    def decide(self, X: Any) -> Any:
        """One feasible action for each row of X."""
        x, form = self._read(X)
        a = self._decide(x)
        return self._give(form, a)

    def save(self, path: str | Path) -> None:
        """Write the fitted method to one file; ``costscape.load(path, task)`` reads it."""
        tensors = self._fitted().state_dict()
        fitted = {
            "x_shape": self.x_shape_,
            "y_shape": self.y_shape_,
            "columns": self.columns_,
            "flat": self.flat_,
            "dim": self.task.feasible.dim,
            "facts": self._facts(),
        }
        saving.write(Path(path), tensors, {**self.to_json(), "fitted": fitted})

    def to_json(self) -> dict[str, Any]:
        """The class and the settings, the task apart; ``costscape.load`` reads them."""
        settings = {name: getattr(self, name) for name in setting_names(self) if name != "task"}
        return {
            "method": type(self).__name__,
            "settings": {name: saving.to_json(value) for name, value in settings.items()},
        }

    def restore(self, tensors: dict[str, Tensor], fitted: dict[str, Any]) -> None:
        """Become the fitted method that ``save`` wrote; called by ``load``."""
        if fitted["dim"] != self.task.feasible.dim:
            raise ValueError(
                f"The model was fitted for decisions of {fitted['dim']} numbers, but this task's "
                f"feasible set has {self.task.feasible.dim}. Pass the task it was fitted for."
            )
        self.x_shape_, self.y_shape_ = tuple(fitted["x_shape"]), tuple(fitted["y_shape"])
        self.columns_ = fitted["columns"] and tuple(fitted["columns"])
        self.flat_ = fitted["flat"]
        self.task_ = self.task
        model = self._rebuild(fitted["facts"])
        like = next(value for value in tensors.values() if value.is_floating_point())
        model.to(like.dtype).load_state_dict(tensors)
        self.model_ = model.to(self.task.feasible.bounds[0]).eval()

    def _fitted(self) -> nn.Module:
        if self.model_ is None:
            raise RuntimeError(
                f"This {type(self).__name__} has not been fitted. Call fit(X, Y) first."
            )
        return self.model_

    def _blank(self, rows: int) -> tuple[Tensor, Tensor]:
        """Stand-ins of the shapes seen in fit, to build an empty model on; ones have a level."""
        like = self.task.feasible.bounds[0]
        x_shape = self.x_shape_ or ()
        return like.new_ones(rows, *x_shape), like.new_ones(rows, *self.y_shape_)

    def _read(self, X: Any) -> tuple[Tensor, Form]:
        self._fitted()
        x, form = read(X, "X", self.task.feasible.bounds[0].dtype)
        x = x.unsqueeze(-1) if x.ndim == 1 and self.x_shape_ == (1,) else x
        if tuple(x.shape[1:]) != self.x_shape_:
            raise ValueError(
                f"X needs rows of shape {self.x_shape_}, as in fit, but has rows of shape "
                f"{tuple(x.shape[1:])}. One single row is passed as x[None]."
            )
        assert self.task_ is not None
        return x.to(self.task_.feasible.bounds[0]), form

    def _give(self, form: Form, a: Tensor) -> Any:
        columns = self.columns_ if self.columns_ and len(self.columns_) == a.shape[-1] else None
        return form.give(a[:, 0] if self.flat_ and a.shape[-1] == 1 else a, columns)


def setting_names(method: Any) -> list[str]:
    return [f.name for f in fields(method)]
