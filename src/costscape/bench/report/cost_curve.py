"""Pictures, from plain arrays alone."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np


def cost_curve(
    path: Path,
    actions: Sequence[float],
    costs: Sequence[float],
    decision: float,
    outcome: float,
    outcomes: Sequence[float],
    weights: Sequence[float],
    labels: tuple[str, str],
    title: str,
) -> None:
    """The learned cost of one action coordinate, its minimum, and the scenarios under it.

    ``outcomes`` and ``weights`` are drawn as a histogram along the same axis; ``labels`` name the
    action with its unit, and the cost with its.
    """
    from matplotlib.figure import Figure  # the object interface: no global state, no display

    figure = Figure(figsize=(7, 5), layout="constrained")
    top, below = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
    least = float(np.interp(decision, actions, costs))
    top.plot(actions, costs, color="#1f6f8b", label="expected cost, learned")
    top.plot([decision], [least], "o", color="#c0392b", label=f"decision {decision:.2f}")
    for axes in (top, below):
        axes.axvline(outcome, color="#555555", linestyle=":", label=f"what came {outcome:.2f}")
        axes.spines[["top", "right"]].set_visible(False)
    top.set(ylabel=labels[1], title=title)
    top.legend(frameon=False)
    below.hist(outcomes, bins=40, weights=weights, color="#9fc5d1")
    below.set(xlabel=labels[0], ylabel="probability")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
