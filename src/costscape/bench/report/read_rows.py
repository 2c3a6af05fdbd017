"""A store is a folder of runs, one JSON object a file; beside it lie landscapes.

store/wind--df2--0.json          one run: problem, method, changes, seed, mean cost
store/wind--df2--0.npz           costs, regrets and gaps of its test rows
store/wind--df2--1.failed.json   a run that failed
store/landscapes/*.json          surfaces of g(x, .) for one x
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Row = Mapping[str, Any]

REQUIRED: dict[str, tuple[type, ...]] = {
    "problem": (str,),
    "method": (str,),
    "seed": (int,),
    "changes": (dict,),
    "regret": (int, float, type(None)),
    "gap": (int, float, type(None)),
    "cost": (int, float, type(None)),
    "fit_seconds": (int, float, type(None)),
    "decide_seconds": (int, float, type(None)),
    "refused": (str, type(None)),
    "error": (str, type(None)),
    "device": (str, type(None)),
}
OPTIONAL: dict[str, Any] = {
    "curve": [],
    "chosen_epoch": None,
    "versions": {},
    "source": None,
    "commit": None,
    "made": None,
    "quick": False,
    "recipe": None,
    "block": None,
    "test_rows": None,
    "chosen": {},
}
FAILED = ".failed.json"
SURFACES = ("initial", "learned", "true")


def read_rows(folder: Path | str) -> list[dict[str, Any]]:
    """The runs of a store, in order of file name; sub-folders are not read.

    A failure is left out where the run has a row. ``costs_file`` is the path of the file with the
    costs of each test row, None where there is none.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(
            f"A report needs a folder of runs, but {folder} is no folder. Name the store that "
            f"`costscape run` wrote to."
        )
    rows: list[dict[str, Any]] = []
    origin: dict[str, Path] = {}
    for path in sorted(folder.glob("*.json")):
        if path.name.endswith(FAILED) and _succeeded(path):
            continue
        row = _run(path)
        run = json.dumps([row[key] for key in ("problem", "method", "changes", "seed", "quick")])
        if run in origin:
            raise ValueError(
                f"A store needs one file a run, but {origin[run]} and {path} hold the same: "
                f"{row['method']} on {row['problem']}, seed {row['seed']}. Delete one of the two."
            )
        origin[run] = path
        rows.append(row)
    if not rows:
        raise ValueError(
            f"A report needs at least one run, but {folder} holds no .json file. Run a method "
            f"into it with `costscape run` first."
        )
    return rows


def read_landscapes(folder: Path | str) -> list[dict[str, Any]]:
    """The landscapes of a store, from its sub-folder ``landscapes``; none where it has none."""
    found = []
    for path in sorted((Path(folder) / "landscapes").glob("*.json")):
        one = _object(path, "a landscape")
        wanted = ("problem", "x", "a1", "a2", "surfaces", "method", "seed")
        missing = [key for key in wanted if key not in one]
        missing += [key for key in SURFACES if key not in one.get("surfaces", {})]
        if missing:
            raise ValueError(
                f"A landscape needs {', '.join(missing)}, but {path} lacks it. Delete the file "
                f"and make the landscape again."
            )
        found.append(one)
    return found


def label(method: str, changes: Mapping[str, Any]) -> str:
    """The method's name and what was changed of it.

    >>> label("two-stage-gmm3", {"draws": 1000})
    'two-stage-gmm3 draws=1000'
    """
    return " ".join([method, *(f"{key}={value}" for key, value in sorted(changes.items()))])


def _succeeded(failure: Path) -> bool:
    """Whether the run of a failure has a row that did not fail."""
    path = failure.with_name(f"{failure.name.removesuffix(FAILED)}.json")
    return path.exists() and not _object(path, "a run").get("error")


def _run(path: Path) -> dict[str, Any]:
    row = _object(path, "a run")
    missing = [key for key in REQUIRED if key not in row]
    if missing:
        raise ValueError(
            f"A run needs the key{'s' * (len(missing) > 1)} {', '.join(missing)}, but {path} "
            f"lacks {'them' if len(missing) > 1 else 'it'}. Delete the file and run again, or "
            f"move it out of the store if it is no run."
        )
    for key, kinds in REQUIRED.items():
        if not isinstance(row[key], kinds) or isinstance(row[key], bool):
            names = " or ".join("null" if k is type(None) else k.__name__ for k in kinds)
            raise ValueError(
                f"A run needs {key} to be {names}, but in {path} it is {row[key]!r}. Delete the "
                f"file and run again."
            )
    costs = path.with_suffix(".npz")
    return {**OPTIONAL, **row, "costs_file": costs if costs.is_file() else None}


def _object(path: Path, what: str) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(
            f"{path} should hold {what} as JSON, but it cannot be read ({error}). Delete the file "
            f"and run again."
        ) from error
    if not isinstance(found, dict):
        raise ValueError(
            f"{path} should hold {what} as a JSON object, but holds a {type(found).__name__}. "
            f"Delete the file and run again, or move it out of the store."
        )
    return found
