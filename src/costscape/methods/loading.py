"""From a model file back to a fitted method."""

from dataclasses import fields
from pathlib import Path
from typing import Any
from warnings import warn

import costscape
from costscape.methods import saving
from costscape.methods.header_check import BoundedBuild, check_header
from costscape.methods.method import Method
from costscape.task import Task


def load(
    path: str | Path, task: Task, *, method: type[Method] | Method | None = None, **settings: Any
) -> Any:
    """Loads a fitted method from a file that ``save`` wrote; it decides bit for bit as before.

    Args:
        path: str or Path. The model file.
        task: Task. The task the model was fitted for. A task is code, so the file does not contain
            it, but some of its costs: a task with another cost is refused. The set may differ.
        method: class or unfitted Method, default None. The class of the method, where that is the
            user's code; or the unfitted method inside a CrossFit.
        settings: any. Settings that replace stored ones, or supply those that are the user's code,
            such as ``encoder=MyEncoder``. They also reach the method inside a CrossFit.

    Returns:
        Method. The fitted method.

    >>> import tempfile
    >>> import numpy as np
    >>> import costscape as cs
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.random((40, 3)), rng.random((40, 2))
    >>> task = cs.problems.inventory(days=2)
    >>> method = cs.NearestNeighbours(task, k=10).fit(X, Y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     method.save(f"{folder}/model.safetensors")
    ...     loaded = cs.load(f"{folder}/model.safetensors", task)
    >>> bool((loaded.decide(X) == method.decide(X)).all())
    True
    """
    tensors, head = saving.read(Path(path))
    with saving.blamed(path):
        check_header(head)
    if isinstance(method, Method):
        settings["method"], method = method, None
    cls = method or _method_named(head["method"])
    if cls is None or cls.__name__ != head["method"]:
        raise ValueError(
            f"{path} holds a {head['method']:.80}, and costscape has no such method. Pass its "
            f"class as load(path, task, method={head['method']:.80})."
        )
    if not head["fitted"].get("record"):
        warn(
            f"{path} is of an earlier version of costscape, without the columns and ranges of X "
            f"and without costs: neither X nor the task can be checked. Fit and save the model "
            f"again.",
            stacklevel=2,
        )
    with saving.blamed(path):
        made = _made(cls, head, task, path, settings)
        with BoundedBuild(tensors):
            made.restore(tensors, head["fitted"])
    return made


def _made(
    cls: type[Method],
    head: dict[str, Any],
    task: Task,
    path: str | Path,
    given: dict[str, Any],
    again: str | None = None,
) -> Method:
    """The unfitted method of these settings, and of those that were given.

    What is given and is no setting of ``cls`` is one of the method inside. ``again`` is what the
    user has to pass where code is missing; None names the setting itself.
    """
    names = {f.name for f in fields(cls)}  # type: ignore[arg-type]
    own = {name: value for name, value in given.items() if name in names}
    rest = {name: value for name, value in given.items() if name not in names}
    stored = {name: value for name, value in head["settings"].items() if name not in own}
    if rest and "method" not in stored:
        raise saving.Mismatch(f"{cls.__name__} has no setting named {', '.join(sorted(rest))}.")

    def inner(part: dict[str, Any]) -> Method:
        in_list = "method" not in stored
        inside = _method_named(part["method"])
        if inside is None:
            wanted = "methods=[...]" if in_list else f"method={part['method']}(task)"
            raise saving.Mismatch(
                f"{path} holds a {part['method']} inside a {head['method']}, and costscape has "
                f"no such method. Pass it again: load(path, task, {wanted})."
            )
        return _made(inside, part, task, path, rest, "methods=[...]" if in_list else again)

    for name, value in stored.items():
        if missing := saving.needs_caller(value):
            asked = again or f"{name}={missing}"
            raise saving.Mismatch(
                f"{path} was fitted with {name}={missing}, which is your own code and not in the "
                f"file. Pass it again: load(path, task, {asked})."
            )
    values = saving.settings_from_json(stored, inner)
    if "task" in names:
        values["task"] = task
    build: Any = cls
    made: Method = build(**values, **own)
    return made


def _method_named(name: str) -> type[Method] | None:
    """Return the public method of that name."""
    cls = getattr(costscape, name, None) if name in dir(costscape) else None
    return cls if isinstance(cls, type) and issubclass(cls, Method) else None
