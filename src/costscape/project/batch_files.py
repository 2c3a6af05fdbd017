"""Which files a batch reads and writes, and the manifest of those that are done.

The manifest is a file of JSON lines. A row names an input with its size and hash, the fingerprint
of the model, and the output with its size and hash. It is added after the output was renamed to
its place, so an output that it names is whole. A line that was cut off is ignored.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

from costscape.whole_file import PART, sweep_parts, write_whole

MANIFEST = "manifest.jsonl"


@dataclass(frozen=True)
class FileState:
    """The size of a file and the SHA-256 of its bytes."""

    size: int
    sha256: str

    @classmethod
    def of(cls, path: Path) -> "FileState":
        """Read a file."""
        digest = sha256()
        with path.open("rb") as file:
            while block := file.read(2**20):
                digest.update(block)
        return cls(path.stat().st_size, digest.hexdigest())


@dataclass(frozen=True)
class Done:
    """A row of the manifest.

    Args:
        input: the name of the input file.
        read: its state when it was read.
        model: the fingerprint of the model.
        output: the name of the output file.
        written: its state.
        rows: how many decisions it has.
    """

    input: str
    read: FileState
    model: str
    output: str
    written: FileState
    rows: int

    @classmethod
    def from_json(cls, text: str) -> "Done":
        """Read a line; ValueError, KeyError or TypeError where it is cut off."""
        made = json.loads(text)
        states = {key: FileState(**made[key]) for key in ("read", "written")}
        return cls(**{**made, **states})

    def to_json(self) -> str:
        """The line."""
        return json.dumps(asdict(self))

    def holds(self, path: Path, out: Path, model: str) -> bool:
        """Whether the output is there, whole, and of this input and model.

        Args:
            path: the input.
            out: the folder of outputs.
            model: the fingerprint.
        """
        made = out / self.output
        return (
            self.model == model
            and made.is_file()
            and made.stat().st_size == self.written.size
            and path.stat().st_size == self.read.size
            and FileState.of(path) == self.read
            and FileState.of(made) == self.written
        )


class Manifest:
    """The rows of a folder of outputs.

    Args:
        out: the folder, which exists.
    """

    def __init__(self, out: Path) -> None:
        self.path = out / MANIFEST
        self.rows: dict[str, Done] = {}
        for line in self._lines():
            try:
                row = Done.from_json(line)
            except (ValueError, KeyError, TypeError):
                continue  # cut off
            self.rows[row.input] = row
        self._rewrite()

    def add(self, row: Done) -> None:
        """Append a row; it is on the disk when this returns."""
        self.rows[row.input] = row
        with self.path.open("a", encoding="utf-8") as file:
            file.write(row.to_json() + "\n")
            file.flush()
            os.fsync(file.fileno())

    def drop(self, path: Path) -> None:
        """Forget an input, and remove its output, also one that has no row yet.

        Args:
            path: the input.
        """
        if self.rows.pop(path.name, None) is not None:
            self._rewrite()
        (self.path.parent / output_of(path)).unlink(missing_ok=True)

    def close(self) -> None:
        """Sort the rows by input, so that the file does not depend on the order of work."""
        self._rewrite()

    def _lines(self) -> list[str]:
        if not self.path.exists():
            return []
        return self.path.read_text(encoding="utf-8", errors="replace").splitlines()

    def _rewrite(self) -> None:
        lines = [self.rows[name].to_json() + "\n" for name in sorted(self.rows)]
        write_whole(self.path, "".join(lines).encode())


def is_batch(data: Path | None) -> bool:
    """Whether --data names several files: a folder, or a pattern such as 'new/*.parquet'."""
    if data is None or data.is_file():
        return False
    return data.is_dir() or any(sign in str(data) for sign in "*?[")


def inputs_of(data: Path, out: Path) -> list[Path]:
    """The files of a folder (its Parquet files) or of a pattern, in order of their names.

    Args:
        data: the folder or the pattern.
        out: the folder of outputs, which must not have inputs in it.
    """
    import glob

    pattern = str(data / "*.parquet") if data.is_dir() else str(data)
    found = [path for name in sorted(glob.glob(pattern)) if (path := Path(name)).is_file()]
    if not found:
        raise FileNotFoundError(f"--data needs at least one file, but none is like {pattern}.")
    if inside := [path for path in found if path.parent.resolve() == out.resolve()]:
        raise ValueError(
            f"-o needs another folder than that of the inputs, but {inside[0]} is in {out}."
        )
    _check_names(found)
    return found


def output_of(path: Path) -> str:
    """The name of the output of an input."""
    return f"{path.stem}.parquet"


def prepare(out: Path, force: bool) -> Manifest:
    """Make the folder of outputs; refuse a folder with files of others.

    Args:
        out: the folder.
        force: take it anyway; files of the same names are written over.
    """
    if out.exists() and not out.is_dir():
        raise NotADirectoryError(
            f"-o needs a folder for the outputs of several files, but {out} is a file."
        )
    if not force and out.is_dir() and any(out.iterdir()) and not (out / MANIFEST).exists():
        raise FileExistsError(
            f"{out} has files, but no {MANIFEST}. Take an empty folder, or write over files of "
            f"the same names with --force."
        )
    out.mkdir(parents=True, exist_ok=True)
    sweep_parts(out.glob(f"*{PART}"))
    return Manifest(out)


def _check_names(paths: Sequence[Path]) -> None:
    seen: dict[str, Path] = {}
    for path in paths:
        if (other := seen.setdefault(output_of(path), path)) is not path:
            raise ValueError(
                f"--data needs files whose names differ, since outputs have them, but {other} and "
                f"{path} have the same. Rename one, or run the command twice."
            )
