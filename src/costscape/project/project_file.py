"""The project file, costscape.toml: which data, columns, task and method."""

import re
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NAME = "costscape.toml"
PARTS = ("table", "task", "method", "compare", "units")
PATHS = ("data", "models")


@dataclass(frozen=True)
class Project:
    """A folder with a project file.

    Args:
        folder: where relative paths of the file start.
        data: the table of past rows.
        models: the folder of the fitted model.
        table: the part ``[table]``, as TOML has it.
        task: the part ``[task]``.
        method: the part ``[method]``.
        compare: the part ``[compare]``.
        units: the part ``[units]``.
    """

    folder: Path
    data: Path
    models: Path
    table: Mapping[str, Any]
    task: Mapping[str, Any]
    method: Mapping[str, Any] = field(default_factory=dict)
    compare: Mapping[str, Any] = field(default_factory=dict)
    units: Mapping[str, Any] = field(default_factory=dict)

    @property
    def file(self) -> Path:
        return self.folder / NAME

    def place(self, part: str, key: str | None = None) -> str:
        """Where a key of a part is, for an error: file, line, part."""
        line = _line_of(self.file, part, key)
        return f"{self.file}{f', line {line}' if line else ''}, [{part}]"

    def check_keys(self, part: str, known: Collection[str]) -> None:
        """Raise ValueError for the first key of a part that is not known."""
        for key in getattr(self, part):
            if key not in known:
                raise ValueError(
                    f"{self.place(part, key)} needs keys among {', '.join(known)}, but has "
                    f"{key!r}. Correct or remove it."
                )


def is_project(folder: Path) -> bool:
    """Whether the folder has a project file."""
    return (folder / NAME).is_file()


def read_project(folder: Path) -> Project:
    """Read a project file; what its parts mean is checked where they are used.

    Args:
        folder: the folder of the file, or the file itself.
    """
    if folder.name == NAME and folder.is_file():
        folder = folder.parent
    path = folder / NAME
    if not path.is_file():
        raise FileNotFoundError(
            f"{folder} needs a project file, but has no {NAME}. Write one with `costscape init "
            f"{folder}`, or name the folder that has it."
        )
    try:
        made = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(
            f"{path} needs to be TOML in UTF-8, but cannot be read: {error}. Put quotes around "
            f"texts, and [ ] around lists."
        ) from error
    for key, value in made.items():
        if key not in (*PARTS, *PATHS) or isinstance(value, dict) != (key in PARTS):
            raise ValueError(
                f"{path}, line {_line_of(path, '', key) or 1} needs the paths {_and(PATHS)} and "
                f"the parts {_and(f'[{part}]' for part in PARTS)}, but has {key!r}. Correct or "
                f"remove it."
            )
    for key in ("data", "table", "task"):
        if not made.get(key):
            raise ValueError(
                f"{path} needs {key if key in PATHS else f'[{key}]'}, but has none. `costscape "
                f"init` in another folder writes an example."
            )
    parts = {part: made.get(part, {}) for part in PARTS}
    data, models = (folder / str(made.get(key, key)) for key in PATHS)
    return Project(folder, data, models, **parts)


def _and(words: Any) -> str:
    *some, last = words
    return f"{', '.join(some)} and {last}"


def _line_of(path: Path, part: str, key: str | None) -> int | None:
    """The line of a key, or of the head of its part; None where it is not found."""
    here, head = "", None
    for number, line in enumerate(path.read_text(encoding="utf-8-sig").splitlines(), 1):
        if found := re.match(r"\s*\[\s*([\w.-]+)\s*\]", line):
            here = found[1].split(".")[0]
            head = number if here == part and head is None else head
        if key and here == part and re.match(rf"\s*[\"']?{re.escape(key)}[\"']?\s*[=.]", line):
            return number
    return head
