"""The store of rows: a folder to which several processes may write, and which a kill cannot hurt.

A finished run is written to files of its own (``pending``). ``merge`` moves them into the file of
their problem. ``store_files`` has the names and the format of the files.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from costscape.bench.origin_names import file_stem
from costscape.bench.store_files import (
    PENDING,
    RECIPE,
    Arrays,
    Key,
    Row,
    costs_path,
    key_of,
    locked,
    merged_paths,
    pending_path,
    read_costs,
    read_lines,
    read_object,
    write_costs,
    write_lines,
)
from costscape.whole_file import check_folder, sweep_parts, write_whole

if TYPE_CHECKING:
    from costscape.bench.runs import Run


@dataclass(frozen=True)
class Rows:
    """Reads and writes the rows of a store.

    A run that succeeds replaces its row and removes its failure. A failure is kept beside the row
    and never replaces it. A quick run is another run than the full one.

    - ``folder``: the store; it is made by the first write.
    """

    folder: Path

    def finished(self, run: "Run", recipe: str) -> bool:
        """Whether there is a row with this recipe that did not fail."""
        row = self.read(run)
        return row is not None and row.get("recipe") == recipe and not row.get("error")

    def read(self, run: "Run") -> Row | None:
        """The row, else the failure, else None; a pending file that holds no row is ignored."""
        keys = Key(run.name, False), Key(run.name, True)
        # pending files first: one that is merged meanwhile is then rows in the merged file
        pending = {key: read_object(pending_path(self.folder, key)) for key in keys}
        merged = read_lines(self.folder / f"{file_stem(run.problem)}.jsonl")
        rows = fold({key: merged[key] for key in keys if key in merged}, pending)
        return next((dict(rows[key]) for key in keys if key in rows), None)

    def write(
        self, run: "Run", row: Mapping[str, Any], arrays: Mapping[str, np.ndarray] | None = None
    ) -> Path:
        """Write the row of a finished run, and before it the arrays, as pending files.

        The arrays hold the recipe of the row, so a reader can tell whether they belong to it.
        """
        key = Key(run.name, bool(row["error"]))
        path = pending_path(self.folder, key)
        text = json.dumps(row, allow_nan=False).encode() + b"\n"
        with locked(self.folder):
            if not key.failed:
                costs = path.with_suffix(".npz")
                if arrays:
                    small = {name: values.astype(np.float32) for name, values in arrays.items()}
                    write_costs(costs, {"": {RECIPE: np.array(row["recipe"]), **small}})
                write_whole(path, text)
                if not arrays:
                    costs.unlink(missing_ok=True)
                pending_path(self.folder, Key(run.name, True)).unlink(missing_ok=True)
            else:
                write_whole(path, text)
        return path

    def merge(self) -> int:
        """Move pending rows into the files of their problems; how many rows there were.

        A pending file is removed after the files that hold its content are on disk, so a merge
        that is killed loses nothing, and the next one completes it.
        """
        if not (self.folder / PENDING).is_dir():
            return 0
        with locked(self.folder):
            pending = self.read_pending()
            stems = {key: file_stem(row["problem"]) for key, row in pending.items()}
            for stem in sorted(set(stems.values())):
                self._merge_problem(
                    stem, {k: row for k, row in pending.items() if stems[k] == stem}
                )
            for orphan in (self.folder / PENDING).glob("*.npz"):  # of a killed merge or writer
                if not orphan.with_suffix(".json").exists():
                    orphan.unlink()
            with suppress(OSError):  # files that hold no row stay there
                (self.folder / PENDING).rmdir()
        return len(pending)

    def _merge_problem(self, problem: str, pending: dict[Key, Row]) -> None:
        costs = read_costs(costs_path(self.folder, problem))
        for key in (key for key in pending if not key.failed):
            costs.pop(key.name, None)
            own = read_costs(pending_path(self.folder, key).with_suffix(".npz"))
            if "" in own:
                costs[key.name] = own[""]
        if costs:
            write_costs(costs_path(self.folder, problem), costs)
        else:
            costs_path(self.folder, problem).unlink(missing_ok=True)
        path = self.folder / f"{problem}.jsonl"
        write_lines(path, fold(read_lines(path), pending).values())
        for key in pending:
            done = pending_path(self.folder, key)
            done.unlink()
            if not key.failed:
                done.with_suffix(".npz").unlink(missing_ok=True)

    def read_pending(self, strict: bool = False) -> dict[Key, Row]:
        """The pending rows; a file without the row of its name is ignored, or an error."""
        rows: dict[Key, Row] = {}
        for path in sorted((self.folder / PENDING).glob("*.json")):
            row = read_object(path)
            with suppress(KeyError, TypeError, AttributeError):
                if row is not None and pending_path(self.folder, key_of(row)) == path:
                    rows[key_of(row)] = row
                    continue
            if strict and path.exists():
                raise ValueError(
                    f"{path} should hold the row of the run in its name as JSON, but does not. "
                    f"Delete the file and run again."
                )
        return rows

    def check_writable(self) -> None:
        """Raise an OSError in words if the store cannot be written to."""
        check_folder(self.folder)

    def sweep_up(self) -> None:
        """Remove the temporary files of killed writers."""
        sweep_parts(self.folder.rglob("*.part"))


def read_store(folder: Path) -> Iterator[tuple[Path, Row, Arrays]]:
    """Each run of a store: the file of its row, the row, and its arrays by test row.

    Of a run with a row and a later failure only the row is read. Arrays of another recipe than
    the row's are left out.
    """
    store = Rows(folder)
    # pending files first: one that is merged meanwhile is then every in the merged file
    pending = store.read_pending(strict=True)
    own = {key: read_costs(pending_path(folder, key).with_suffix(".npz")) for key in pending}
    merged = {path: read_lines(path) for path in merged_paths(folder)}
    files = {key: path for path, rows in merged.items() for key in rows}
    files |= {key: pending_path(folder, key) for key in pending}
    every = fold({key: row for rows in merged.values() for key, row in rows.items()}, pending)
    costs = {path: read_costs(costs_path(folder, path.stem)) for path in merged}
    for key, row in every.items():
        if not (key.failed and Key(key.name, False) in every):
            merged_arrays = costs.get(folder / f"{file_stem(row['problem'])}.jsonl", {}).get(
                key.name, {}
            )
            arrays = own.get(key, {}).get("", merged_arrays)
            yield files[key], row, _without_recipe(arrays) if _belong(arrays, row) else {}


def fold(merged: Mapping[Key, Row], pending: Mapping[Key, Row | None]) -> dict[Key, Row]:
    """The rows after a merge: a success replaces the row and removes the failure of its run."""
    rows = dict(merged)
    for (name, failed), row in sorted(pending.items()):  # a success before a later failure
        if row is not None:
            rows[Key(name, failed)] = row
            if not failed:
                rows.pop(Key(name, True), None)
    return rows


def _belong(arrays: Arrays, row: Row) -> bool:
    return RECIPE in arrays and str(arrays[RECIPE]) == row.get("recipe")


def _without_recipe(arrays: Arrays) -> Arrays:
    return {name: values for name, values in arrays.items() if name != RECIPE}
