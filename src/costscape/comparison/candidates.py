"""Fit a method for every seed and let it decide, before any outcome of the test part is seen."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any
from urllib.parse import quote

import torch
from torch import Tensor

from costscape.comparison.time_split import Parts
from costscape.methods import (
    DF2,
    Constant,
    Method,
    NearestNeighbours,
    RandomForest,
    TwoStage,
)
from costscape.models import Mixture, Point
from costscape.solvers.base import check_feasible
from costscape.task import Task
from costscape.training import Training

DRAWS = 1000  # the paper's 100 decide clearly worse


@dataclass(frozen=True, eq=False)
class Trial:
    """One method's fits: decisions (seeds, n, d), the first fit, the mean seconds of a seed."""

    decisions: Tensor
    fitted: Method
    fit_seconds: float
    decide_seconds: float


def default_methods(task: Task, training: Training | None = None) -> dict[str, Method]:
    """DF2 and the cheap opponents that are hard to beat; ``training`` is that of all networks.

    >>> from costscape.problems import inventory
    >>> list(default_methods(inventory()))[:3]
    ['DF2', 'two-stage, one Gaussian', 'two-stage, mixture of 3']
    """
    told: dict[str, Any] = {"training": training or Training()}
    return {
        "DF2": DF2(task, **told),
        "two-stage, one Gaussian": TwoStage(task, Mixture(1), draws=DRAWS, **told),
        "two-stage, mixture of 3": TwoStage(task, Mixture(3), draws=DRAWS, **told),
        "point forecast": TwoStage(task, Point(), **told),
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
        if not isinstance(name, str) or not name.strip():
            raise ValueError(
                f"compare needs a name for every method, but got {name!r} for a "
                f"{type(method).__name__}. Name it as the table shall show it."
            )
        if not isinstance(method, Method) or not is_dataclass(method):
            raise TypeError(
                f"compare needs methods that are dataclasses of cs.Method, made but not fitted, "
                f"but '{name}' is {method!r} of type {type(method).__name__}. Write {name!r}: "
                f"cs.DF2(task), say."
            )


def seeds_of(method: Method, seeds: int) -> int:
    """A method that trains no network is fitted once."""
    return 1 if method.trains() is None else seeds


def attempt(
    name: str,
    method: Method,
    parts: Parts,
    task: Task,
    seeds: int,
    show: Callable[[int, str], None],
) -> Trial:
    """Fit and decide with the seeds method.seed, method.seed + 1, ..."""
    fits: list[Method] = []
    decided, seconds = [], 0.0
    for i in range(seeds_of(method, seeds)):
        show(i, f"{name}, seed {method.seed + i}")
        model = _fresh(name, method, i).fit(*parts.train, val=parts.val)
        begin = time.perf_counter()
        a = model.decide(parts.x).reshape(len(parts.x), -1)
        seconds += time.perf_counter() - begin
        decided.append(_checked(a, task, name))
        fits.append(model)
    first = fits[0]
    for f in fields(method):  # type: ignore[arg-type]
        setattr(first, f.name, getattr(method, f.name))  # the user's trainings, not silent ones
    fitting = sum(fit.fit_seconds_ or 0.0 for fit in fits)
    return Trial(torch.stack(decided), first, fitting / len(fits), seconds / len(fits))


def _fresh(name: str, method: Method, i: int) -> Method:
    """The method unfitted, with another seed, silent trainings and separate checkpoints."""
    seed = method.seed + i

    def silent(training: Training) -> Training:
        path = training.checkpoint
        separate = None if path is None else f"{path}.{quote(name, safe='')}.{seed}"
        return replace(training, progress=False, checkpoint=separate)

    # the first seed keeps those of the methods inside a Blend, which may differ
    return _with_trainings(method.changed(seed=seed) if i else method, silent)


def _with_trainings(method: Method, change: Callable[[Training], Training]) -> Method:
    """A copy whose trainings are changed, those of the methods inside it included."""
    changes: dict[str, Any] = {}
    for f in fields(method):  # type: ignore[arg-type]
        value = getattr(method, f.name)
        if isinstance(value, Training):
            changes[f.name] = change(value)
        elif isinstance(value, Method):
            changes[f.name] = _with_trainings(value, change)
        elif isinstance(value, list) and any(isinstance(part, Method) for part in value):
            changes[f.name] = [_with_trainings(part, change) for part in value]
    copy: Method = replace(method, **changes)  # type: ignore[type-var]
    return copy


def _checked(a: Tensor, task: Task, name: str) -> Tensor:
    home = task.feasible.bounds[0]
    if a.shape[1] != task.feasible.dim:
        raise ValueError(
            f"'{name}' decides {a.shape[1]} numbers, but the task that pays takes "
            f"{task.feasible.dim}. Make the method with this task."
        )
    a = a.to(home)
    check_feasible(a, task.feasible, f"'{name}'")
    return a
