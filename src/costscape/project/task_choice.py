"""The part [task] of a project file as a task: ready-made, or the user's Python."""

from collections.abc import Callable, Mapping
from inspect import signature
from typing import Any

from costscape.project.cost_file import task_in
from costscape.project.project_file import Project
from costscape.project.table_settings import table_settings
from costscape.task import Task
from costscape.tasks import allocation, bidding, newsvendor

READY: Mapping[str, Callable[..., Task]] = {
    "newsvendor": newsvendor,
    "bidding": bidding,
    "allocation": allocation,
}
PYTHON = "python"


def make_task(project: Project) -> Task:
    """The task that the file names; the file of ``python`` is executed.

    A ready-made task decides one number for each outcome and day of the horizon.
    """
    project.check_keys("task", (*READY, PYTHON))
    if len(project.task) != 1:
        raise ValueError(
            f"{project.place('task')} needs exactly one task, but has {', '.join(project.task)}. "
            f"Comment out the others."
        )
    ((name, value),) = project.task.items()
    if name == PYTHON:
        return task_in(project.folder / str(value))
    settings = table_settings(project)
    dim = len(settings.outcome) * settings.horizon
    try:
        return READY[name](**{"dim": dim, **_arguments(name, value)})
    except (TypeError, ValueError) as error:
        words = str(error).removesuffix(".")
        raise ValueError(f"{project.place('task', name)}: {words}.") from error


def quantile_of(project: Project) -> float | None:
    """The level of the best order of a newsvendor with two prices; None for other tasks."""
    value = project.task.get("newsvendor")
    under, over = (value.get(key) for key in ("under", "over")) if value else (None, None)
    if isinstance(under, int | float) and isinstance(over, int | float):
        return order_level(under, over)
    return None


def order_level(under: float, over: float) -> float | None:
    """The quantile of demand that is the best order; None where both prices are 0.

    Args:
        under: the cost of a missing piece.
        over: the cost of a spare piece.
    """
    return float(under / (under + over)) if under + over > 0 else None


def _arguments(name: str, value: Any) -> Mapping[str, Any]:
    """The settings of a ready-made task: all that it needs, and no others."""
    if not isinstance(value, dict):
        raise TypeError(f"{name} needs its settings in {{ }}, but got {value!r}")
    known = signature(READY[name]).parameters
    needed = [key for key, p in known.items() if p.default is p.empty]
    wrong = [f"lacks {k!r}" for k in needed if k not in value]
    wrong += [f"has {k!r}" for k in value if k not in known]
    if wrong:
        raise ValueError(
            f"{name} needs {', '.join(needed)}, and takes {', '.join(known)}, but {wrong[0]}"
        )
    return value
