"""The rows and landscapes of a store, with every field that tables and figures use."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from costscape.bench.report.pooled_origins import pool_origins
from costscape.bench.report.row_check import valid_arrays, valid_row
from costscape.bench.row_store import read_store
from costscape.bench.store_files import LANDSCAPES, read_lines

Row = Mapping[str, Any]

SURFACES = ("initial", "learned", "true")
ROUNDING = 1e-9  # of a cost: as exactly as the least cost in hindsight is known


def read_rows(folder: Path | str) -> list[dict[str, Any]]:
    """Read the runs of a store, merged and pending, in order of problem, method and seed.

    A failure is left out where the run has a row. ``by_test_row`` has the arrays ``costs``,
    ``regrets`` and ``gaps`` of each test row, and is empty where there are none. Regrets and gaps
    of up to 1e-9 of the cost, of either sign, are 0: two optimal actions differ by as much. The
    rows of all origins of a problem are pooled into one.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(
            f"A report needs a folder of runs, but {folder} is no folder. Name the store that "
            f"`costscape run` wrote to."
        )
    rows = [
        _without_rounding(valid_row(row, path), valid_arrays(arrays, path))
        for path, row, arrays in read_store(folder)
    ]
    rows = pool_origins(rows)
    if not rows:
        raise ValueError(
            f"A report needs at least one run, but {folder} holds none. Run a method into it with "
            f"`costscape run` first."
        )
    return rows


def _without_rounding(row: Row, arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """The row and its arrays, with 0 for regrets and gaps that are within rounding."""
    small = ROUNDING * abs(row["cost"] or 0.0)
    means = {k: 0.0 for k in ("regret", "gap") if row[k] is not None and abs(row[k]) <= small}
    kept = {k: v if k == "costs" else np.where(abs(v) <= small, 0, v) for k, v in arrays.items()}
    return {**row, **means, "by_test_row": kept}


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
