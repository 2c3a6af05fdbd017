"""Look at the logged decisions of one model: costs, drift, flagged rows, alerts."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from costscape.monitor.drift import ColumnDrift, columns_drift
from costscape.monitor.findings import Findings, Levels, Version
from costscape.monitor.realised import (
    by_expected_cost,
    coverage,
    mean_and_error,
    realised_costs,
    stretches,
)
from costscape.monitor.record import Record
from costscape.monitor.record_arrays import LoggedRows, logged_rows
from costscape.monitor.suggestion import suggest_update
from costscape.monitor.thresholds import Thresholds

COLUMNS = 200  # columns whose drift is measured, evenly spread over all
NAMED = 5  # columns that a sentence names at most


def watch(
    name: str,
    records: Sequence[Record],
    model: Any = None,
    thresholds: Thresholds | None = None,
    *,
    thorough: bool = True,
) -> Findings:
    """Compare logged decisions with their outcomes and with the training rows.

    Args:
        name: of the model.
        records: its records, in order of time.
        model: the fitted method; None for what can be said without it.
        thresholds: what counts as an alert; None for ``Thresholds()``.
        thorough: also compute regrets, and judge an update where outcomes have drifted.
    """
    at = thresholds or Thresholds()
    rows = logged_rows(records[-at.rows :], model)
    notes: list[str] = []
    if rows.left_out:
        notes.append(f"{rows.left_out} records have other columns and are left out.")
    costs, regrets = np.full((2, len(rows)), np.nan)
    if model is None:
        notes.append("Realised costs and regrets need the model: name its folder.")
    else:
        costs, regrets = realised_costs(model, rows, thorough)
    flagged = float(rows.flagged[-at.recent :].mean())
    levels = _levels(rows, costs, regrets, at)
    reference, inputs, outcomes = _drifts(rows, model, at, notes)
    alerts = _alerts(inputs, outcomes, flagged, len(rows), levels, at)
    drifted = any(one.is_alert for one in outcomes) or (levels is not None and _off(levels, at))
    suggestion = ""
    if thorough and model is not None:
        suggestion = "No update is suggested: outcomes and costs have not drifted."
        if drifted or rows.has_y.sum() < at.fewest:
            suggestion = suggest_update(model, rows, at.fewest)
    return Findings(
        name,
        len(rows),
        int(rows.has_y.sum()),
        _minute(rows.time[0]),
        _minute(rows.time[-1]),
        tuple(_versions(rows)),
        reference,
        tuple(stretches(rows, costs, regrets)),
        tuple(by_expected_cost(rows, costs, regrets)),
        tuple(coverage(rows, costs)),
        levels,
        tuple(inputs),
        tuple(outcomes),
        flagged,
        tuple(alerts),
        suggestion,
        tuple(notes),
    )


def _levels(
    rows: LoggedRows, costs: np.ndarray, regrets: np.ndarray, at: Thresholds
) -> Levels | None:
    known = np.flatnonzero(np.isfinite(costs) & np.isfinite(rows.expected))[-at.recent :]
    if not len(known):
        return None
    expected = rows.expected[known]
    size = float(np.abs(expected).mean()) or float("nan")
    difference, error = mean_and_error(costs[known] - expected)
    regret, _ = mean_and_error(regrets[known][np.isfinite(regrets[known])])
    return Levels(
        len(known),
        float(expected.mean()),
        float(costs[known].mean()),
        difference / size,
        error / size,
        regret,
    )


def _drifts(
    rows: LoggedRows, model: Any, at: Thresholds, notes: list[str]
) -> tuple[str, list[ColumnDrift], list[ColumnDrift]]:
    """What the reference is, and the drift of x and of y against it."""
    kept = None if model is None else model.rows_
    pairs = [(rows.x, rows.names), (rows.y[rows.has_y], rows.y_names)]
    if kept is None:
        words = "earlier logged rows"
        if model is not None:
            notes.append(
                "The model file has no training rows: earlier logged rows stand for them."
            )
        old = [values[: -at.recent] for values, _ in pairs]
    else:
        words = "the training rows"
        old = [part.flatten(1).numpy() for part in (kept.x, kept.y)]
    found: list[list[ColumnDrift]] = []
    for (values, names), before in zip(pairs, old, strict=True):
        if min(len(values), len(before)) < at.fewest or not names:
            found.append([])
            continue
        # training rows are in single precision: values that repeat must stay equal
        recent = values[-at.recent :].astype(before.dtype).astype(float)
        some = np.arange(len(names))[:: -(-len(names) // COLUMNS)]
        chosen = [names[j] for j in some]
        reference = before[:, some].astype(float)
        found.append(
            columns_drift(
                chosen,
                reference,
                recent[:, some],
                psi_most=at.psi,
                ks_most=at.ks,
                level=at.level,
            )
        )
    if not found[0]:
        notes.append(
            f"Drift of the inputs needs {at.fewest} rows of both kinds, but there are "
            f"{len(rows.x)} logged rows and {len(old[0])} to compare with."
        )
    return words, found[0], found[1]


def _alerts(
    inputs: Sequence[ColumnDrift],
    outcomes: Sequence[ColumnDrift],
    flagged: float,
    rows: int,
    levels: Levels | None,
    at: Thresholds,
) -> list[str]:
    found = []
    for what, columns in (("Inputs", inputs), ("Outcomes", outcomes)):
        bad = [one for one in columns if one.is_alert]
        if bad:
            more = f" and {len(bad) - NAMED} more" if len(bad) > NAMED else ""
            named = ", ".join(f"{c.name!r} (PSI {c.psi:.2g}, KS {c.ks:.2g})" for c in bad[:NAMED])
            found.append(
                f"{what} have drifted in {len(bad)} of {len(columns)} columns: {named}{more}."
            )
    if rows >= at.fewest and flagged > at.flagged:
        found.append(
            f"{100 * flagged:.1f} % of the latest rows are far outside the range of the training "
            f"rows, more than {100 * at.flagged:g} %."
        )
    if levels is not None and _off(levels, at):
        found.append(
            f"Realised costs differ from expected costs by {100 * levels.difference:+.0f} % "
            f"(standard error {100 * levels.error:.0f} %) over the last {levels.rows} outcomes."
        )
    return found


def _off(levels: Levels, at: Thresholds) -> bool:
    far = abs(levels.difference) > max(at.cost, at.errors * levels.error)
    return levels.rows >= at.fewest and far


def _versions(rows: LoggedRows) -> list[Version]:
    names, begin = np.unique(rows.version, return_index=True)
    made = []
    for name in names[np.argsort(begin)]:
        here = np.flatnonzero(rows.version == name)
        first, last = (_minute(rows.time[here[i]]) for i in (0, -1))
        made.append(Version(str(name), len(here), first, last))
    return made


def _minute(moment: np.datetime64) -> str:
    return str(moment.astype("datetime64[m]")).replace("T", " ")
