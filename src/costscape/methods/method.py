"""The contract of a method: fit on (x, y), then decide x -> a in C."""

import time
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, ClassVar, TypeVar

import numpy as np
import torch
from torch import nn

import costscape
from costscape.arrays import check_names, check_time_order, labels_of, names_of, read_pairs
from costscape.context import SetOfContext
from costscape.data import Dataset, Fold, fold_numbers, join
from costscape.methods import saving
from costscape.methods.cost_probe import check_axes, cost_sample, probe_cost
from costscape.methods.estimator import Estimator
from costscape.methods.fit_record import FitRecord
from costscape.methods.fitted_method import setting_names
from costscape.methods.kept_rows import NUMBERS, ROWS, KeptRows
from costscape.methods.update_result import NewRows, Update
from costscape.models import by_shape
from costscape.task import Refusal, Task
from costscape.training import Diverged, Training
from costscape.training.settings import RATE

M = TypeVar("M", bound="Method")
APART = 1000  # between the seeds of two folds of a candidate
HELD_OUT = 0.2  # the share of the rows, the latest, that chooses the epoch when no val is given


class Method(Estimator):
    """Learns to decide. Settings are arguments of the constructor; ``fit`` takes the data.

    ``fit`` discards any earlier fit and returns the method itself. Features and outcomes are numpy
    arrays, torch tensors, pandas frames or lists of n rows; ``decide`` returns the type of its
    argument. The method works in the precision of the task's set, float32 unless
    ``task.double()``.

    This base class has no constructor arguments. A subclass is a dataclass of its settings. Every
    method has these attributes.

    Attributes:
        task: Task. The cost and the feasible set.
        seed: int. Seed of all random numbers of the fit.

    >>> import numpy as np
    >>> import costscape as cs
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.random((40, 3)), rng.random((40, 2))
    >>> method = cs.NearestNeighbours(cs.problems.inventory(days=2), k=10).fit(X, Y)
    >>> method.decide(X[:5]).shape
    (5, 2)
    """

    takes_context: ClassVar[bool] = True  # whether it serves cost(y, a, x)
    takes_row_sets: ClassVar[bool] = True  # whether it serves sets that are functions of x

    @abstractmethod
    def _fit(self, train: Dataset, val: Dataset) -> None:
        """Learn from train; use val only to choose the epoch and other settings."""

    def _updated(self, batch: NewRows) -> nn.Module | None:
        """A model that has also learned from new rows; None where the method cannot."""
        return None

    def resolved_defaults(self, train: Dataset) -> dict[str, Any]:
        """Return what settings left at None stand for on such data, as JSON."""
        training, found = self.trains(), dict[str, Any]()
        if training is not None and training.lr is None:
            found["rate"] = RATE
        if getattr(self, "encoder", False) is None:
            found["encoder"] = saving.to_json(by_shape(tuple(train.x.shape[1:])))
        return found

    def chosen(self) -> dict[str, Any]:
        """What the fit chose, as JSON: the form of outcomes, the weights of candidates."""
        return {}

    def changed(self: M, **settings: Any) -> M:
        """An unfitted copy with some settings changed."""
        return replace(self, **settings)  # type: ignore[type-var]

    def setting_names(self) -> set[str]:
        """The settings that ``changed`` takes."""
        return set(setting_names(self))

    def trains(self) -> Training | None:
        """How the method trains its networks; None where it has none."""
        return getattr(self, "training", None)

    def for_fold(self: M, candidate: int, fold: int) -> M:
        """An unfitted copy with the seed and the checkpoint of a fold of a candidate."""
        changes: dict[str, Any] = {"seed": self.seed + APART * fold}
        training = self.trains()
        if training is not None and training.checkpoint is not None:
            name = f"{training.checkpoint}.{candidate}-{fold}"
            changes["training"] = replace(training, checkpoint=name)
        return self.changed(**changes)

    @staticmethod
    def fit_together(methods: Sequence[Any], folds: Sequence[Fold], pairs: Dataset) -> bool:
        """Fit several methods of this class on a GPU at once, each without its fold.

        False leaves them unfitted, to be fitted one by one.
        """
        return False

    def fit(self: M, X: Any, Y: Any, val: tuple[Any, Any] | None = None) -> M:
        """Learn from n pairs; ``val`` or else the last fifth of them chooses the epoch."""
        lower = self.task.feasible.bounds[0]
        data, flat = _pairs(X, Y, "", lower.dtype)
        if val is None or getattr(self, "folds", 1) > 1:
            check_time_order(X, "X")
            check_time_order(Y, "Y")
        if val is None:
            cut = round(len(data) * (1 - HELD_OUT))
            if cut < 1 or cut == len(data):
                raise ValueError(
                    f"fit needs rows to learn from and rows to choose the epoch on, but got "
                    f"{len(data)} in all. Bring more rows, or pass val=(X_val, Y_val)."
                )
            train, held = data[:cut], data[cut:]
        else:
            train, held = data, self._validation(val, data, X, Y)
        check_axes(self.task, train.y)
        self._check_serves()
        bound = self.task.bound(data.x, names_of(X))
        probe_cost(bound, train, self.seed)
        self.task_ = self.bound_ = bound
        self.model_ = None  # a fit that is broken off leaves no model of other shapes behind
        self.calibration_ = None
        self.rows_ = None
        self.x_shape_, self.y_shape_ = tuple(data.x.shape[1:]), tuple(data.y.shape[1:])
        self.x_columns_, self.columns_ = names_of(X), names_of(Y)
        self.flat_, self.record_ = flat, _record(bound, train, held)
        begin = time.perf_counter()
        self._fit(train, held)
        self.fit_seconds_ = time.perf_counter() - begin
        labels = [labels_of(X, Y), *([] if val is None else [labels_of(*val)])]
        self.rows_ = _kept(train, held, getattr(self, "folds", 1), labels)
        return self

    def update(self, X: Any, Y: Any, val: tuple[Any, Any] | None = None) -> Update:
        """Learn from new rows too, unless decisions on held-out rows become worse.

        ``val`` are trusted rows on which the old and the new model are compared; None takes
        held-out rows of the fit and of the new rows.
        """
        from costscape.methods.update import update

        return update(self, X, Y, val)

    def fit_or_diverge(self: M, train: Dataset, val: Dataset) -> M | Diverged:
        """Fit, and return the method, or the error of a fit that diverged."""
        try:
            self.fit(train.x, train.y, val=(val.x, val.y))
        except Diverged as error:
            return error
        self.rows_ = None  # the owner of the fits keeps the rows of all
        return self

    def device(self) -> torch.device:
        """Where the method is fitted: the device of its training, or that of the task."""
        training = self.trains()
        return self.task.feasible.bounds[0].device if training is None else training.where()

    def _move_task(self, device: torch.device) -> Task:
        """The task itself where it already is, a copy elsewhere: the user's own stays put."""
        task = self.bound_ or self.task  # networks fitted together are given bound tasks
        here = task.feasible.bounds[0].device
        self.task_ = task if here == device else deepcopy(task).to(device)
        return self.task_

    def _check_serves(self) -> None:
        """Raise Refusal where the method takes no cost or no set that depends on x."""
        name, task = type(self).__name__, self.task
        if (task.sees_x or task.joins) and not self.takes_context:
            raise Refusal(
                f"{name} needs a cost of y and a alone, and this one depends on x. Take DF2, a "
                f"TwoStage forecast or nearest neighbours."
            )
        by_row = isinstance(task.feasible, SetOfContext) or task.sets_of is not None
        if by_row and not self.takes_row_sets:
            raise Refusal(
                f"{name} needs one set for all x, and this task has a function of x. Take DF2, a "
                f"TwoStage forecast or nearest neighbours."
            )

    def _on_device(self, train: Dataset, val: Dataset) -> tuple[Task, Dataset, Dataset]:
        """The task and both parts on the device of the fit."""
        device = self.device()
        train, val = (part.to(device, part.x.dtype) for part in (train, val))
        return self._move_task(device), train, val

    def _recipe(self, model: nn.Module, train: Dataset, val: Dataset, *but: str) -> str:
        """What two fits must share for one to go on from the other's checkpoint.

        Settings, less those named in ``but``, the network, the rows and the cost at all of them.
        """
        training = self.trains()
        if training is None or training.checkpoint is None:
            return ""  # there is no file that another fit could have written
        from costscape.methods.cost_fingerprint import cost_fingerprint, rows_digest

        left_out = {"task", "training", "seed", *but}
        names = [name for name in setting_names(self) if name not in left_out]
        settings = [saving.to_json(getattr(self, name)) for name in names]
        task = self.bound_ or self.task
        cost = cost_fingerprint(task, task.join(train.x, train.y))
        return repr((settings, str(model), cost, rows_digest(train, val)))

    def _validation(self, val: tuple[Any, Any], data: Dataset, X: Any, Y: Any) -> Dataset:
        if not (isinstance(val, Sequence) and len(val) == 2):
            raise TypeError(
                f"val needs a pair (X_val, Y_val), but got {type(val).__name__}. Write "
                f"fit(X, Y, val=(X_val, Y_val))."
            )
        check_names(val[0], "X of val", names_of(X))
        check_names(val[1], "Y of val", names_of(Y))
        held, _ = _pairs(*val, " of val", data.x.dtype)
        if held.x.shape[1:] != data.x.shape[1:] or held.y.shape[1:] != data.y.shape[1:]:
            raise ValueError(
                f"val needs rows like those of X {tuple(data.x.shape[1:])} and Y "
                f"{tuple(data.y.shape[1:])}, but has {tuple(held.x.shape[1:])} and "
                f"{tuple(held.y.shape[1:])}. Cut it from the same table."
            )
        return held


