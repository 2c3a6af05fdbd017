"""Problems and methods cut down to seconds: to see a whole table being made, not to compare."""

from dataclasses import fields, is_dataclass, replace
from functools import partial
from typing import Any

from costscape.data import Dataset, Splits
from costscape.methods import Blend, Method
from costscape.methods.blend import default_candidates
from costscape.methods.forecast.langevin import Langevin
from costscape.models import Builder
from costscape.problems.problem import Problem
from costscape.solvers import FrankWolfe
from costscape.training import Training

ROWS = (300, 60, 60)  # of the training, validation and test parts
COSTLY = (6, 2, 2)  # where f is a simulation: enough for two folds
SMALL: dict[str, Any] = {
    "points": 50,
    "actions": 20,
    "folds": 2,
    "draws": 20,
    "train_draws": 8,
    "samples": 16,
    "rounds": 1,
    "steps": 10,
    "trees": 20,
    "most_scenarios": 400,
}
FEWER: dict[str, Any] = SMALL | {  # where f is a simulation
    "points": 10,
    "actions": 8,
    "draws": 2,
    "train_draws": 2,
    "samples": 2,
    "steps": 2,
    "trees": 4,
    "most_scenarios": 20,
}
CHOSEN = {"penalty": 0.01, "width": 100.0}  # there, rather than searched for
EPOCHS, FEWER_EPOCHS = 3, 1
STEPS = 4  # of a solver or a walk


def small(p: Problem) -> Problem:
    """The rows next to the cuts between the parts."""
    costly = isinstance(p.solver, FrankWolfe)
    train, val, test = COSTLY if costly else ROWS
    data = Splits(p.data.train[-train:], p.data.val[-val:], p.data.test[:test])
    if not costly:
        return replace(p, data=data)
    solver = FrankWolfe(steps=STEPS)
    encoder: Builder = partial(p.encoder, hidden=8)  # type: ignore[call-arg]
    p.task.hindsight = solver.hindsight(p.task)
    return replace(
        p, data=data, solver=solver, encoder=encoder, network=p.network and encoder, points=20
    )


def brief(method: Method, train: Dataset) -> Method:
    """The same method with few of everything, and so the methods inside it.

    The default candidates of a Blend depend on the data, so ``train`` are the training rows.
    """
    assert is_dataclass(method)
    costly = isinstance(getattr(method, "solver", None), FrankWolfe)
    few, epochs = (FEWER, FEWER_EPOCHS) if costly else (SMALL, EPOCHS)
    cut: dict[str, Any] = {}
    for f in fields(method):
        value = getattr(method, f.name)
        if isinstance(method, Blend) and f.name == "methods":
            candidates = value or default_candidates(
                method.task, train, method.training, method.solver, method.seed
            )
            cut[f.name] = [brief(candidate, train) for candidate in candidates]
        elif f.name in few and (value is None or value > few[f.name]):
            cut[f.name] = few[f.name]
        elif costly and value is None and f.name in CHOSEN:
            cut[f.name] = CHOSEN[f.name]
        elif f.name == "rates":
            cut[f.name] = value[:1]
        elif isinstance(value, Method):
            cut[f.name] = brief(value, train)
        elif isinstance(value, Langevin):
            cut[f.name] = replace(value, steps=min(STEPS, value.steps))
        elif isinstance(value, Training):
            cut[f.name] = replace(value, epochs=min(epochs, value.epochs or epochs))
    return replace(method, **cut)
