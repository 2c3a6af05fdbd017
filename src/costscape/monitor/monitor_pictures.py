"""Pictures of the monitor: costs over time, costs against expected costs, drift by column."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from costscape.monitor.drift import ColumnDrift
from costscape.monitor.realised import Stretch

if TYPE_CHECKING:
    from matplotlib.figure import Figure

REALISED, EXPECTED, ALERT, CALM = "#0072b2", "#59626b", "#d55e00", "#8fa3b3"
BARS = 20  # columns that are drawn, those with the largest drift
TICKS = 6  # times named below the axis
LETTERS = 24  # of a column name


def draw_costs(parts: Sequence[Stretch]) -> "Figure":
    """Realised cost with two standard errors and expected cost over time; below, the counts."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.4, 4.4), layout="constrained")
    axes, below = figure.subplots(2, 1, sharex=True, height_ratios=(4, 1))
    at = np.arange(len(parts))
    realised, error, expected = (
        np.array([getattr(part, name) for part in parts])
        for name in ("realised", "error", "expected")
    )
    axes.plot(at, expected, "s--", color=EXPECTED, markersize=4, linewidth=1.2, label="expected")
    axes.errorbar(
        at,
        realised,
        2 * error,
        fmt="o-",
        color=REALISED,
        markersize=4,
        capsize=2,
        label="realised",
    )
    axes.set_ylabel("mean cost")
    axes.legend(frameon=False)
    below.bar(at, [part.rows for part in parts], color="#dfe2e4", label="decisions")
    below.bar(at, [part.outcomes for part in parts], color=CALM, label="with an outcome")
    below.set_ylabel("rows")
    below.legend(frameon=False, fontsize=7.5, ncols=2, loc="lower left", bbox_to_anchor=(0, 1))
    some = np.unique(np.linspace(0, len(parts) - 1, TICKS).round().astype(int))
    below.set_xticks(some, [parts[i].name.replace(" ", "\n") for i in some])
    for one in (axes, below):
        one.spines[["top", "right"]].set_visible(False)
    return figure


def draw_calibration(groups: Sequence[Stretch]) -> "Figure":
    """Mean realised cost of groups of rows with like expected cost; the diagonal is exact."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2, 4.2), layout="constrained")
    axes: Any = figure.subplots()
    x, y, error = (
        np.array([getattr(group, name) for group in groups])
        for name in ("expected", "realised", "error")
    )
    ends = [float(min(x.min(), y.min())), float(max(x.max(), y.max()))]
    axes.plot(ends, ends, "--", color=EXPECTED, linewidth=1, label="realised = expected")
    axes.errorbar(x, y, 2 * error, fmt="o", color=REALISED, capsize=2, label="groups of rows")
    for group in groups:
        at = (group.expected, group.realised)
        axes.annotate(
            f"{group.outcomes:,}",
            at,
            (6, 4),
            textcoords="offset points",
            fontsize=8,
            color=EXPECTED,
        )
    axes.set(xlabel="mean expected cost", ylabel="mean realised cost")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8.5)
    return figure


def draw_drift(columns: Sequence[ColumnDrift], most: float) -> "Figure":
    """PSI of the columns that drifted most, as bars, with the threshold."""
    from matplotlib.figure import Figure

    some = list(columns[:BARS])[::-1]
    figure = Figure(figsize=(6.4, 0.9 + 0.26 * len(some)), layout="constrained")
    axes: Any = figure.subplots()
    colours = [ALERT if one.is_alert else CALM for one in some]
    at = np.arange(len(some))
    axes.barh(at, [one.psi for one in some], color=colours, height=0.7)
    axes.axvline(most, color=EXPECTED, linestyle="--", linewidth=1)
    axes.set_yticks(at, [_short(one.name) for one in some])
    axes.set(xlabel="PSI; the dashed line is the threshold")
    axes.set_xlim(0, 1.08 * max(most, *(one.psi for one in some)))
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def _short(name: str) -> str:
    """A name as plain text: a dollar sign would start a formula."""
    text = name if len(name) <= LETTERS else f"{name[: LETTERS - 1]}…"
    return text.replace("$", r"\$")
