"""The contract of a method: fit on (x, y), then decide x -> a in C."""

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Generator, Tensor, nn

from costscape.arrays import Form, columns_of, read
from costscape.data import Dataset, Fold
from costscape.methods import saving
from costscape.solvers.solver import check_solver
from costscape.task import Task
from costscape.training import Training

M = TypeVar("M", bound="Method")
HELD_OUT = 0.2  # the share of the rows, the latest, that chooses the epoch when no val is given


class Method(ABC):
    """Learns to decide. Settings go to the constructor, data to ``fit``.

    ``fit`` forgets any earlier fit and returns the method itself. Features and outcomes are
    numpy arrays, torch tensors, pandas frames or lists of n rows; answers come back as what came
    in. Names that end in ``_`` are learned. The method works in the precision of the task's set,
    float32 unless ``task.double()``.
    """

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
    def _fit(self, train: Dataset, val: Dataset) -> None:
        """Learn from train; use val only to choose the epoch and other settings."""

    @abstractmethod
    def _decide(self, x: Tensor) -> Tensor:
        """One action (B, d) for each x."""

    def resolved_defaults(self, train: Dataset) -> dict[str, Any]:
        """Return what settings left at None stand for on such data, as JSON."""
        return {}

    def chosen(self) -> dict[str, Any]:
        """What the fit chose, as JSON: the form of outcomes, the weights of candidates."""
        return {}

    def changed(self: M, **settings: Any) -> M:
        """An unfitted copy with some settings changed."""
        return replace(self, **settings)  # type: ignore[type-var]

    def setting_names(self) -> set[str]:
        """The settings that ``changed`` takes."""
        return {f.name for f in fields(self)}  # type: ignore[arg-type]

    def trains(self) -> Training | None:
        """How the method trains its networks; None where it has none."""
        return getattr(self, "training", None)

    @classmethod
    def fit_together(
        cls, methods: Sequence["Method"], pairs: Dataset, folds: Sequence[Fold]
    ) -> bool:
        """Fit several methods of this class at once, each without its fold, if that is faster.

        False leaves them unfitted, to be fitted one by one.
        """
        return False

    @abstractmethod
    def _facts(self) -> dict[str, Any]:
        """What fit chose besides tensors, as JSON: enough to build the model again, empty."""

    @abstractmethod
    def _rebuild(self, facts: dict[str, Any]) -> nn.Module:
        """The model of those facts, its tensors still to be filled."""

    def fit(self: M, X: Any, Y: Any, val: tuple[Any, Any] | None = None) -> M:
        """Learn from n pairs; ``val`` or else the last fifth of them chooses the epoch."""
        if hasattr(self, "solver"):
            check_solver(self.solver, type(self).__name__)
        lower = self.task.feasible.bounds[0]
        x, y, columns = _pairs(X, Y, "X", "Y", lower.dtype)
        flat = y.ndim == 1
        data = Dataset(x, y.unsqueeze(-1) if flat else y)
        if val is None:
            cut = round(len(data) * (1 - HELD_OUT))
            if cut < 1 or cut == len(data):
                raise ValueError(
                    f"fit needs rows to learn from and rows to choose the epoch on, but got "
                    f"{len(data)} in all. Bring more rows, or pass val=(X_val, Y_val)."
                )
            train, held = data[:cut], data[cut:]
        else:
            train, held = data, self._validation(val, data)
        _check_task(self.task, train.y, self.seed)
        self.model_ = None  # a fit that is broken off leaves no model of other shapes behind
        self.x_shape_, self.y_shape_ = tuple(x.shape[1:]), tuple(data.y.shape[1:])
        self.flat_, self.columns_ = flat, columns
        begin = time.perf_counter()
        self._fit(train, held)
        self.fit_seconds_ = time.perf_counter() - begin
        return self

    def decide(self, X: Any) -> Any:
        """One feasible action for each row of X."""
        x, form = self._read(X)
        a = self._decide(x)
        return self._give(form, a)

    def save(self, path: str | Path) -> None:
        """Write the fitted method to one file; ``costscape.load(path, task)`` reads it."""
        model = self._fitted()
        header = {
            **self.to_json(),
            "fitted": {
                "x_shape": self.x_shape_,
                "y_shape": self.y_shape_,
                "columns": self.columns_,
                "flat": self.flat_,
                "dim": self.task.feasible.dim,
                "facts": self._facts(),
            },
        }
        saving.write(Path(path), model.state_dict(), header)

    def to_json(self) -> dict[str, Any]:
        """The class and the settings, the task apart; ``costscape.load`` reads them."""
        settings = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "task"}  # type: ignore[arg-type]
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

    def _move_task(self, device: torch.device) -> Task:
        """The task itself where it already is, a copy elsewhere: the user's own stays put."""
        here = self.task.feasible.bounds[0].device
        self.task_ = self.task if here == device else deepcopy(self.task).to(device)
        return self.task_

    def _recipe(self, model: nn.Module, train: Dataset, val: Dataset, *but: str) -> str:
        """What two fits must share for one to go on from the other's checkpoint.

        Settings, less those named in ``but``, the network and the data. The task is code: some of
        its costs stand for it, to digits that all machines agree on.
        """
        assert is_dataclass(self)
        training = self.trains()
        if training is None or training.checkpoint is None:
            return ""  # there is no file that another fit could have written
        own = {"task", "training", "seed", *but}
        kept = [saving.to_json(getattr(self, f.name)) for f in fields(self) if f.name not in own]
        lower = self.task.feasible.bounds[0]
        a = self.task.feasible.sample(4, Generator(lower.device).manual_seed(self.seed))
        numbers = [val.x.double().mean(), val.y.double().mean()]
        with torch.no_grad():
            numbers += [*self.task.cost(train.y[:16, None].to(lower), a).double().mean(0)]
        known = [f"{number:.4g}" for number in numbers]
        return repr((kept, str(model), known))

    def _blank(self, rows: int) -> tuple[Tensor, Tensor]:
        """Stand-ins of the shapes seen in fit, to build an empty model on; ones have a level."""
        like = self.task.feasible.bounds[0]
        x_shape = self.x_shape_ or ()
        return like.new_ones(rows, *x_shape), like.new_ones(rows, *self.y_shape_)

    def _validation(self, val: tuple[Any, Any], data: Dataset) -> Dataset:
        if not (isinstance(val, Sequence) and len(val) == 2):
            raise TypeError(
                f"val needs a pair (X_val, Y_val), but got {type(val).__name__}. Write "
                f"fit(X, Y, val=(X_val, Y_val))."
            )
        x, y, _ = _pairs(*val, "X of val", "Y of val", data.x.dtype)
        held = Dataset(x, y.unsqueeze(-1) if y.ndim == 1 else y)
        if held.x.shape[1:] != data.x.shape[1:] or held.y.shape[1:] != data.y.shape[1:]:
            raise ValueError(
                f"val needs rows like those of X {tuple(data.x.shape[1:])} and Y "
                f"{tuple(data.y.shape[1:])}, but has {tuple(held.x.shape[1:])} and "
                f"{tuple(held.y.shape[1:])}. Cut it from the same table."
            )
        return held

    def _read(self, X: Any) -> tuple[Tensor, Form]:
        self._fitted()
        x, form = read(X, "X", self.task.feasible.bounds[0].dtype)
        if x.ndim == 1 and self.x_shape_ == (1,):
            x = x.unsqueeze(-1)
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


