"""Fit a method for every seed and let it decide for the test rows."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any
from urllib.parse import quote

import torch
from torch import Tensor

from costscape.methods import DF2, Constant, Method, NearestNeighbours, RandomForest, TwoStage
from costscape.models import Mixture, Point
from costscape.solvers.solver import check_feasible
from costscape.task import Task
from costscape.training import Training

DRAWS = 1000  # the paper's 100 decide clearly worse


@dataclass(frozen=True, eq=False)
class Trial:
    """Decisions (seeds, n, d) of a method, its first fit, and the mean seconds of a seed."""

    decisions: Tensor
    fitted: Method
    fit_seconds: float
    decide_seconds: float


def default_methods(task: Task, training: Training | None = None) -> dict[str, Method]:
    """DF2 and the cheap opponents that are hard to beat.

    Args:
        task: of all methods.
        training: of all networks; None for ``Training()``.

    >>> from costscape.problems import inventory
    >>> list(default_methods(inventory()))[:3]
    ['DF2', 'two-stage, one Gaussian', 'two-stage, mixture of 3']
    """
    training = training or Training()
    return {
        "DF2": DF2(task, training=training),
        "two-stage, one Gaussian": TwoStage(task, Mixture(1), draws=DRAWS, training=training),
        "two-stage, mixture of 3": TwoStage(task, Mixture(3), draws=DRAWS, training=training),
        "point forecast": TwoStage(task, Point(), training=training),
        "nearest neighbours": NearestNeighbours(task),
        "random forest": RandomForest(task),
        "constant": Constant(task),
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


def try_out(
    name: str,
    method: Method,
    train: tuple[Any, Any],
    val: tuple[Any, Any],
    x: Tensor,
    task: Task,
    bars: Sequence[AbstractContextManager[None]],
    part: int = 0,
) -> Trial:
    """Fit with the seeds method.seed, method.seed + 1, ..., one for each bar; decide for x.

    ``part`` is the number of the test part, so that checkpoints of parts are separate files.
    """
    fits, decisions, seconds = [], [], 0.0
    for i, bar in enumerate(bars):
        with bar:
            label = f"{name}.{part}" if part else name
            model = _for_seed(label, method, i).fit(*train, val=val)
        begin = time.perf_counter()
        a = model.decide(x).reshape(len(x), -1)
        seconds += time.perf_counter() - begin
        rows = x.unsqueeze(-1) if x.ndim == 1 else x
        paid = task.bound(rows, model.x_columns_)
        if a.shape[1] != paid.feasible.dim:
            raise ValueError(
                f"'{name}' decides {a.shape[1]} numbers, but the task that pays takes "
                f"{paid.feasible.dim}. Make the method with this task."
            )
        decisions.append(a.to(paid.feasible.bounds[0]))
        check_feasible(decisions[-1], paid.sets(rows.to(decisions[-1])), f"'{name}'")
        fits.append(model)
    for f in fields(method):  # type: ignore[arg-type]
        setattr(fits[0], f.name, getattr(method, f.name))  # the user's trainings, not silent ones
    fit_seconds = sum(fit.fit_seconds_ or 0.0 for fit in fits)
    return Trial(torch.stack(decisions), fits[0], fit_seconds / len(fits), seconds / len(fits))


def joined(trials: Sequence[Trial]) -> Trial:
    """The trials of a method on several test parts as one; the fit is that of the last part."""
    return Trial(
        torch.cat([trial.decisions for trial in trials], 1),
        trials[-1].fitted,
        sum(trial.fit_seconds for trial in trials) / len(trials),
        sum(trial.decide_seconds for trial in trials),
    )


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
