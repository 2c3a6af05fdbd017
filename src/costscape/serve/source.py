"""Where a served model comes from: its file, its task file and its reference."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

MODEL, TASK = "model.costscape", "task.py"  # files of a folder
REFERENCE, COMPARISON = "reference.json", "comparison.json"


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
        given, sign, rest = text.partition("=")
        path = Path(rest if sign else text)
        if path.is_dir():
            name = given if sign else path.resolve().name
            file, attribute = path / TASK, "task"
            path = path / MODEL
        else:
            name, file, attribute = given if sign else path.stem, None, "task"
        if task is not None:
            place, colon, after = task.rpartition(":")
            file, attribute = (Path(place), after) if colon else (Path(task), "task")
        if file is None:
            raise ValueError(
                f"{path} needs the task it was fitted for. Pass --task cost.py:task, or a folder "
                f"with {MODEL} and {TASK}."
            )
        if not name.replace("-", "").replace("_", "").replace(".", "").isalnum():
            raise ValueError(
                f"A model needs a name of letters, digits, '-', '_' and '.', but got {name!r}. "
                f"Write NAME={path}."
            )
        return cls(name, path, file, attribute)

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

    def version(self) -> str:
        """Twelve digits of the SHA-256 of the model file and the task file."""
        digest = sha256()
        hints = {
            self.model: "Write it with model.save(...)",
            self.task: "Write it, or pass --task",
        }
        for path, hint in hints.items():
            if not path.is_file():
                raise FileNotFoundError(f"There is no file {path}. {hint}.")
            with path.open("rb") as file:
                while block := file.read(2**20):
                    digest.update(block)
        return digest.hexdigest()[:12]

    def state(self) -> tuple[tuple[int, int, int] | None, ...]:
        """Time, size and inode of each file: another state means another version, perhaps."""
        return tuple(_state(path) for path in (self.model, self.task, self.reference))


def parse_sources(texts: Sequence[str], task: str | None = None) -> list[Source]:
    """The sources of several models, whose names must differ."""
    sources = [Source.parse(text, task) for text in texts]
    names = [source.name for source in sources]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(
            f"Each model needs a name of its own, but {', '.join(twice)} is there twice. Write "
            f"NAME=PATH."
        )
    return sources


def _state(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
