"""What logged decisions cost at their outcomes, beside what was expected."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from costscape.block_bootstrap import at_least_two, block_length, standard_error
from costscape.evaluation import hindsight_cost
from costscape.monitor.record_arrays import LoggedRows

STRETCHES = 20  # of the rows over time, at most
GROUPS = 5  # of the rows by expected cost
LEAST = 10  # rows of a stretch or group, about


@dataclass(frozen=True)
class Stretch:
    """Mean costs of some rows.

    Args:
        name: str. The time of the first row, or the range of the expected costs.
        rows: int. How many there are.
        outcomes: int. How many of them have an outcome; the costs are those of these rows.
        expected: float. Mean expected cost; NaN where there is none.
        realised: float. Mean cost at the outcomes.
        error: float. Its standard error by a moving-block bootstrap.
        regret: float. Mean cost above the best action in hindsight; NaN where it is not known.
        flagged: float. Share of rows far outside the range of the training rows.
    """

    name: str
    rows: int
    outcomes: int
    expected: float
    realised: float
    error: float
    regret: float
    flagged: float


@dataclass(frozen=True)
class Coverage:
    """How often a quantile of the cost held: share of the realised costs up to it."""

    level: str
    share: float
    rows: int


def realised_costs(model: Any, rows: LoggedRows, regret: bool) -> tuple[np.ndarray, np.ndarray]:
    """The cost (n,) of each decision at its outcome, and its regret (n,); NaN where unknown.

    Args:
        model: the fitted method; its task has the cost.
        rows: n logged rows.
        regret: whether regrets are wanted. They are known for rows that were decided in the
            task's own set, if the best action in hindsight is.
    """
    n, task = len(rows), model.task_
    costs, regrets = np.full(n, np.nan), np.full(n, np.nan)
    here = np.flatnonzero(rows.has_y)
    if not len(here):
        return costs, regrets
    home = task.feasible.bounds[0]
    x = torch.as_tensor(rows.x[here]).to(home).reshape(-1, *model.x_shape_)
    y = torch.as_tensor(rows.y[here]).to(home).reshape(-1, *model.y_shape_)
    a = torch.as_tensor(rows.a[here]).to(home)
    with torch.no_grad():
        joined = task.join(x, y)
        paid = task.cost(joined, a)
        costs[here] = paid.double().cpu().numpy()
        least = hindsight_cost(task, joined, task.sets(x)) if regret else None
    if least is not None:
        regrets[here] = (paid - least).double().cpu().numpy()
        regrets[~rows.plain] = np.nan
    return costs, regrets


def stretches(rows: LoggedRows, costs: np.ndarray, regrets: np.ndarray) -> list[Stretch]:
    """Rows in order of time, cut into up to STRETCHES parts of equal size."""
    parts = np.array_split(np.arange(len(rows)), _count(len(rows), STRETCHES))
    return [_stretch(_time(rows.time[p[0]]), rows, costs, regrets, p) for p in parts]


def by_expected_cost(rows: LoggedRows, costs: np.ndarray, regrets: np.ndarray) -> list[Stretch]:
    """Rows with an outcome in order of the expected cost, cut into up to GROUPS parts."""
    known = np.flatnonzero(np.isfinite(costs) & np.isfinite(rows.expected))
    if not len(known):
        return []
    order = known[np.argsort(rows.expected[known], kind="stable")]
    parts = np.array_split(order, _count(len(order), GROUPS))
    ends = [(rows.expected[p[0]], rows.expected[p[-1]]) for p in parts]
    return [
        _stretch(f"{low:.4g} to {high:.4g}", rows, costs, regrets, np.sort(p))
        for (low, high), p in zip(ends, parts, strict=True)
    ]


def coverage(rows: LoggedRows, costs: np.ndarray) -> list[Coverage]:
    """How often each logged quantile of the cost held."""
    found = []
    for level, bound in rows.quantiles.items():
        known = np.isfinite(bound) & np.isfinite(costs)
        if known.any():
            share = float((costs[known] <= bound[known]).mean())
            found.append(Coverage(level, share, int(known.sum())))
    return found


def mean_and_error(values: np.ndarray) -> tuple[float, float]:
    """The mean and its standard error, for rows in order of time."""
    if not len(values):
        return float("nan"), float("nan")
    block = at_least_two(block_length(len(values)), len(values))
    return float(values.mean()), standard_error(values, block)


def _stretch(
    name: str, rows: LoggedRows, costs: np.ndarray, regrets: np.ndarray, part: np.ndarray
) -> Stretch:
    known = part[np.isfinite(costs[part])]
    realised, error = mean_and_error(costs[known])
    regret, _ = mean_and_error(regrets[known][np.isfinite(regrets[known])])
    expected, _ = mean_and_error(rows.expected[known])
    flagged = float(rows.flagged[part].mean())
    return Stretch(name, len(part), len(known), expected, realised, error, regret, flagged)


def _count(rows: int, most: int) -> int:
    return max(1, min(most, rows // LEAST))


def _time(moment: np.datetime64) -> str:
    return str(moment.astype("datetime64[m]")).replace("T", " ")
