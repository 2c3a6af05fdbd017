"""Decisions of a project in a store, and the outcomes that came for them."""

from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import uuid4

import pandas as pd

from costscape.monitor import (
    STORE,
    Attached,
    Record,
    attach_outcomes,
    open_store,
    outcome_names,
    utc_now,
)
from costscape.project.decisions import LEVELS
from costscape.project.model_files import MODEL, load_fitted
from costscape.project.new_rows import read_new_rows
from costscape.project.project_file import Project


def name_of(project: Project) -> str:
    """What the store calls the model of a project: the name of its folder."""
    return project.folder.resolve().name


def store_of(project: Project) -> Path:
    """The store beside the model, unless another one is named."""
    return project.models / STORE


def log_decisions(project: Project, X: pd.DataFrame, made: pd.DataFrame, place: str) -> int:
    """Keep decisions with the date and the groups of each as keys; how many there are.

    Args:
        project: fitted.
        X: the features.
        made: as ``decision_table`` makes it.
        place: of the store.
    """
    version = sha256((project.models / MODEL).read_bytes()).hexdigest()[:12]
    start, now = uuid4().hex, utc_now()
    chosen = made.filter(regex="^decision_").rename(columns=lambda c: c.removeprefix("decision_"))
    levels = {f"{level:g}": made[f"cost_{100 * level:g}"] for level in LEVELS}
    records = [
        Record(
            f"{start}-{i}",
            now,
            name_of(project),
            version,
            start,
            {str(name): float(value) for name, value in X.iloc[i].items()},
            {str(name): float(value) for name, value in chosen.iloc[i].items()},
            float(made["expected_cost"].iloc[i]),
            tuple(made["out_of_range"].iloc[i].split()),
            _label(X, i),
            None,
            {level: float(column.iloc[i]) for level, column in levels.items()},
        )
        for i in range(len(X))
    ]
    with open_store(place) as store:
        store.append(records)
    return len(records)


def attach_new_rows(project: Project, data: Path, place: str) -> Attached:
    """Attach the outcomes of rows that came since the last fit or update.

    Args:
        project: fitted.
        data: a file with these rows, as for ``update``.
        place: of the store.
    """
    fitted = load_fitted(project)
    rows = read_new_rows(fitted.table, data)
    if not rows.added:
        raise ValueError(
            f"outcomes needs rows after those of the last fit or update, but {data} has none "
            f"({rows.skipped} are known already). Attach outcomes before an update."
        )
    Y, names = rows.table.Y, outcome_names(fitted.model)
    given = [
        {**_label(Y, i), **dict(zip(names, map(float, Y.iloc[i]), strict=True))}
        for i in range(len(Y))
    ]
    with open_store(place, create=False) as store:
        return attach_outcomes(store, name_of(project), names, given)


def _label(frame: pd.DataFrame, i: int) -> dict[str, Any]:
    """Date and groups of a row, as texts."""
    label: Any = frame.index[i]
    values = label if isinstance(label, tuple) else (label,)
    texts = (str(value).removesuffix(" 00:00:00") for value in values)
    return dict(zip(map(str, frame.index.names), texts, strict=True))
