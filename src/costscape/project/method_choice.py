"""The part [method] of a project file as a method."""

from collections.abc import Callable, Mapping
from typing import Any

from costscape.methods import (
    DF2,
    Constant,
    Method,
    NearestNeighbours,
    RandomForest,
    TwoStage,
)
from costscape.models import Mixture
from costscape.project.project_file import Project
from costscape.task import Task
from costscape.training import Training

METHODS: Mapping[str, Callable[..., Method]] = {
    "DF2.quick": DF2.quick,
    "DF2": DF2,
    "TwoStage": lambda task: TwoStage(task, Mixture(3)),
    "RandomForest": RandomForest,
    "NearestNeighbours": NearestNeighbours,
}
COMPARED = {**METHODS, "Constant": Constant}  # it has no scenarios, from which costs are computed


def make_method(project: Project, task: Task) -> Method:
    """The unfitted method that the file names; DF2.quick where it names none."""
    settings = dict(project.method)
    name = settings.pop("name", "DF2.quick")
    place = project.place("method", "name")
    method = method_named(name, task, place, METHODS)
    known = method.setting_names() - {"task", "solver"}
    project.check_keys("method", ("name", *sorted(known)))
    try:
        if "training" in settings:
            settings["training"] = Training(**settings["training"])
        return method.changed(**settings)
    except (TypeError, ValueError) as error:
        words = str(error).removesuffix(".")
        raise ValueError(f"{project.place('method')}: {words}.") from error


def method_named(
    name: Any, task: Task, place: str, methods: Mapping[str, Callable[..., Method]] = COMPARED
) -> Method:
    """A method with its defaults.

    Args:
        name: a key of ``methods``.
        task: of the method.
        place: where the name was read, for an error.
        methods: those allowed there.
    """
    if not isinstance(name, str) or name not in methods:
        raise ValueError(
            f"{place} needs a method among {', '.join(methods)}, but has {name!r}. Correct it; "
            f"other methods are reached from Python."
        )
    return methods[name](task)
