"""Decisions as a table: what to do, what it costs, and which rows are extrapolated."""

import warnings
from typing import Any

import numpy as np
import pandas as pd

from costscape.methods import OutOfRange, ScenarioMethod

LEVELS = (0.1, 0.5, 0.9)
ROUNDING = 1e-5  # of the largest cost: what single precision leaves of a cost of 0


def decision_table(model: ScenarioMethod, X: pd.DataFrame) -> pd.DataFrame:
    """One row for each row of X.

    Args:
        model: fitted.
        X: labelled by date and groups.

    Columns: ``decision_NAME`` of each outcome, or ``decision_1`` on where there is no name;
    ``expected_cost``; ``cost_10``, ``cost_50`` and ``cost_90``, which 10, 50 and 90 % of the costs
    are below; ``out_of_range``, the features far outside the range of the fit.
    """
    a = decisions_only(model, X)
    chosen = [f"decision_{c if isinstance(c, str) else c + 1}" for c in a.columns]
    made = a.set_axis(chosen, axis=1)
    expected = model.expected_cost(X, a).to_numpy().reshape(-1, 1)
    costs = np.hstack([expected, model.cost_quantiles(X, a, LEVELS).to_numpy()])
    costs[np.abs(costs) < ROUNDING * np.abs(costs).max()] = 0.0
    names = ["expected_cost", *(f"cost_{100 * level:g}" for level in LEVELS)]
    made[names] = costs
    found = model.check(X)
    made["out_of_range"] = [" ".join(map(str, found.columns_of(i))) for i in range(len(X))]
    return made


def decisions_only(model: ScenarioMethod, X: pd.DataFrame) -> pd.DataFrame:
    """``decide`` without the warning of rows out of range."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutOfRange)
        a: pd.DataFrame = model.decide(X)
    return a


def as_csv(table: pd.DataFrame) -> str:
    """The table with its labels as CSV; six digits, since a decision has no more."""
    text: str = table.reset_index().to_csv(index=False, float_format="%.6g", lineterminator="\n")
    return text


def as_text(table: pd.DataFrame) -> str:
    """The table with its labels as people read it."""
    frame = table.reset_index()
    if not (frame["out_of_range"] != "").any():
        frame = frame.drop(columns="out_of_range")
    text: str = frame.to_string(index=False, float_format=lambda v: f"{v:.4g}")
    return text


def range_sentence(table: pd.DataFrame) -> str:
    """How many rows are far from those of the fit; empty where none is."""
    some: Any = table["out_of_range"]
    far = some[some != ""]
    if far.empty:
        return ""
    return (
        f"{len(far)} of {len(table)} rows are far outside the range of the fit (first in "
        f"{far.iloc[0].split()[0]!r}): check these inputs, their decisions are extrapolated."
    )
