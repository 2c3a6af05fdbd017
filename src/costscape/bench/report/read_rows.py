"""The rows and landscapes of a store, with every field that tables and figures use."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from costscape.bench.report.pooled_origins import pool_origins
from costscape.bench.row_store import read_store
from costscape.bench.store_files import LANDSCAPES, read_lines

Row = Mapping[str, Any]

NUMBER, TEXT = (int, float, type(None)), (str, type(None))
REQUIRED: dict[str, tuple[type, ...]] = {
    **{"problem": (str,), "method": (str,), "seed": (int,), "changes": (dict,)},
    **dict.fromkeys(("regret", "gap", "cost", "fit_seconds", "decide_seconds"), NUMBER),
    **dict.fromkeys(("refused", "error", "device"), TEXT),
}
OPTIONAL: dict[str, Any] = {
    **{"curve": [], "versions": {}, "chosen": {}, "quick": False},
    **dict.fromkeys(("epochs", "chosen_epoch", "source", "commit", "made", "recipe", "block")),
    "test_rows": None,
}
SURFACES = ("initial", "learned", "true")


def read_rows(folder: Path | str) -> list[dict[str, Any]]:
    """Read the runs of a store, merged and pending, in order of problem, method and seed.

    A failure is left out where the run has a row. ``by_test_row`` has the arrays ``costs``,
    ``regrets`` and ``gaps`` of each test row, and is empty where there are none. The rows of all
    origins of a problem are pooled into one.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(
            f"A report needs a folder of runs, but {folder} is no folder. Name the store that "
            f"`costscape run` wrote to."
        )
    rows = [
        {**OPTIONAL, **_valid(row, path), "by_test_row": arrays}
        for path, row, arrays in read_store(folder)
    ]
    rows = pool_origins(rows)
    if not rows:
        raise ValueError(
            f"A report needs at least one run, but {folder} holds none. Run a method into it with "
            f"`costscape run` first."
        )
    return rows


def read_landscapes(folder: Path | str) -> list[dict[str, Any]]:
    """Read the landscapes of a store; none where it has no file of them."""
    path = Path(folder) / LANDSCAPES
    landscapes = list(read_lines(path).values())
    for one in landscapes:
        wanted = ("problem", "x", "a1", "a2", "surfaces", "method", "seed")
        missing = [key for key in wanted if key not in one]
        missing += [key for key in SURFACES if key not in one.get("surfaces", {})]
        if missing:
            raise ValueError(
                f"A landscape needs {', '.join(missing)}, but that of {one['problem']} in {path} "
                f"lacks it. Delete the line and make the landscape again."
            )
    return landscapes


def label(method: str, changes: Mapping[str, Any]) -> str:
    """The method's name and what was changed of it.

    >>> label("two-stage-gmm3", {"draws": 1000})
    'two-stage-gmm3 draws=1000'
    """
    return " ".join([method, *(f"{key}={value}" for key, value in sorted(changes.items()))])


def _valid(row: dict[str, Any], path: Path) -> dict[str, Any]:
    """The row, if it has all required fields."""
    for key, kinds in REQUIRED.items():
        if key not in row or not isinstance(row[key], kinds) or isinstance(row[key], bool):
            names = " or ".join("null" if k is type(None) else k.__name__ for k in kinds)
            raise ValueError(
                f"A run needs {key} to be {names}, but in {path}, {row['method']} with seed "
                f"{row['seed']}, it is {row.get(key, 'missing')!r}. Delete the row and run again."
            )
    return row
