"""What one would decide without a model, to count savings from.

- today's rule: columns of the file with what was decided;
- last week: the outcome of the same weekday, the latest one that was known;
- safety stock: mean + z sd of the last 28 known outcomes, with P(N(0, 1) <= z) = under / (under +
  over), the best order if demand were normal and without pattern.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from costscape.table import Table
from costscape.task import Task

SEASON = {"D": 7, "B": 5, "h": 24}  # periods after which a pattern repeats
WINDOW = 28  # periods of the safety stock
TODAY, STOCK = "today's rule", "mean + safety stock"


def simple_rules(
    source: Any,
    arguments: Mapping[str, Any],
    table: Table,
    *,
    rows: int,
    today: Sequence[str] = (),
    level: float | None = None,
) -> dict[str, np.ndarray]:
    """The actions (rows, d) of each rule for the last rows of a table; d as the columns of Y.

    Args:
        source: the file that the table was read from.
        arguments: those of the table.
        table: the table.
        rows: how many rows, the last ones.
        today: columns with what was decided, as many as outcomes; none for no such rule.
        level: under / (under + over); None for no safety stock.

    A rule that lacks values in one of these rows is left out.
    """
    settings = table.memory.settings
    index, steps = table.X.index[-rows:], range(settings.horizon)
    base = {**arguments, "known": None, "category": None, "lags": ()}
    made: dict[str, pd.DataFrame] = {}
    if today:
        made[TODAY] = Table(source, **{**base, "outcome": list(today)}).Y
    season = SEASON.get(table.memory.freq, 1)
    back = -(-(settings.gap + settings.horizon) // season) * season
    lags = sorted({back - k for k in steps} | set(_window(settings.gap)))
    past = Table(source, **{**base, "lags": lags, "calendar": None}).X
    past = past.reindex(index)
    names = [f"{c}_lag{back - k}" for c in settings.outcome for k in steps]
    made[_last_name(table.memory.freq, back)] = past[names]
    if level is not None:
        z = float(torch.special.ndtri(torch.tensor(level)))
        stock = [_stock(past, c, settings.gap, z) for c in settings.outcome for _ in steps]
        made[STOCK] = pd.concat(stock, axis=1)
    actions = {name: frame.reindex(index).to_numpy() for name, frame in made.items()}
    return {name: a for name, a in actions.items() if np.isfinite(a).all()}


def rule_costs(
    task: Task, X: pd.DataFrame, Y: pd.DataFrame, actions: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """The costs (n,) of each rule, its actions moved to the nearest feasible ones.

    Rules whose actions have another length than those of the task are left out.
    """
    like = task.feasible.bounds[0]

    def tensor(values: Any) -> Tensor:
        return torch.as_tensor(np.array(values, dtype=np.float64)).to(like)

    x = tensor(X)
    bound = task.bound(x, list(X.columns))
    sets, y = bound.sets(x), bound.join(x, tensor(Y))
    with torch.no_grad():
        costs = {
            name: bound.cost(y, sets.project(tensor(a)))
            for name, a in actions.items()
            if a.shape[1] == bound.feasible.dim
        }
    return {name: c.double().cpu().numpy() for name, c in costs.items()}


def _window(gap: int) -> range:
    return range(gap + 1, gap + 1 + WINDOW)


def _stock(past: pd.DataFrame, column: str, gap: int, z: float) -> "pd.Series[Any]":
    some = past[[f"{column}_lag{k}" for k in _window(gap)]]
    made: pd.Series[Any] = some.mean(axis=1) + z * some.std(axis=1)
    return made


def _last_name(freq: str, back: int) -> str:
    if freq == "D" and back % 7 == 0:
        return "as a week ago" if back == 7 else f"as {back // 7} weeks ago"
    return "as the last value" if back == 1 else f"as {back} rows ago"