@contextmanager
def seeded(seed: int, device: torch.device | None = None) -> Iterator[None]:
    """Networks built inside have the weights of the seed; torch's own generators stay put."""
    with torch.random.fork_rng([device] if device and device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield


def _pairs(X: Any, Y: Any, of: str, dtype: torch.dtype) -> tuple[Dataset, bool]:
    """The pairs, and whether y came as one number a row."""
    x, y = read_pairs(X, Y, dtype, of)
    x, flat = x.unsqueeze(-1) if x.ndim == 1 else x, y.ndim == 1
    return Dataset(x, y.unsqueeze(-1) if flat else y), flat


def _kept(
    train: Dataset, val: Dataset, folds: int, labels: Sequence[np.ndarray | None]
) -> KeptRows:
    """The rows in the order of the fit: train, then val. ``labels`` are theirs, or of each."""
    data = join(train, val)
    fold = fold_numbers(len(data), folds)
    if folds == 1:
        fold[len(train) :] = 0
    k = data.stride(ROWS, NUMBERS)
    known = [part for part in labels if part is not None]
    same = len(known) == len(labels) and len({part.dtype.kind for part in known}) == 1
    return KeptRows(
        data.x[::k].cpu().clone(),
        data.y[::k].cpu().clone(),
        torch.arange(len(data))[::k].clone(),
        fold,
        np.concatenate(known) if same else None,
    )


def _record(task: Task, train: Dataset, val: Dataset) -> FitRecord:
    x, y = torch.cat([train.x, val.x]), torch.cat([train.y, val.y])
    y, x = task.join(x, y).double(), x.flatten(1)
    return FitRecord(
        costscape=costscape.__version__,
        torch=torch.__version__,
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        rows=len(x),
        x_low=x.amin(0).tolist(),
        x_high=x.amax(0).tolist(),
        cost=cost_sample(task, y.amin(0), y.amax(0)),
    )
