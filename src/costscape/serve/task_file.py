"""The user's task from a Python file: model files have no code, so the task comes beside them."""

import sys
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any

from costscape.chance import Chance
from costscape.task import Task


@dataclass(frozen=True, eq=False)
class TaskFile:
    """What a service takes from the task file.

    Args:
        task: Task. The variable, or what the function of that name returns.
        units: dict of str. The file's variable ``units``, if any: unit by column of X or Y.
        chance: Chance. The file's variable ``chance``, else that of the task, or None: the
            service level that requests may change.
    """

    task: Task
    units: dict[str, str]
    chance: Chance | None = None


def load_task(path: Path, name: str = "task") -> TaskFile:
    """Execute the file, and take its ``name``: a Task, or a function without arguments."""
    module = _execute(path)
    made = getattr(module, name, None)
    if not isinstance(made, Task) and callable(made):
        made = made()
    if not isinstance(made, Task):
        raise ValueError(
            f"{path} needs a Task named {name!r}, or a function that returns one, but has "
            f"{type(made).__name__}. Name another one as {path.name}:NAME."
        )
    units: Any = getattr(module, "units", {})
    if not isinstance(units, dict):
        raise ValueError(f"units of {path} needs a dict such as {{'load': 'MW'}}.")
    chance = getattr(module, "chance", made.chance)
    if chance is not None and not isinstance(chance, Chance):
        raise ValueError(f"chance of {path} needs a cs.Chance(h, level).")
    return TaskFile(made, {str(key): str(value) for key, value in units.items()}, chance)


def _execute(path: Path) -> ModuleType:
    """The module, compiled from its text: a cached one may be of an earlier text."""
    text = path.read_bytes()
    module = ModuleType(f"costscape_task_{sha256(bytes(path.resolve()) + text).hexdigest()[:16]}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # dataclasses look their module up
    try:
        exec(compile(text, path, "exec"), module.__dict__)
    except Exception as error:
        del sys.modules[module.__name__]
        raise ValueError(
            f"The task file {path} cannot be executed: {type(error).__name__}: {error}."
        ) from error
    return module
