"""The files of a store: one of rows and one of costs for each problem, and pending ones.

    wind.jsonl                     rows of problem wind, one JSON object a line
    wind.costs.npz                 costs, regrets and gaps of their test rows, float32, by run;
                                   for an array that is there already, the entry that has it
    landscapes.jsonl               landscapes
    figure1.jsonl                  the panels of the paper's Figure 1
    pending/wind--df2--0.json      the row of a finished run that is not merged yet
    pending/wind--df2--0.npz       its costs, regrets and gaps of each test row
    pending/wind--df2--1.failed.json   the row of a run that failed: it holds the error

Lines are sorted by method, changes and seed. A run may have two lines: its row, and the row of a
later attempt that failed. Every file is written to a temporary file and renamed, so it is never
half-written. Writers hold the lock of the store; readers need no lock.
"""

import fcntl
import io
import json
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from costscape.bench.run_names import run_name
from costscape.whole_file import write_whole

PENDING, LANDSCAPES, FIGURE1, LOCK = "pending", "landscapes.jsonl", "figure1.jsonl", ".lock"
RECIPE = "recipe"  # among the arrays of a run, the recipe of the row they belong to
Row = dict[str, Any]
Arrays = dict[str, np.ndarray]


class Key(NamedTuple):
    """A line of a store: the name of the run, and whether the run failed."""

    name: str
    failed: bool


def key_of(row: Mapping[str, Any]) -> Key:
    """The key of a row; a KeyError if it lacks a field of the name, a TypeError for its type."""
    for field, kind in (("problem", str), ("method", str), ("seed", int)):
        if not isinstance(row[field], kind):
            raise TypeError(f"{field} of a row is {row[field]!r:.60}.")
    name = run_name(
        row["problem"], row["method"], row["seed"], row.get("changes", {}), bool(row.get("quick"))
    )
    return Key(name, bool(row.get("error")))


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a store, whose folder is made; it is released if the process dies."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / LOCK, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


# ---- rows


def merged_paths(folder: Path) -> list[Path]:
    """The files of rows, one a problem."""
    return sorted(
        path for path in folder.glob("*.jsonl") if path.name not in (LANDSCAPES, FIGURE1)
    )


def read_lines(path: Path) -> dict[Key, Row]:
    """The rows or landscapes of a file, one JSON object a line; none where there is no file."""
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return {}
    return _read_lines(path, (status.st_ino, status.st_mtime_ns, status.st_size))


@lru_cache(maxsize=64)  # a sweep asks for every run
def _read_lines(path: Path, version: tuple[int, int, int]) -> dict[Key, Row]:
    rows: dict[Key, Row] = {}
    for i, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            row = json.loads(line)
            key = key_of(row)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise ValueError(
                f"{path} needs a JSON object with problem, method and seed in every line, but "
                f"line {i} is none. Restore the file, or delete the line and run again."
            ) from None
        if key in rows:
            raise ValueError(
                f"{path} needs one line a run, but line {i} is of {key.name} again. Delete one "
                f"of the two lines."
            )
        rows[key] = row
    return rows


def write_lines(path: Path, rows: Iterable[Row]) -> None:
    """Write rows or landscapes, sorted by problem, method, changes and seed."""
    lines = [json.dumps(row, allow_nan=False) for row in sorted(rows, key=_place)]
    write_whole(path, "".join(f"{line}\n" for line in lines).encode())


def read_object(path: Path) -> Row | None:
    """The JSON object of a file; None where there is none."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):  # a folder or a dangling link, too
        return None
    return content if isinstance(content, dict) else None


def pending_path(folder: Path, key: Key) -> Path:
    return folder / PENDING / f"{key.name}{'.failed' * key.failed}.json"


def _place(row: Row) -> tuple[str, str, str, int, bool, bool]:
    changes = json.dumps(row.get("changes", {}), sort_keys=True)
    quick, failed = bool(row.get("quick")), bool(row.get("error"))
    return row["problem"], row["method"], changes, row["seed"], quick, failed


# ---- costs of each test row


def costs_path(folder: Path, problem: str) -> Path:
    return folder / f"{problem}.costs.npz"


def read_costs(path: Path) -> dict[str, Arrays]:
    """The arrays of each run, by its name; those of a pending file have the name ''."""
    arrays_of: dict[str, Arrays] = {}
    try:
        with np.load(path, allow_pickle=False) as file:
            entries = {entry: file[entry] for entry in file.files}
        for entry, values in entries.items():
            name, _, array = entry.rpartition("/")
            elsewhere = array != RECIPE and values.dtype.kind == "U"
            arrays_of.setdefault(name, {})[array] = entries[str(values)] if elsewhere else values
    except FileNotFoundError:
        return {}
    except (ValueError, KeyError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"{path} should hold the costs of each test row, but it cannot be read ({error}). "
            f"Restore the file, or delete it and run again."
        ) from error
    return arrays_of


def write_costs(path: Path, costs: Mapping[str, Arrays]) -> None:
    """Write the arrays of runs by name; the same arrays make the same bytes.

    An array is written once: where the best action in hindsight costs nothing, regrets are the
    costs, and a method without chance has the same costs with every seed.
    """
    entries: dict[str, Any] = {}
    places: dict[tuple[str, tuple[int, ...], bytes], str] = {}
    for name, arrays in sorted(costs.items()):
        for array, values in arrays.items():
            entry = f"{name}/{array}".removeprefix("/")
            place = entry
            if array != RECIPE:
                content = values.dtype.str, values.shape, values.tobytes()
                place = places.setdefault(content, entry)
            entries[entry] = values if place == entry else np.array(place)
    packed = io.BytesIO()
    np.savez_compressed(packed, **entries)
    write_whole(path, packed.getvalue())
