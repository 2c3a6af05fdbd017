"""The rows of all origins of a problem as one row: the mean over their test rows, in order.

    m = mean over origins k and test rows j of m_kj

Origins have nearly equally many test rows. A run that lacks an origin has no mean, and is left
out.
"""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from costscape.bench.origin_names import origin_of

TITLE = re.compile(r"(.+), \d+ origins(.*)")
MEASURES = {"regret": "regrets", "gap": "gaps", "cost": "costs"}
Row = dict[str, Any]


def pool_origins(rows: Sequence[Row]) -> list[Row]:
    """Replace the rows of origins by one row for each run that has all of them.

    The problem of such a row is called "wind, 5 origins"; ``by_origin`` has the measures of each.
    """
    plain: list[Row] = []
    groups: dict[tuple[Any, ...], dict[int, Row]] = {}
    for row in rows:
        origin = origin_of(row["problem"])
        if origin is None:
            plain.append(row)
        else:
            settings = (repr(sorted(row["changes"].items())), row["seed"], row["quick"])
            run = (origin.problem, origin.origins, row["method"], *settings)
            groups.setdefault(run, {})[origin.number] = row
    whole = [(run, parts) for run, parts in groups.items() if len(parts) == run[1]]
    return plain + [_pooled(run[0], [parts[i] for i in sorted(parts)]) for run, parts in whole]


def whole_of(title: str) -> str | None:
    """Return the title of the problem that was cut at these origins; None where there are none.

    >>> whole_of("wind, 5 origins (quick)")
    'wind (quick)'
    >>> whole_of("wind")
    """
    match = TITLE.fullmatch(title)
    return match and match[1] + match[2]


def _pooled(problem: str, rows: Sequence[Row]) -> Row:
    arrays = {
        name: np.concatenate([row["by_test_row"][name] for row in rows])
        for name in MEASURES.values()
        if all(name in row["by_test_row"] for row in rows)
    }
    means = {
        name: float(arrays[array].mean(dtype=np.float64)) if array in arrays else _mean(rows, name)
        for name, array in MEASURES.items()
    }
    return {
        **rows[-1],
        **means,
        "problem": f"{problem}, {len(rows)} origins",
        "by_origin": [{name: row[name] for name in MEASURES} for row in rows],
        "by_test_row": arrays,
        "origin_rows": [len(next(iter(row["by_test_row"].values()), ())) for row in rows],
        "test_rows": "-".join(str(row["test_rows"]) for row in rows),
        "block": max(row["block"] or 1 for row in rows),
        "fit_seconds": _mean(rows, "fit_seconds"),
        "decide_seconds": _mean(rows, "decide_seconds"),
        "refused": next((row["refused"] for row in rows if row["refused"]), None),
        "error": next((row["error"] for row in rows if row["error"]), None),
    }


def _mean(rows: Sequence[Row], name: str) -> float | None:
    values = [row[name] for row in rows if row[name] is not None]
    return sum(values) / len(values) if len(values) == len(rows) else None