def _pairs(
    X: Any, Y: Any, x_name: str, y_name: str, dtype: torch.dtype
) -> tuple[Tensor, Tensor, tuple[str, ...] | None]:
    (x, _), (y, _) = read(X, x_name, dtype), read(Y, y_name, dtype)
    if x.ndim == 1:
        x = x.unsqueeze(-1)
    if len(x) != len(y):
        raise ValueError(
            f"{x_name} and {y_name} need the same number of rows, but have {len(x)} and {len(y)}. "
            f"Each row of {x_name} goes with the outcome that followed it."
        )
    names = columns_of(Y)
    return x, y, None if names is None else tuple(str(name) for name in names)


def _check_task(task: Task, y: Tensor, seed: int) -> None:
    """f must give finite costs of the right shape on this data before hours are spent on it."""
    lower = task.feasible.bounds[0]
    if y.ndim != 1 + task.y_dims:
        raise ValueError(
            f"Y needs {1 + task.y_dims} axes, rows and the {task.y_dims} of one outcome, but has "
            f"shape {tuple(y.shape)}. Reshape it, or make the task with y_dims={y.ndim - 1}."
        )
    a = task.feasible.sample(4, Generator(lower.device).manual_seed(seed))
    some = y[:: max(1, len(y) // 64)].to(lower)
    try:
        with torch.no_grad():
            cost = task.cost(some.unsqueeze(1), a)
    except (RuntimeError, IndexError) as error:
        raise ValueError(
            f"cost(y, a) must take y {(len(some), 1, *some.shape[1:])} and a {tuple(a.shape)}, "
            f"whose leading axes broadcast, but failed: {error}. An outcome of Y has shape "
            f"{tuple(some.shape[1:])}, an action {task.feasible.dim} numbers; they need not be "
            f"alike, but the cost must be written for both."
        ) from error
    if not cost.isfinite().all():
        i, j = (int(k) for k in (~cost.isfinite()).nonzero()[0])
        raise ValueError(
            f"cost(y, a) must be finite on the data and the feasible set, but is "
            f"{float(cost[i, j])} at y = {some[i].flatten()[:8].tolist()} and a = "
            f"{a[j][:8].tolist()}. Guard divisions, logarithms and roots in the cost."
        )
