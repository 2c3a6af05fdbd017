"""A served model of a model file and a task file."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import costscape
from costscape.chance import Chance
from costscape.serve.model_names import check_distinct, checked_name, named_path
from costscape.serve.task_file import load_task

MODEL, TASK = "model.costscape", "task.py"  # files of a folder
REFERENCE, COMPARISON = "reference.json", "comparison.json"


@dataclass(frozen=True, eq=False)
class LoadedFiles:
    """What the two files contain.

    Args:
        model: Method. The fitted method.
        units: dict of str. Unit by column of X or Y, as far as known.
        chance: Chance. The service level that requests may change, or None.
    """

    model: Any
    units: dict[str, str]
    chance: Chance | None


@dataclass(frozen=True)
class Source:
    """The files of one served model.

    Args:
        name: str. What requests call the model.
        model: Path. The model file.
        task: Path. The Python file of the task.
        attribute: str, default "task". The name of the task in that file.

    >>> Source.parse("orders=models/orders.costscape", "cost.py:task").name
    'orders'
    """

    name: str
    model: Path
    task: Path
    attribute: str = "task"

    @classmethod
    def parse(cls, text: str, task: str | None = None) -> "Source":
        """Read [NAME=]PATH, a folder or a model file; ``task`` is PATH[:NAME]."""
        given, path = named_path(text)
        file, attribute = None, "task"
        if path.is_dir():
            name = path.resolve().name if given is None else given
            file, path = path / TASK, path / MODEL
        else:
            name = path.stem if given is None else given
        if task is not None:
            place, colon, after = task.rpartition(":")
            file, attribute = (Path(place), after) if colon else (Path(task), "task")
        if file is None:
            raise ValueError(
                f"{path} needs the task it was fitted for. Pass --task cost.py:task, or a folder "
                f"with {MODEL} and {TASK}."
            )
        return cls(checked_name(name, path), path, file, attribute)

    @property
    def reference(self) -> Path:
        """The file of the rows and decisions by which a version is checked; it may not exist."""
        return self._beside(REFERENCE)

    @property
    def comparison(self) -> Path:
        """The file of the costs of the last comparison; it may not exist."""
        return self._beside(COMPARISON)

    def _beside(self, name: str) -> Path:
        own = self.model.name == MODEL  # the folder has one model
        return self.model.with_name(name if own else f"{self.model.name}.{name}")

    def files(self) -> Sequence[Path]:
        """The files that make a version."""
        return self.model, self.task

    def watched(self) -> Sequence[Path]:
        """The files whose change may be another version."""
        return *self.files(), self.reference

    def load(self) -> LoadedFiles:
        """Read the files; ValueError or OSError where they are not whole or not of one task."""
        hints = {
            self.model: "Write it with model.save(...)",
            self.task: "Write it, or pass --task",
        }
        for path, hint in hints.items():
            if not path.is_file():
                raise FileNotFoundError(f"There is no file {path}. {hint}.")
        file = load_task(self.task, self.attribute)
        return LoadedFiles(costscape.load(self.model, file.task), file.units, file.chance)


def parse_sources(texts: Sequence[str], task: str | None = None) -> list[Source]:
    """The sources of several models, whose names must differ."""
    sources = [Source.parse(text, task) for text in texts]
    check_distinct([source.name for source in sources])
    return sources
