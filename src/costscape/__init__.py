"""Learn the expected cost of every action, then choose the best one.

    task  = Task(cost, Box(0.0, 3.0, dim=7))
    model = DF2(task).fit(X, Y)
    a     = model.decide(X_new)

The data's way: data -> task (cost f, set C) -> method.fit -> method.decide -> evaluate -> report.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from costscape import checks, data, experiments, models, sets, solvers, tasks
    from costscape.evaluation import Evaluation, evaluate
    from costscape.methods import (
        DF2,
        Constant,
        Method,
        NearestNeighbours,
        ScenarioMethod,
        TwoStage,
        load,
    )
    from costscape.models import LSTM, MLP, Absolute, Anchored, Mixture, Point, WindowLevels
    from costscape.scenarios import ExpectedCost, Scenarios
    from costscape.sets import (
        BallWalk,
        Box,
        Budget,
        ConstraintSet,
        Finite,
        HitAndRun,
        OuterBox,
        Polytope,
        Simplex,
    )
    from costscape.solvers import (
        Convex,
        Exhaustive,
        MirrorDescent,
        ProjectedAdam,
        Separable,
        Solver,
    )
    from costscape.tasks import SeparableTask, Task
    from costscape.train import Training

# torch takes two seconds to import: names are found when first used, so that `costscape --help`
# answers at once
_ROOMS = {
    "evaluation": ("Evaluation", "evaluate"),
    "methods": ("DF2", "Constant", "Method", "NearestNeighbours", "ScenarioMethod", "TwoStage",
                "load"),
    "models": ("LSTM", "MLP", "Absolute", "Anchored", "Mixture", "Point", "WindowLevels"),
    "scenarios": ("ExpectedCost", "Scenarios"),
    "sets": ("BallWalk", "Box", "Budget", "ConstraintSet", "Finite", "HitAndRun", "OuterBox",
             "Polytope", "Simplex"),
    "solvers": ("Convex", "Exhaustive", "MirrorDescent", "ProjectedAdam", "Separable", "Solver"),
    "tasks": ("SeparableTask", "Task"),
    "train": ("Training",),
}  # fmt: skip
_WHERE = {name: room for room, names in _ROOMS.items() for name in names}
_MODULES = ("checks", "data", "experiments", "models", "sets", "solvers", "tasks")


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        value = getattr(import_module(f"costscape.{_WHERE[name]}"), name)
        globals()[name] = value
        return value
    if name in _MODULES:
        return import_module(f"costscape.{name}")
    raise AttributeError(f"module 'costscape' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*_WHERE, *_MODULES, "__version__"])


__all__ = [
    "DF2",
    "LSTM",
    "MLP",
    "Absolute",
    "Anchored",
    "BallWalk",
    "Box",
    "Budget",
    "Constant",
    "ConstraintSet",
    "Convex",
    "Evaluation",
    "Exhaustive",
    "ExpectedCost",
    "Finite",
    "HitAndRun",
    "Method",
    "MirrorDescent",
    "Mixture",
    "NearestNeighbours",
    "OuterBox",
    "Point",
    "Polytope",
    "ProjectedAdam",
    "ScenarioMethod",
    "Scenarios",
    "Separable",
    "SeparableTask",
    "Simplex",
    "Solver",
    "Task",
    "Training",
    "TwoStage",
    "WindowLevels",
    "checks",
    "data",
    "evaluate",
    "experiments",
    "load",
    "models",
    "sets",
    "solvers",
    "tasks",
]
