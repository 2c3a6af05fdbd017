"""The learned cost of one action as a picture, beside decisions against outcomes."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEARNED, DECIDED, OBSERVED = "#1f6f8b", "#c0392b", "#555555"
SHOWN = 6.0  # the curve is shown up to so many times its least cost


@dataclass(frozen=True)
class CostCurve:
    """The expected cost of one coordinate of the action, for one x.

    - ``actions``, ``costs``: n numbers each, the curve.
    - ``decision``: the action that was chosen; ``outcome``: the outcome that occurred.
    - ``action_label``, ``cost_label``: the axes, with their units.
    """

    actions: Sequence[float]
    costs: Sequence[float]
    decision: float
    outcome: float
    action_label: str
    cost_label: str
    title: str

    def draw(self, axes: "Axes") -> None:
        a, g = np.asarray(self.actions), np.asarray(self.costs)
        least = float(np.interp(self.decision, a, g))
        axes.plot(a, g, color=LEARNED, linewidth=2, label="expected cost, learned")
        axes.axvline(
            self.outcome, color=OBSERVED, linestyle=":", label=f"outcome {self.outcome:.2f}"
        )
        axes.plot(self.decision, least, "o", color=DECIDED, label=f"decision {self.decision:.2f}")
        near = a[g <= SHOWN * g.min()] if g.min() > 0 else a
        low, high = min(near.min(), self.outcome), max(near.max(), self.outcome)
        inside = g[(a >= low) & (a <= high)]
        room = 0.08 * float(np.ptp(inside))
        axes.set_xlim(low, high)
        axes.set_ylim(inside.min() - room, inside.max() + room)
        axes.set(xlabel=self.action_label, ylabel=self.cost_label, title=self.title)
        axes.legend(loc="upper center", framealpha=1, edgecolor="white")


def cost_curve(
    path: Path | str,
    curve: CostCurve,
    decisions: Sequence[float] = (),
    outcomes: Sequence[float] = (),
) -> None:
    """Write the picture of a curve and, where there are any, of ``decisions`` and ``outcomes``.

    The folder of ``path`` is made. Both sequences have one number for each test row, in the unit
    of the curve's actions.
    """
    from matplotlib.figure import Figure  # the object interface: no global state, no display

    panels = 2 if len(decisions) else 1
    figure = Figure(figsize=(5 * panels, 3.8), layout="constrained")
    axes = figure.subplots(1, panels, squeeze=False)[0]
    curve.draw(axes[0])
    if panels == 2:
        most = max(*decisions, *outcomes)
        axes[1].plot(outcomes, decisions, ".", color=DECIDED, alpha=0.4, markeredgewidth=0)
        axes[1].plot([0, most], [0, most], ":", color=OBSERVED, label="decision = outcome")
        axes[1].set(
            xlabel="outcome", ylabel="decision", title=f"Decisions of {len(decisions):,} test rows"
        )
        axes[1].legend(frameon=False, loc="upper left")
    for panel in axes:
        panel.spines[["top", "right"]].set_visible(False)
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
