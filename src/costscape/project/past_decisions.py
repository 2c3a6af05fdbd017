"""What was decided until now: columns of the user's file as actions, to count savings from."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from costscape.project.simple_rules import feasible_actions
from costscape.table import Table
from costscape.task import Task


def past_decisions(
    source: Any,
    arguments: Mapping[str, Any],
    table: Table,
    task: Task,
    columns: Sequence[str],
    tested: int,
) -> np.ndarray | None:
    """The decisions (n, d) of all rows of X, moved to the nearest feasible ones.

    Args:
        source: the file that the table was read from.
        arguments: those of the table.
        table: the table.
        task: has the set of feasible actions.
        columns: one for each outcome; none where it is not known what was decided.
        tested: how many rows need a value, the last ones.

    None where there are no columns. Earlier rows that lack values are 0: no cost is computed
    for them.
    """
    if not columns:
        return None
    base = {**arguments, "known": None, "category": None, "lags": ()}
    taken = Table(source, **{**base, "outcome": list(columns)}).Y.reindex(table.X.index)
    actions = feasible_actions(task, table.X, np.nan_to_num(taken.to_numpy()))
    if actions is None or taken.iloc[-tested:].isna().any(axis=None):
        raise ValueError(
            f"today needs one column for each number that is decided, with a value in each of the "
            f"last {tested} rows, but got {', '.join(columns)}. Correct it."
        )
    return actions
