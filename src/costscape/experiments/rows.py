"""The store: a folder with one small JSON file for each run."""

import json
import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from costscape.experiments.runs import Run

LEFT = 60.0  # seconds after which a part is no longer being written


@dataclass(frozen=True)
class Rows:
    """Rows are written beside and renamed: a file of that name is whole, old or new."""

    folder: Path

    def path(self, run: Run) -> Path:
        return self.folder / f"{run.name}.json"

    def finished(self, run: Run, recipe: str) -> bool:
        """Whether there is a row of this very recipe that did not fail."""
        row = self.read(run)
        return row is not None and row.get("recipe") == recipe and not row.get("error")

    def read(self, run: Run) -> dict[str, Any] | None:
        """The row; None where there is none, or something else in its place."""
        try:
            row = json.loads(self.path(run).read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return None
        return row if isinstance(row, dict) else None

    def write(self, run: Run, row: dict[str, Any]) -> Path:
        path = self.path(run)
        self.folder.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f"{path.name}.{os.getpid()}.part")
        lines = [f" {json.dumps(k)}: {json.dumps(v, allow_nan=False)}" for k, v in row.items()]
        part.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
        os.replace(part, path)
        return path

    def sweep_up(self) -> None:
        """Remove what a killed writer left behind."""
        for part in self.folder.glob("*.part"):
            with suppress(FileNotFoundError):
                if time.time() - part.stat().st_mtime > LEFT:
                    part.unlink()
