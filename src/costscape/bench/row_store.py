"""The store: a folder with one small JSON file and one file of costs for each run.

    wind--df2--0.json           the row: problem, method, seed, means over the test rows
    wind--df2--0.npz            costs, regrets and gaps of each test row, float32, compressed
    wind--df2--0.quick.json     the row of a quick run
    wind--df2--1.failed.json    the row of a run that failed: it holds the error

A file is written to a temporary file and renamed, so it is never half-written.
"""

import io
import json
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from costscape.bench.runs import Run

LEFT = 60.0  # seconds after which a temporary file is no longer being written


@dataclass(frozen=True)
class Rows:
    """Reads and writes the rows of a store.

    A failure is kept beside the row and never replaces it. A run that succeeds replaces the row
    and removes the failure.
    """

    folder: Path

    def path(self, run: Run) -> Path:
        return self.folder / f"{run.name}.json"

    def failure_path(self, run: Run) -> Path:
        return self.folder / f"{run.name}.failed.json"

    def costs_path(self, run: Run) -> Path:
        return self.folder / f"{run.name}.npz"

    def finished(self, run: Run, recipe: str) -> bool:
        """Whether there is a row with this recipe that did not fail."""
        row = self.read(run)
        return row is not None and row.get("recipe") == recipe and not row.get("error")

    def read(self, run: Run) -> dict[str, Any] | None:
        """The row, else the failure, else None; a file that holds no row counts as missing."""
        row = _object(self.path(run))
        if row is not None and not row.get("error"):
            return row
        return _object(self.failure_path(run)) or row

    def costs(self, run: Run) -> dict[str, np.ndarray]:
        """The arrays of the row, one number for each test row; empty where none were kept."""
        try:
            with np.load(self.costs_path(run), allow_pickle=False) as kept:
                return {name: kept[name] for name in kept.files if name != "recipe"}
        except FileNotFoundError:
            return {}

    def write(
        self, run: Run, row: Mapping[str, Any], arrays: Mapping[str, np.ndarray] | None = None
    ) -> Path:
        """Write the row, and before it the arrays, each with one number for each test row.

        The arrays hold the recipe of the row, so a reader can tell whether they belong to it.
        """
        lines = [f" {json.dumps(k)}: {json.dumps(v, allow_nan=False)}" for k, v in row.items()]
        text = ("{\n" + ",\n".join(lines) + "\n}\n").encode()
        self.folder.mkdir(parents=True, exist_ok=True)
        if row["error"]:
            _replace(self.failure_path(run), text)
            if (_object(self.path(run)) or {}).get("error"):  # as earlier versions kept failures
                self.path(run).unlink()
            return self.failure_path(run)
        if arrays:
            packed = io.BytesIO()
            small: dict[str, Any] = {k: values.astype(np.float32) for k, values in arrays.items()}
            np.savez_compressed(packed, recipe=np.array(row["recipe"]), **small)
            _replace(self.costs_path(run), packed.getvalue())
        _replace(self.path(run), text)
        if not arrays:
            self.costs_path(run).unlink(missing_ok=True)
        self.failure_path(run).unlink(missing_ok=True)
        return self.path(run)

    def check_writable(self) -> None:
        """Raise an OSError in words if the store cannot be written to."""
        probe = self.folder / f"probe.{os.getpid()}.part"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            probe.write_bytes(b"probe")
            probe.unlink()
        except OSError as error:
            raise OSError(
                f"The store needs a folder that can be written to, but {self.folder} cannot "
                f"({error.strerror}). Name another folder with --store."
            ) from error

    def sweep_up(self) -> None:
        """Remove the temporary files of killed writers."""
        for part in self.folder.glob("*.part"):
            with suppress(FileNotFoundError):
                if time.time() - part.stat().st_mtime > LEFT:
                    part.unlink()


def _replace(path: Path, content: bytes) -> None:
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    part.write_bytes(content)
    os.replace(part, path)


def _object(path: Path) -> dict[str, Any] | None:
    """The JSON object of a file; None where there is none."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    return found if isinstance(found, dict) else None
