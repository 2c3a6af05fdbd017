"""Costs summed up over the test rows, less those of the simplest rule: what each method saves."""

from typing import TYPE_CHECKING, Any

import numpy as np

from costscape.comparison.sentences import number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from costscape.comparison.result import Comparison

CHOSEN, OTHERS, RULE = "#0072b2", ("#009e73", "#b0588a", "#8a6d00", "#d55e00"), "#59626b"
COLOURED = len(OTHERS)  # methods after the recommended one that have a colour
ABOVE = 0.3  # of the height below 0, that is shown above it


def savings(result: "Comparison") -> dict[str, np.ndarray]:
    """Costs of each method less those of the reference, summed up to each test row."""
    base = result.costs[result.reference]
    return {name: np.cumsum(costs - base) for name, costs in result.costs.items()}


def draw(result: "Comparison") -> "Figure":
    """The picture: below 0 a method is cheaper than the reference."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.4, 4.2), layout="constrained")
    axes = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    lines = savings(result)
    at: Any = result.rows if result.rows.dtype.kind in "Mif" else np.arange(result.test_rows)
    colours = iter(OTHERS)
    for i, (name, line) in enumerate(lines.items()):
        if name == result.reference:
            style: dict[str, Any] = {"color": RULE, "linestyle": "--", "linewidth": 1.2}
        elif name == result.recommended:
            style = {"color": CHOSEN, "linewidth": 2.6, "zorder": 3}
        else:
            tone = next(colours, None) if i <= COLOURED else None
            style = {"color": tone or "#a9b1b8", "linewidth": 1.2 if tone else 0.8}
        axes.plot(at, line, label=f"{name}: {number(float(line[-1]), 3)}", **style)
    chosen = lines[result.recommended]
    low = min(float(line.min()) for line in lines.values())
    top = max(float(chosen.max()), -ABOVE * low)
    if top > low:
        axes.set_ylim(low - 0.05 * (top - low), top + 0.05 * (top - low))
    axes.set(
        xlabel="test rows, in order of time",
        ylabel=f"cost, summed up, less that of {result.reference}",
        title=f"{result.recommended} against {result.reference}: "
        f"{number(float(chosen[-1]), 3)} in {result.test_rows:,} rows",
    )
    if at.dtype.kind == "M":
        figure.autofmt_xdate()
        axes.set_xlabel("")
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1), fontsize=8.5)
    return figure
