"""One run: a method on a problem with a seed, and what exactly that means."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache, partial
from itertools import product
from pathlib import Path
from typing import Any

from costscape.bench.fingerprint import facts_of
from costscape.bench.method_names import method_of
from costscape.bench.problem_names import problem_named
from costscape.bench.quick import brief, small
from costscape.bench.run_names import run_name
from costscape.bench.tuning_rows import KEPT, best_settings
from costscape.data import Splits
from costscape.methods import Method
from costscape.methods.saving import to_json
from costscape.problems.problem import Problem
from costscape.task import Refusal
from costscape.training import Training

NOWHERE = {"device", "checkpoint", "progress", "compile", "record"}  # of Training: how, not what
TRAINING = {f.name for f in fields(Training)} - NOWHERE


@dataclass(frozen=True)
class Run:
    """A named method on a named problem.

    ``changes`` are settings that differ from the named method's: those of its class, those of
    Training (``epochs``; ignored where nothing is trained), and ``share``, the part of the
    training rows that is used, the latest ones. ``quick`` makes everything small: to see that it
    works, not to compare. ``tuning`` is the folder of searches from which a method whose name has
    +tuned takes its settings; the settings, not the folder, are part of the recipe.

    Two runs that differ have different names.
    """

    problem: str
    method: str
    seed: int = 0
    changes: Mapping[str, Any] = field(default_factory=dict)
    quick: bool = False
    tuning: Path = field(default=KEPT, compare=False)

    @property
    def name(self) -> str:
        """The name of the run in a store."""
        return run_name(self.problem, self.method, self.seed, self.changes, self.quick)


def grid(
    problems: Iterable[str],
    methods: Iterable[str],
    seeds: Iterable[int],
    changes: Mapping[str, Any] | None = None,
    quick: bool = False,
    tuning: Path = KEPT,
) -> list[Run]:
    """All runs of the named problems and methods, with the changes that have an effect.

    A method that trains no network has no epochs, so changes of the training are left out there.
    """
    every, changes = list(seeds), dict(changes or {})
    runs = []
    for problem, method in product(problems, methods):
        effective = changes
        if changes.keys() & TRAINING and not _trains(
            Run(problem, method, every[0], {}, quick, tuning)
        ):
            effective = {key: value for key, value in changes.items() if key not in TRAINING}
        runs += [Run(problem, method, seed, effective, quick, tuning) for seed in every]
    return runs


def _trains(run: Run) -> bool:
    """Whether the method trains a network; one that refuses the problem counts as such."""
    try:
        return _method(run, problem_of(run.problem, run.seed, run.quick)).trains() is not None
    except Refusal:
        return True


@dataclass(frozen=True)
class Prepared:
    problem: Problem
    method: Method
    recipe: str  # a hash: equal recipes give equal rows, timings aside


def prepare(run: Run, device: str | None = None) -> Prepared:
    """The problem and the unfitted method; the recipe does not depend on the device."""
    made = _made(run)
    return replace(made, method=placed(made.method, Training(device=device)))


def recipe_of(run: Run) -> str:
    """The recipe, also where the method cannot even be made for the problem."""
    try:
        return _made(run).recipe
    except Refusal as reason:
        return _recipe(run, str(reason))


def _made(run: Run) -> Prepared:
    problem = problem_of(run.problem, run.seed, run.quick)
    changes = dict(run.changes)
    if (share := changes.pop("share", None)) is not None:
        problem = replace(problem, data=_latest(problem.data, share))
    method = _method(run, problem)
    if run.quick:
        method = brief(method, problem.data.train)
    method = _changed(method, changes, run.method)
    settings = {**_settings(method), **_resolved_defaults(method, problem)}
    return Prepared(problem, method, _recipe(run, settings))


def _method(run: Run, problem: Problem) -> Method:
    tuned = partial(best_settings, run.tuning, run.problem, run.quick)
    return method_of(run.method, tuned)(problem, run.seed)


def placed(method: Method, at: Training) -> Method:
    """The same method on that device; one without a training works where its task is."""
    training = method.trains()
    if training is not None:
        return method.changed(training=replace(training, device=at.device, progress=False))
    if method.task.feasible.bounds[0].device == at.where():
        return method
    return method.changed(task=deepcopy(method.task).to(at.where()))


def _recipe(run: Run, settings: Any) -> str:
    facts = [run.problem, run.seed, run.method, sorted(run.changes.items()), run.quick]
    text = json.dumps([facts, settings, _facts(run.problem, run.seed, run.quick)])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@lru_cache(maxsize=16)  # a sweep goes through the seeds again for every method
def problem_of(name: str, seed: int, quick: bool) -> Problem:
    made = problem_named(name)(seed)
    return small(made) if quick else made


@lru_cache(maxsize=64)
def _facts(name: str, seed: int, quick: bool) -> list[Any]:
    return facts_of(problem_of(name, seed, quick))


def _latest(data: Splits, share: Any) -> Splits:
    if not isinstance(share, int | float) or not 0 < share <= 1:
        raise ValueError(f"share is a part of the training rows, in (0, 1], but got {share}.")
    rows = max(1, round(share * len(data.train)))
    return replace(data, train=data.train[len(data.train) - rows :])


def _changed(method: Method, changes: dict[str, Any], name: str) -> Method:
    own = method.setting_names() - {"task", "seed", "training"}
    unknown = sorted(set(changes) - own - TRAINING)
    if unknown:
        raise ValueError(
            f"{name} has no setting named {', '.join(unknown)}. It has "
            f"{', '.join(sorted(own | TRAINING | {'share'}))}."
        )
    # changes are JSON, where a list stands for a tuple
    mine = {k: tuple(v) if isinstance(v, list) else v for k, v in changes.items() if k in own}
    rest = {key: value for key, value in changes.items() if key not in own}
    training = method.trains()
    try:
        if training is not None:
            mine["training"] = replace(training, **rest)
        return method.changed(**mine)
    except Refusal:
        raise
    except TypeError as error:
        reason = str(error).partition("\n")[0]
        raise ValueError(f"{name} cannot take {changes}: {reason}") from error


def _resolved_defaults(method: Method, problem: Problem) -> dict[str, Any]:
    defaults = method.resolved_defaults(problem.data.train)
    training = method.trains()
    if training is not None and training.epochs is None:
        defaults = {**defaults, "epochs": training.for_rows(len(problem.data.train)).epochs}
    # the key is part of the recipe hashes of kept rows, so it keeps its first name
    return {"unsaid": defaults} if defaults else {}


def _settings(method: Method) -> dict[str, Any]:
    values = {f.name: getattr(method, f.name) for f in fields(method)}  # type: ignore[arg-type]
    for name, value in values.items():
        if isinstance(value, Training):
            plain: dict[str, Any] = {f.name: f.default for f in fields(value) if f.name in NOWHERE}
            values[name] = replace(value, **{**plain, "progress": False})
    return {name: to_json(v) for name, v in values.items() if name not in ("task", "seed")}
