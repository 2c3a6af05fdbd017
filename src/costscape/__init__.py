"""Learn the expected cost of every action, then choose the best one.

    task  = Task(cost, Box(0.0, 3.0, dim=7))
    model = DF2(task).fit(X, Y)
    a     = model.decide(X_new)

The data's way: data -> task (cost f, set C) -> method.fit -> method.decide -> evaluate -> report.
"""

import gc
from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from costscape import bench, checks, data, distributed, models, problems, sets, solvers
    from costscape.comparison import Comparison, compare, default_methods
    from costscape.evaluation import Evaluation, evaluate
    from costscape.methods import (
        CME,
        DF2,
        DFL,
        EGL,
        LANCER,
        LODL,
        SOEBM,
        Blend,
        Constant,
        Costs,
        CrossFit,
        DirectedQuadratic,
        DirectedWeightedMSE,
        Greedy,
        KernelSmoother,
        Langevin,
        LossNetwork,
        Method,
        NearestNeighbours,
        PlainNetwork,
        PolicyNet,
        Quadratic,
        RandomForest,
        ScenarioMethod,
        Slopes,
        SlopeWeights,
        SurfaceMethod,
        TaskMet,
        TwoStage,
        WeightedMSE,
        load,
    )
    from costscape.models import (
        LSTM,
        MLP,
        Absolute,
        Anchored,
        LocationScale,
        Mixture,
        Point,
        WindowLevels,
    )
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
        CvxpyLayer,
        Exhaustive,
        FrankWolfe,
        Implicit,
        Layer,
        MirrorDescent,
        ProjectedAdam,
        Separable,
        Solver,
    )
    from costscape.task import SeparableTask, Task
    from costscape.training.loop import Training

# torch takes two seconds to import: names are found when first used, so that `costscape --help`
# answers at once
_ROOMS = {
    "comparison": ("Comparison", "compare", "default_methods"),
    "evaluation": ("Evaluation", "evaluate"),
    "methods": ("CME", "DF2", "DFL", "EGL", "LANCER", "LODL", "SOEBM", "Blend",
                "Constant", "Costs", "CrossFit", "DirectedQuadratic", "DirectedWeightedMSE",
                "Greedy", "KernelSmoother", "Langevin",
                "LossNetwork", "Method", "NearestNeighbours", "PlainNetwork", "PolicyNet",
                "Quadratic", "RandomForest", "ScenarioMethod", "SlopeWeights", "Slopes",
                "SurfaceMethod",
                "TaskMet", "TwoStage", "WeightedMSE", "load"),
    "models": ("LSTM", "MLP", "Absolute", "Anchored", "LocationScale", "Mixture", "Point",
               "WindowLevels"),
    "scenarios": ("ExpectedCost", "Scenarios"),
    "sets": ("BallWalk", "Box", "Budget", "ConstraintSet", "Finite", "HitAndRun", "OuterBox",
             "Polytope", "Simplex"),
    "solvers": ("Convex", "CvxpyLayer", "Exhaustive", "FrankWolfe", "Implicit", "Layer",
                "MirrorDescent", "ProjectedAdam", "Separable", "Solver"),
    "task": ("Refusal", "SeparableTask", "Task"),
    "training.loop": ("Training",),
}  # fmt: skip
_WHERE = {name: room for room, names in _ROOMS.items() for name in names}
_MODULES = ("bench", "checks", "data", "distributed", "models", "problems", "sets", "solvers")


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        value = getattr(_module(_WHERE[name]), name)
        globals()[name] = value
        return value
    if name in _MODULES:
        return _module(name)
    raise AttributeError(f"module 'costscape' has no attribute {name!r}")


def _module(name: str) -> Any:
    """Importing leaves no garbage, and to look for some takes a quarter as long again: torch has
    hundreds of thousands of objects."""
    collects = gc.isenabled()
    gc.disable()
    try:
        return import_module(f"costscape.{name}")
    finally:
        if collects:
            gc.enable()


def __dir__() -> list[str]:
    return sorted([*_WHERE, *_MODULES, "__version__"])


__all__ = [
    "CME",
    "DF2",
    "DFL",
    "EGL",
    "LANCER",
    "LODL",
    "LSTM",
    "MLP",
    "SOEBM",
    "Absolute",
    "Anchored",
    "BallWalk",
    "Blend",
    "Box",
    "Budget",
    "Comparison",
    "Constant",
    "ConstraintSet",
    "Convex",
    "Costs",
    "CrossFit",
    "CvxpyLayer",
    "DirectedQuadratic",
    "DirectedWeightedMSE",
    "Evaluation",
    "Exhaustive",
    "ExpectedCost",
    "Finite",
    "FrankWolfe",
    "Greedy",
    "HitAndRun",
    "Implicit",
    "KernelSmoother",
    "Langevin",
    "Layer",
    "LocationScale",
    "LossNetwork",
    "Method",
    "MirrorDescent",
    "Mixture",
    "NearestNeighbours",
    "OuterBox",
    "PlainNetwork",
    "Point",
    "PolicyNet",
    "Polytope",
    "ProjectedAdam",
    "Quadratic",
    "RandomForest",
    "Refusal",
    "ScenarioMethod",
    "Scenarios",
    "Separable",
    "SeparableTask",
    "Simplex",
    "SlopeWeights",
    "Slopes",
    "Solver",
    "SurfaceMethod",
    "Task",
    "TaskMet",
    "Training",
    "TwoStage",
    "WeightedMSE",
    "WindowLevels",
    "bench",
    "checks",
    "compare",
    "data",
    "default_methods",
    "distributed",
    "evaluate",
    "load",
    "models",
    "problems",
    "sets",
    "solvers",
]
