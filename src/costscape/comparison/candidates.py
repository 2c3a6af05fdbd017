"""Fit a method for every origin and seed, and let it decide for the test rows."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any
from urllib.parse import quote

import torch
from torch import Tensor

from costscape.comparison.time_budget import TimeBudget
from costscape.comparison.time_split import Part
from costscape.methods import (
    DF2,
    Blend,
    Constant,
    CrossFit,
    Method,
    NearestNeighbours,
    PolicyNet,
    RandomForest,
    ResidualSAA,
    SafetyStock,
    TwoStage,
)
from costscape.models import Mixture, Point
from costscape.solvers.solver import check_feasible
from costscape.task import Task
from costscape.training import Training

DRAWS = 1000  # the paper's 100 decide clearly worse
FORMS = 3  # of outcomes that DF2 fits by default, about


@dataclass(frozen=True, eq=False)
class Trial:
    """Decisions (n, d) of a method with one seed, its last fit, and seconds.

    Seconds to fit are those of one origin, seconds to decide those of all rows. ``fitted`` is None
    where decisions are given and no method decides.
    """

    decisions: Tensor
    fitted: Method | None
    fit_seconds: float
    decide_seconds: float


def default_methods(task: Task, training: Training | None = None) -> dict[str, Method]:
    """What people do, cheap opponents that are hard to beat, and DF2; from cheap to dear.

    Args:
        task: of all methods.
        training: of all networks; None for ``Training()``.

    >>> from costscape.problems import inventory
    >>> list(default_methods(inventory()))[:3]
    ['constant', 'nearest neighbours', 'residual SAA']
    """
    training = training or Training()
    return {
        "constant": Constant(task),
        "nearest neighbours": NearestNeighbours(task),
        "residual SAA": ResidualSAA(task, scaled=True),
        "point forecast": TwoStage(task, Point(), training=training),
        "safety stock": SafetyStock(task, training=training),
        "random forest": RandomForest(task),
        "policy network": PolicyNet(task, training=training),
        "Gaussian forecast": TwoStage(task, Mixture(1), draws=DRAWS, training=training),
        "mixture forecast": TwoStage(task, Mixture(3), draws=DRAWS, training=training),
        "DF2 (one network)": DF2.quick(task, training=training),
        "DF2": DF2(task, training=training),
        "blend": Blend(task, training=training),
    }


def check_methods(methods: Mapping[str, Method]) -> None:
    if not isinstance(methods, Mapping) or not methods:
        raise TypeError(
            f"compare needs methods by name, such as {{'mine': cs.DF2(task)}}, but got "
            f"{methods!r} of type {type(methods).__name__}. Leave methods out for the usual ones."
        )
    for name, method in methods.items():
        if not isinstance(method, Method) or not is_dataclass(method):
            raise TypeError(
                f"compare needs methods that are dataclasses of cs.Method, made but not fitted, "
                f"but '{name}' is {method!r} of type {type(method).__name__}. Write {name!r}: "
                f"cs.DF2(task), say."
            )


def fits_of(method: Method, seeds: int) -> int:
    """How often the method is fitted: once where it trains no network."""
    return 1 if method.trains() is None else seeds


def usual_time(method: Method) -> int:
    """About how long a fit takes, as a multiple of the shortest.

    Only the order counts, from cheap to dear, and the steps of the progress bar.
    """
    match method:
        case CrossFit():
            return method.folds * usual_time(method.method)
        case Blend():
            inner = method.methods
            each = 10 * FORMS + 15 if inner is None else sum(map(usual_time, inner))
            return method.folds * each
        case DF2():
            return 10 if method.folds == 1 else 10 * FORMS * method.folds
        case TwoStage(forecast=Point()):
            return 2
        case SafetyStock():
            return 3
        case RandomForest():
            return 4
        case PolicyNet():
            return 5
        case TwoStage(forecast=Mixture(components=k)):
            return 7 + (k > 1)
    return 1 if method.trains() is None else 10


def try_out(
    name: str,
    method: Method,
    parts: Sequence[Part],
    task: Task,
    i: int,
    bars: Sequence[AbstractContextManager[None]],
    budget: TimeBudget,
) -> Trial:
    """Fit with the seed method.seed + i before each part, inside its bar; decide for its x."""
    decisions, fit_seconds, decide_seconds = [], 0.0, 0.0
    for k, (part, bar) in enumerate(zip(parts, bars, strict=True)):
        # checkpoints of parts are separate files
        one = _for_seed(f"{name}.{k}" if k else name, method, i)
        with bar, budget.limit():
            model = one.fit(*part.train, val=part.val)
        begin = time.perf_counter()
        a = model.decide(part.x).reshape(len(part.x), -1)
        decide_seconds += time.perf_counter() - begin
        fit_seconds += (model.fit_seconds_ or 0.0) / len(parts)
        decisions.append(feasible(name, a, part.x, task, model.x_columns_))
    for f in fields(method):  # type: ignore[arg-type]
        setattr(model, f.name, getattr(method, f.name))  # the user's trainings, not silent ones
    return Trial(torch.cat(decisions), model, fit_seconds, decide_seconds)


def feasible(
    name: str, a: Tensor, x: Tensor, task: Task, columns: tuple[str, ...] | None
) -> Tensor:
    """The decisions in the precision of the task, if it allows and prices them."""
    rows = x.unsqueeze(-1) if x.ndim == 1 else x
    paid = task.bound(rows, columns)
    if a.shape[1] != paid.feasible.dim:
        raise ValueError(
            f"'{name}' decides {a.shape[1]} numbers, but the task that pays takes "
            f"{paid.feasible.dim}. Make the method with this task."
        )
    a = a.to(paid.feasible.bounds[0])
    check_feasible(a, paid.sets(rows.to(a)), f"'{name}'")
    return a


def _for_seed(name: str, method: Method, i: int) -> Method:
    """The method unfitted, with its i-th seed, silent trainings and separate checkpoints."""
    seed = method.seed + i

    def silent(training: Training) -> Training:
        path = training.checkpoint
        separate = None if path is None else f"{path}.{quote(name, safe='')}.{seed}"
        return replace(training, progress=False, checkpoint=separate)

    # methods inside a Blend may have different first seeds, which changed() would make equal
    return _with_trainings(method.changed(seed=seed) if i else method, silent)


def _with_trainings(method: Method, change: Callable[[Training], Training]) -> Method:
    """A copy whose trainings are changed, those of the methods inside it included."""

    def new(value: Any) -> Any:
        if isinstance(value, Training):
            return change(value)
        if isinstance(value, list) and any(isinstance(part, Method) for part in value):
            return [new(part) for part in value]
        return _with_trainings(value, change) if isinstance(value, Method) else value

    changes = {f.name: new(getattr(method, f.name)) for f in fields(method)}  # type: ignore[arg-type]
    copy: Method = replace(method, **changes)  # type: ignore[type-var]
    return copy
