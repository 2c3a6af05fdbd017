"""What a fitted method does: decide, be saved, be restored."""

from abc import ABC, abstractmethod
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any
from warnings import warn

from torch import Tensor, nn

from costscape.arrays import Form, check_names, read
from costscape.chance import Chance
from costscape.methods import saving
from costscape.methods.cost_probe import check_same_cost
from costscape.methods.explanation import Explanation
from costscape.methods.fit_record import FitRecord
from costscape.methods.kept_rows import KeptRows, from_file
from costscape.methods.other_sets import other_sets
from costscape.methods.training_range import ENOUGH, OutOfRange, RangeCheck, check_range
from costscape.risk.calibration import Calibration
from costscape.risk.measures import Risk
from costscape.sets import Box, ConstraintSet
from costscape.solvers.solver import check_feasible
from costscape.task import Refusal, Task
from costscape.training.settings import Checked


class FittedMethod(Checked, ABC):
    """x -> a in C, by a model. Names that end in ``_`` are learned."""

    task: Task
    seed: int

    x_shape_: tuple[int, ...] | None = None
    y_shape_: tuple[int, ...] = ()
    x_columns_: tuple[str, ...] | None = None  # names of the columns of X
    columns_: tuple[str, ...] | None = None  # and of Y
    record_: FitRecord | None = None
    rows_: KeptRows | None = None  # a sample of the training rows
    flat_: bool = False  # y came as one number a row, and so do the decisions
    fit_seconds_: float | None = None
    model_: nn.Module | None = None
    bound_: Task | None = None  # the task, for rows of the shape and the columns of fit
    task_: Task | None = None  # the same on the device of the model
    calibration_: Calibration | None = None  # what ``calibrate`` learned

    @abstractmethod
    def _decide(self, x: Tensor) -> Tensor:
        """One action (B, d) for each x."""

    def _decide_in(self, x: Tensor, feasible: ConstraintSet) -> Tensor:
        """One action (B, d) of another set for each x."""
        raise Refusal(
            f"{type(self).__name__} learns actions of one set, and no expected cost to decide in "
            f"another. Take DF2, or fit again with that set."
        )

    @abstractmethod
    def _facts(self) -> dict[str, Any]:
        """What fit chose besides tensors, as JSON: enough to build the model again, empty."""

    @abstractmethod
    def _rebuild(self, facts: dict[str, Any]) -> nn.Module:
        """The model of those facts, its tensors still to be filled."""

    def decide(
        self,
        X: Any,
        feasible: Any = None,
        *,
        risk: Risk | None = None,
        chance: Chance | None = None,
    ) -> Any:
        """One feasible action for each row of X.

        Args:
            X: rows (n, ...), as in ``fit``.
            feasible: another set to decide in, without a new fit: one for all rows, one with a
                row for each, or a function of x. None for the set of the task.
            risk: minimised in place of the expected cost; needs a method with scenarios.
            chance: a service level to keep; None for that of the task. It needs scenarios, too.

        Warns of ``OutOfRange`` where rows are far outside the training range, see ``check``, and
        where the other set is wider than the one whose actions the fit has seen.
        """
        x, form = self._read(X)
        if self.record_ is not None and self.record_.rows >= ENOUGH:
            found = self._check(x, form)
            if found.outside.any():
                warn(f"{found} Decisions there are extrapolated.", OutOfRange, stacklevel=2)
        sets = None if feasible is None else self._sets(x, feasible)
        chance = self.task.chance if chance is None else chance
        if risk is None and chance is None:
            a = self._decide(x) if sets is None else self._decide_in(x, sets)
        else:
            from costscape.methods.risk_decisions import decide_at_risk  # few need it

            a = decide_at_risk(self, x, risk, chance, sets)
        C = self._task().sets(x) if sets is None else sets
        check_feasible(a.to(C.bounds[0]), C, type(self).__name__)
        return self._give(form, a)

    def check(self, X: Any) -> RangeCheck:
        """Flag rows of X with a value outside the training range by more than half of it."""
        return self._check(*self._read(X))

    def explain(
        self,
        X: Any,
        step: float | None = None,
        feasible: Any = None,
        *,
        risk: Risk | None = None,
        chance: Chance | None = None,
    ) -> Explanation:
        """Why the decision for one row of X is what it is; for methods with scenarios.

        ``step`` is the unit by which the decision deviates, default a hundredth of the width of
        each coordinate, or the step of a set of whole units. The other arguments are those of
        ``decide``; with ``risk``, all costs of the tables are risks.
        """
        from costscape.methods.explain import explain

        return explain(self, X, step, feasible, risk=risk, chance=chance)

    def save(self, path: str | Path, rows: bool = True) -> None:
        """Write the fitted method to one file; ``costscape.load(path, task)`` reads it.

        ``rows=False`` leaves out the kept training rows, without which a loaded method can
        neither explain nor update.
        """
        from costscape.whole_file import check_target

        check_target(Path(path))
        tensors = dict(self._fitted().state_dict())
        kept = self.rows_ if rows else None
        tensors |= {} if kept is None else kept.to_tensors()
        fitted: dict[str, Any] = {
            "x_shape": self.x_shape_,
            "y_shape": self.y_shape_,
            "x_columns": self.x_columns_,
            "columns": self.columns_,
            "flat": self.flat_,
            "dim": self._task().feasible.dim,
            "facts": self._facts(),
            "record": self.record_ and asdict(self.record_),
            "calibration": self.calibration_ and self.calibration_.to_json(self.task.chance),
            "rows": None if kept is None else kept.to_json(),
        }
        if self._task().sets_of is not None:  # the set that holds those of all training rows
            fitted["bounds"] = [end.tolist() for end in self._task().feasible.bounds]
        saving.write(Path(path), tensors, {**self.to_json(), "fitted": fitted})

    def export(
        self,
        path: str | Path,
        X: Any = None,
        *,
        units: dict[str, str] | None = None,
        distil: bool = True,
    ) -> Any:
        """Write the fitted method to one ONNX file; ``costscape.runtime.load`` reads it.

        The file has the networks, the cost and the search over a box, and is compared with the
        method on kept training rows or on ``X``. Where the search does not fit, a small network
        learns the decisions, and its loss in cost is in the file and printed; ``distil=False``
        refuses instead. ``units`` has the unit of columns of X or Y. Returns a summary.
        """
        from costscape.methods.export import export

        return export(self, path, X, units, distil)

    def to_json(self) -> dict[str, Any]:
        """The class and the settings, the task apart; ``costscape.load`` reads them."""
        settings = {name: getattr(self, name) for name in setting_names(self) if name != "task"}
        return {
            "method": type(self).__name__,
            "settings": {name: saving.to_json(value) for name, value in settings.items()},
        }

    def restore(self, tensors: dict[str, Tensor], fitted: dict[str, Any]) -> None:
        """Become the fitted method that ``save`` wrote; called by ``load``."""
        self.x_shape_, self.y_shape_ = tuple(fitted["x_shape"]), tuple(fitted["y_shape"])
        self.x_columns_ = fitted.get("x_columns") and tuple(fitted["x_columns"])
        like = self.task.feasible.bounds[0]
        hull = Box(*map(like.new_tensor, fitted["bounds"])) if "bounds" in fitted else None
        task = self.task.bound(like.new_ones(1, *self.x_shape_), self.x_columns_, hull)
        if fitted["dim"] != task.feasible.dim:
            raise saving.Mismatch(
                f"The model was fitted for decisions of {fitted['dim']} numbers, but this task's "
                f"feasible set has {task.feasible.dim}. Pass the task it was fitted for."
            )
        if record := fitted.get("record"):  # older files have none
            self.record_ = FitRecord(**record)
            check_same_cost(task, self.record_.cost)
        self.columns_ = fitted["columns"] and tuple(fitted["columns"])
        self.flat_ = fitted["flat"]
        if stored := fitted.get("calibration"):
            self.calibration_ = Calibration.from_json(stored, self.task.chance)
        self.task_ = self.bound_ = task
        facts = fitted.get("rows")
        self.rows_ = None if facts is None else from_file(tensors, facts)
        model = self._rebuild(fitted["facts"])
        like = next(value for value in tensors.values() if value.is_floating_point())
        model.to(like.dtype).load_state_dict(tensors)
        self.model_ = model.to(self.task.feasible.bounds[0]).eval()

    def _task(self) -> Task:
        """The task of the fit, bound to its rows; the user's before a fit."""
        return self.bound_ or self.task

    def _fitted(self) -> nn.Module:
        if self.model_ is None:
            from costscape.methods.not_fitted import NotFitted  # sklearn is slow to import

            raise NotFitted(
                f"This {type(self).__name__} has not been fitted. Call fit(X, Y) first."
            )
        return self.model_

    def _kept_rows(self, owner: str) -> KeptRows:
        """The kept training rows, or an error in the name of ``owner``."""
        self._fitted()
        if self.rows_ is None:
            raise RuntimeError(
                f"{owner} needs training rows, but this {type(self).__name__} has none: its file "
                f"was saved with rows=False or by an earlier version. Fit and save it again."
            )
        return self.rows_

    def _blank(self, rows: int) -> tuple[Tensor, Tensor]:
        """Stand-ins of the shapes seen in fit, to build an empty model on; ones have a level."""
        like = self.task.feasible.bounds[0]
        x_shape = self.x_shape_ or ()
        return like.new_ones(rows, *x_shape), like.new_ones(rows, *self.y_shape_)

    def _read(self, X: Any) -> tuple[Tensor, Form]:
        self._fitted()
        check_names(X, "X", self.x_columns_)
        x, form = read(X, "X", self.task.feasible.bounds[0].dtype)
        x = x.unsqueeze(-1) if x.ndim == 1 and self.x_shape_ == (1,) else x
        if tuple(x.shape[1:]) != self.x_shape_:
            raise ValueError(
                f"X needs rows of shape {self.x_shape_}, as in fit, but has rows of shape "
                f"{tuple(x.shape[1:])}. Reshape your data: one single row is x[None], or "
                f"frame.iloc[[i]]."
            )
        assert self.task_ is not None
        return x.to(self.task_.feasible.bounds[0]), form

    def _sets(self, x: Tensor, feasible: Any) -> ConstraintSet:
        """Another set for these rows, of the same dimension and where the model is."""
        assert self.task_ is not None
        return other_sets(self.task_, x, feasible)

    def _check(self, x: Tensor, form: Form) -> RangeCheck:
        if (known := self.record_) is None:
            raise RuntimeError(
                "The range of the training rows is not known: the file of this model is of an "
                "earlier version. Fit and save the model again."
            )
        return check_range(x, known.x_low, known.x_high, self.x_columns_, form.index)

    def _give(self, form: Form, a: Tensor) -> Any:
        columns = self.columns_ if self.columns_ and len(self.columns_) == a.shape[-1] else None
        return form.give(a[:, 0] if self.flat_ and a.shape[-1] == 1 else a, columns)


def setting_names(method: Any) -> list[str]:
    return [f.name for f in fields(method)]
