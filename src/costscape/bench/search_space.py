"""What a search may change: the same settings for every network, and a few of each class.

A setting is named by its place: ``training.lr``, ``encoder.hidden``, or ``k`` for a setting of
the method itself. To give a class settings of its own, add an entry to OWN.
"""

import hashlib
import inspect
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

from costscape.methods import (
    CME,
    DF2,
    DFL,
    EGL,
    LANCER,
    LODL,
    SOEBM,
    CrossFit,
    DecisionForest,
    KernelSmoother,
    Method,
    NearestNeighbours,
    PlainNetwork,
    RandomForest,
    ResidualSAA,
    TaskMet,
    TwoStage,
)
from costscape.models import Builder
from costscape.models.encoders import by_shape

Settings = Mapping[str, Any]


@dataclass(frozen=True)
class Real:
    """A number from ``low`` to ``high``, on a log scale if ``log``."""

    low: float
    high: float
    log: bool = True

    def __str__(self) -> str:
        return f"{self.low:g} to {self.high:g}{', log' * self.log}"


@dataclass(frozen=True)
class Whole:
    """A whole number from ``low`` to ``high``, both included, on a log scale if ``log``."""

    low: int
    high: int
    log: bool = True

    def __str__(self) -> str:
        return f"{self.low} to {self.high}{', log' * self.log}"


@dataclass(frozen=True)
class OneOf:
    """One of the ``values``, which are JSON; a list stands for a tuple."""

    values: tuple[Any, ...]

    def __str__(self) -> str:
        return ", ".join(str(value) for value in self.values)


Range = Real | Whole | OneOf
Space = Mapping[str, Range]

# of every method that trains networks
TRAINING: Space = {"lr": Real(1e-4, 3e-2), "epochs": Whole(5, 100)}
ENCODER: Space = {
    "hidden": OneOf((32, 64, 128, 256)),
    "layers": OneOf((1, 2, 3)),
    "dropout": OneOf((0.0, 0.1, 0.3, 0.5)),
}
# in every trial but the first: early stopping is then the same for all methods
FIXED: dict[str, Any] = {"batch_size": 64, "patience": None, "smooth": 1}

DRAWS = Whole(100, 1000)  # to decide by
SPREAD, SAMPLES = Real(0.5, 3.0), Whole(16, 128)  # of the perturbed forecasts
LEAF, FEATURES = Whole(1, 50), Real(0.2, 1.0, log=False)
OWN: dict[type[Method], Space] = {
    DF2: {"points": Whole(50, 400), "outcome_share": Real(0.0, 1.0, log=False)},
    PlainNetwork: {"hidden": OneOf((32, 64, 128))},
    TwoStage: {"draws": DRAWS},
    DFL: {"rates": OneOf(([0.3, 0.03], [1.0, 0.1], [0.1, 0.01]))},
    SOEBM: {"weight": Real(1e-3, 1.0), "draws": DRAWS},
    LODL: {"spread": SPREAD, "samples": SAMPLES},
    EGL: {"spread": SPREAD, "samples": SAMPLES},
    LANCER: {"regularise": Real(1e-2, 1.0), "width": Whole(50, 200)},
    TaskMet: {"rate": Real(1e-4, 1e-2), "width": Whole(50, 200)},
    NearestNeighbours: {"k": Whole(5, 200)},
    KernelSmoother: {"width": Real(0.05, 20.0)},
    CME: {"penalty": Real(1e-6, 1.0), "width": Real(0.05, 20.0)},
    RandomForest: {"min_leaf": LEAF, "features": FEATURES},
    DecisionForest: {"min_leaf": LEAF, "features": FEATURES},
    ResidualSAA: {"ridge": Real(1e-6, 1e3)},  # from a plain line to nearly the mean of y
}


def inner_of(method: Method) -> Method:
    """The method itself, or the one that CrossFit fits."""
    return method.method if isinstance(method, CrossFit) else method


def space_of(method: Method) -> dict[str, Range]:
    """The ranges of the settings that a search changes, by the place of each setting."""
    inner = inner_of(method)
    space: dict[str, Range] = {}
    if inner.trains() is not None:
        space |= {f"training.{name}": values for name, values in TRAINING.items()}
    if "encoder" in inner.setting_names():
        taken = inspect.signature(_encoder_of(inner, (1,))).parameters
        space |= {f"encoder.{name}": v for name, v in ENCODER.items() if name in taken}
    return {**space, **OWN.get(type(inner), {})}


def with_settings(method: Method, settings: Settings, x_shape: tuple[int, ...]) -> Method:
    """An unfitted copy with these settings; none of them leave the method as it is.

    Args:
        method: the method.
        settings: values by the place of each setting, as ``space_of`` names them.
        x_shape: the shape of one row of x, for methods that choose their encoder by it.
    """
    if not settings:
        return method
    inner, places = inner_of(method), _by_place(settings)
    changes = places[""]
    training = inner.trains()
    if training is not None:
        changes["training"] = replace(training, **FIXED, **places["training"])
    if places["encoder"]:
        changes["encoder"] = partial(_encoder_of(inner, x_shape), **places["encoder"])
    return method.changed(**changes)


def fingerprint_of(method: Method) -> str:
    """A hash that is equal for methods with the same search space."""
    space = {name: [type(v).__name__, asdict(v)] for name, v in space_of(method).items()}
    text = json.dumps([space, FIXED], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def space_table() -> str:
    """All ranges as a Markdown table."""
    lines = ["| class | setting | range |", "|---|---|---|"]
    fixed = {f"training.{name}": str(value) for name, value in FIXED.items()}
    shared = {
        **{f"training.{name}": values for name, values in TRAINING.items()},
        **{f"encoder.{name}": values for name, values in ENCODER.items()},
        **fixed,
    }
    lines += [f"| every network | `{name}` | {values} |" for name, values in shared.items()]
    for kind, space in OWN.items():
        lines += [f"| `{kind.__name__}` | `{name}` | {values} |" for name, values in space.items()]
    return "\n".join(lines)


def _encoder_of(method: Method, x_shape: tuple[int, ...]) -> Builder:
    builder: Builder | None = getattr(method, "encoder", None)
    return by_shape(x_shape) if builder is None else builder


def _by_place(settings: Settings) -> dict[str, dict[str, Any]]:
    places: dict[str, dict[str, Any]] = {"": {}, "training": {}, "encoder": {}}
    for name, value in settings.items():
        place, _, field = name.rpartition(".")
        places[place][field] = tuple(value) if isinstance(value, list) else value
    return places
