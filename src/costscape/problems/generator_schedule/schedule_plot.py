"""A day's schedule, the load that may occur, and the load that occurred."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from costscape.problems.pictures import labels, mark_time, read, write

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BANDS = ((0.05, 0.95, "#dddddd"), (0.25, 0.75, "#b0b0b0"))


def schedule_plot(
    schedule: Any,
    values: Any,
    weights: Any = None,
    outcome: Any = None,
    *,
    ramp: float | None = 0.4,
    hours: Iterable[Any] | None = None,
    unit: str = "scaled units",
    title: str = "Generation schedule",
    path: Path | str | None = None,
) -> "Figure":
    """Draw a schedule over the 5-95 % and 25-75 % bands of the scenarios.

    Args:
        schedule: (h,). The generation of each hour.
        values: (S, h). Scenarios of the load.
        weights: (S,), default None. Probabilities of the scenarios; None: all equal.
        outcome: (h,), default None. The load that occurred.
        ramp: float, default 0.4. Changes of at least so much are drawn thick; None draws none.
        hours: h labels, default None: 0, 1, ...
        unit: str, default "scaled units". The unit of load and generation.
        title: str, default "Generation schedule". The title of the picture.
        path: file name, default None. Where to write the picture; its folder is made.
    """
    from matplotlib.figure import Figure

    a = read("schedule_plot", "schedule", schedule, (None,), "one number an hour")
    h = len(a)
    y = read("schedule_plot", "values", values, (None, h), "scenarios by hours")
    w = np.ones(len(y)) if weights is None else weights
    w = read("schedule_plot", "weights", w, (len(y),), "one number a scenario")
    if (w < 0).any() or w.sum() <= 0:
        raise ValueError(
            f"schedule_plot needs weights that are not negative and not all 0, but they go from "
            f"{w.min():g} to {w.max():g}. Give the probabilities of the scenarios."
        )
    at = np.arange(h)
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    for low, high, shade in BANDS:
        ends = np.quantile(y, (low, high), axis=0, weights=w, method="inverted_cdf")
        name = f"{100 * low:.0f}-{100 * high:.0f} % of scenarios"
        axes.fill_between(at, *ends, color=shade, linewidth=0, label=name)
    if outcome is not None:
        load = read("schedule_plot", "outcome", outcome, (h,), "one number an hour")
        axes.plot(at, load, "k:", marker="x", label="load")
    axes.plot(at, a, color="#c0392b", marker="o", markersize=3, label="generation")
    if ramp is not None:
        full = np.abs(np.diff(a)) >= ramp * (1 - 1e-4)
        if full.any():
            begin_end = np.stack([[at[:-1], at[1:]], [a[:-1], a[1:]]])[..., full]
            lines = axes.plot(*begin_end, color="#c0392b", linewidth=4)
            lines[0].set_label("change at the limit")
    names = labels("schedule_plot", "hours", range(h) if hours is None else hours, h)
    mark_time(axes, at, names)
    axes.set(xlabel="hour", ylabel=f"load and generation ({unit})", title=title)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
    return write(figure, path)
