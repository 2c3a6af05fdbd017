"""The trials of searches: one JSON object a line in ``tuning/PROBLEM.jsonl`` of a store."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from costscape.bench.fingerprint import digest_of_rows
from costscape.bench.method_names import method_of
from costscape.bench.origin_names import Origin, file_stem, origin_of
from costscape.bench.problem_names import problem_named
from costscape.bench.search_space import Settings, fingerprint_of
from costscape.bench.store_files import locked
from costscape.whole_file import write_whole

FOLDER = "tuning"  # in a store
KEPT = Path("results/tuning")
Trial = dict[str, Any]


@dataclass(frozen=True)
class Search:
    """What two trials share if they belong to one search.

    Args:
        problem: str, name of the problem.
        method: str, name of the method.
        seed: int, of the problem, of every fit and of the sampler.
        quick: bool, whether problem and method are cut down.
        space: str, hash of the search space.
        data: str, hash of the training and validation rows.
    """

    problem: str
    method: str
    seed: int
    quick: bool
    space: str
    data: str

    @property
    def command(self) -> str:
        """The command that makes the trials."""
        return f"costscape tune {self.problem} --method {self.method}{' --quick' * self.quick}"


@lru_cache(maxsize=64)
def search_for(problem: str, method: str, seed: int = 0, quick: bool = False) -> Search:
    """The search of a named method on a named problem."""
    p = problem_named(problem)(seed)
    space = fingerprint_of(method_of(method)(p, seed))
    return Search(problem, method, seed, quick, space, digest_of_rows(p.data.train, p.data.val))


def read_trials(folder: Path, search: Search) -> list[Trial]:
    """The trials of a search, by origins and number; none where there is no file."""
    same = [row for row in _read(_path(folder, search)) if asdict(search).items() <= row.items()]
    places = {(row["origins"], row["trial"]): row for row in same}
    return [places[place] for place in sorted(places)]


def append_trial(folder: Path, search: Search, trial: Mapping[str, Any]) -> None:
    """Add a finished trial to the file of its problem, which is never half-written."""
    path = _path(folder, search)
    with locked(folder):
        before = path.read_bytes() if path.exists() else b""
        line = json.dumps({**asdict(search), **trial}, allow_nan=False)
        write_whole(path, before + line.encode() + b"\n")


def best_of(trials: list[Trial]) -> Trial | None:
    """The trial that costs least, the earliest of equal ones; None if none succeeded."""
    return min((t for t in trials if t["cost"] is not None), key=lambda t: t["cost"], default=None)


def best_settings(folder: Path, problem: str, quick: bool, method: str) -> Settings:
    """The settings of the best kept trial of a method on a problem; see ``best_trial``."""
    settings: Settings = best_trial(folder, problem, quick, method)["settings"]
    return settings


def best_trial(folder: Path, problem: str, quick: bool, method: str) -> Trial:
    """The best kept trial of a method on a problem, with ``trials``, how many there are.

    The search of origin k of K is that of origin 1, whose rows are before all test parts.

    Args:
        folder: of the files of trials.
        problem: name of the problem, or of an origin of one.
        quick: whether the search was a quick one.
        method: name of the method without ``+tuned``.
    """
    origin = origin_of(problem)
    name = problem if origin is None else Origin(origin.problem, 1, origin.origins).name
    search = search_for(name, method, quick=quick)
    trials = read_trials(folder, search)
    best = best_of(trials)
    if best is None:
        raise ValueError(
            f"{method}+tuned needs a search of {method} on {name} with the present search space "
            f"and data, but {_path(folder, search)} has none. Run `{search.command}`, and name "
            f"its folder with --tuning."
        )
    if len(parts := {row["origins"] for row in trials}) > 1:
        raise ValueError(
            f"{method}+tuned needs one search of {method} on {name}, but "
            f"{_path(folder, search)} has trials with {sorted(parts)} origins. Delete those of "
            f"all numbers but one."
        )
    return {**best, "trials": len(trials)}


def _path(folder: Path, search: Search) -> Path:
    return folder / f"{file_stem(search.problem)}.jsonl"


def _read(path: Path) -> list[Trial]:
    if not path.exists():
        return []
    rows = []
    for i, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            row = json.loads(line)
            row["trial"], row["settings"], row["cost"], row["origins"]
        except (ValueError, KeyError, TypeError):
            raise ValueError(
                f"{path} needs a trial in every line, but line {i} is none. Restore the file, or "
                f"delete the line and run the search again."
            ) from None
        rows.append(row)
    return rows
