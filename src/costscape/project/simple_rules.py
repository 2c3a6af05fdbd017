"""What one would decide without a model, to count savings from.

- last week: the outcome of the same weekday, the latest one that was known;
- safety stock: mean + z sd of the last 28 known outcomes, with P(N(0, 1) <= z) = under / (under +
  over), the best order if demand were normal and without pattern.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from costscape.table import Table
from costscape.task import Task

SEASON = {"D": 7, "B": 5, "h": 24}  # periods after which a pattern repeats
WINDOW = 28  # periods of the safety stock
STOCK = "mean + safety stock"


def simple_rules(
    source: Any,
    arguments: Mapping[str, Any],
    table: Table,
    *,
    rows: int,
    level: float | None = None,
) -> dict[str, np.ndarray]:
    """The actions (rows, d) of each rule for the last rows of a table; d as the columns of Y.

    Args:
        source: the file that the table was read from.
        arguments: those of the table.
        table: the table.
        rows: how many rows, the last ones.
        level: under / (under + over); None for no safety stock.

    A rule that lacks values in one of these rows is left out.
    """
    settings = table.memory.settings
    index, steps = table.X.index[-rows:], range(settings.horizon)
    base = {**arguments, "known": None, "category": None, "lags": ()}
    made: dict[str, pd.DataFrame] = {}
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
    x = _tensor(X, task)
    bound = task.bound(x, list(X.columns))
    y = bound.join(x, _tensor(Y, task))
    near = {name: feasible_actions(task, X, a) for name, a in actions.items()}
    with torch.no_grad():
        costs = {
            name: bound.cost(y, _tensor(a, task)) for name, a in near.items() if a is not None
        }
    return {name: c.double().cpu().numpy() for name, c in costs.items()}


def feasible_actions(task: Task, X: pd.DataFrame, actions: np.ndarray) -> np.ndarray | None:
    """The nearest feasible actions (n, d); None where those of the task have another length.

    Args:
        task: has the set.
        X: the rows that the actions are for, with n rows.
        actions: (n, d).
    """
    x = _tensor(X, task)
    bound = task.bound(x, list(X.columns))
    if actions.shape[1] != bound.feasible.dim:
        return None
    with torch.no_grad():
        near: np.ndarray = bound.sets(x).project(_tensor(actions, task)).double().cpu().numpy()
    return near


def _tensor(values: Any, task: Task) -> Tensor:
    return torch.as_tensor(np.array(values, dtype=np.float64)).to(task.feasible.bounds[0])


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
