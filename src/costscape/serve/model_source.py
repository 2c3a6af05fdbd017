"""What a service needs of a model: a name, the files of a version, and how to load it."""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from costscape.chance import Chance

BLOCK = 2**20  # bytes that are read at once


@runtime_checkable
class Loaded(Protocol):
    """A fitted method, the unit of each column as far as known, and its service level."""

    @property
    def model(self) -> Any: ...

    @property
    def units(self) -> Mapping[str, str]: ...

    @property
    def chance(self) -> Chance | None: ...


@runtime_checkable
class ModelSource(Protocol):
    """Where a model comes from: a model file with its task, or a project."""

    @property
    def name(self) -> str:
        """What requests call the model."""

    @property
    def model(self) -> Path:
        """The model file."""

    @property
    def reference(self) -> Path:
        """The file of the rows and decisions by which a version is checked; it may not exist."""

    @property
    def comparison(self) -> Path:
        """The file of the costs of the last comparison; it may not exist."""

    def files(self) -> Sequence[Path]:
        """The files that make a version."""

    def watched(self) -> Sequence[Path]:
        """The files whose change may be another version: those, and the reference."""

    def load(self) -> Loaded:
        """Read the files; ValueError or OSError where they are not whole or not of one task."""


def version_of(source: ModelSource) -> str:
    """Twelve digits of the SHA-256 of all files of a version; ``load`` names missing ones."""
    digest = sha256()
    for path in source.files():
        if not path.is_file():
            continue
        with path.open("rb") as file:
            while block := file.read(BLOCK):
                digest.update(block)
    return digest.hexdigest()[:12]
