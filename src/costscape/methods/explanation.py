"""Why a decision is what it is, as tables and a picture."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from costscape.methods.explanation_tables import CostCurves, Deviations, InputEffects, PastRows

SHOWN = 5  # lines of each table in the text, and bars in the picture
PANELS = 6  # cost curves in the picture at most


@dataclass(frozen=True)
class Explanation:
    """The answer of ``model.explain(x)``: where a decision comes from, for one row x.

    Attributes:
        decision: numpy array (d,). The action.
        expected_cost: float. Its expected cost g(x, a), or its risk where one was minimised.
        names: tuple of d. Names of the coordinates, or their numbers.
        scenarios: int. Number of scenarios at x.
        effective_scenarios: float. 1 / sum of squared weights: as many scenarios of equal weight
            are as diverse.
        past: PastRows. The training rows that carry the weight.
        curves: CostCurves. The expected cost along each coordinate.
        deviations: Deviations. The price of one step more or less in each coordinate.
        inputs: InputEffects. The decision with one input at its median.

    >>> import numpy as np
    >>> import costscape as cs
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.random((40, 3)), rng.random((40, 2))
    >>> model = cs.NearestNeighbours(cs.problems.inventory(days=2), k=10).fit(X, Y)
    >>> why = model.explain(X[:1])
    >>> round(why.effective_scenarios), len(why.past.labels)
    (10, 10)
    >>> why.deviations.to_frame().shape
    (2, 5)
    """

    decision: np.ndarray
    expected_cost: float
    names: tuple[str | int, ...]
    scenarios: int
    effective_scenarios: float
    past: PastRows
    curves: CostCurves
    deviations: Deviations
    inputs: InputEffects

    def __str__(self) -> str:
        pairs = zip(self.names, self.decision, strict=True)
        lines = [
            f"Decision: {', '.join(f'{name}: {a:.4g}' for name, a in pairs)}",
            f"Expected cost {self.expected_cost:.6g}; {self.scenarios} scenarios count as "
            f"{self.effective_scenarios:.1f} of equal weight",
        ]
        for title, table in (
            (f"Past rows ({self.past.rule})", self.past),
            ("One step more or less", self.deviations),
            ("Inputs set to their median", self.inputs),
        ):
            lines += [title, *(f"  {line}" for line in table.lines()[:SHOWN])]
        return "\n".join(lines)

    def plot(self, path: str | Path | None = None) -> Any:
        """Draw cost curves, past rows and inputs; write the picture to ``path``, if given.

        Shows the first six coordinates and the five heaviest rows and inputs. Returns the
        matplotlib figure.
        """
        from matplotlib.figure import Figure

        panels = min(len(self.names), PANELS)
        columns = max(2, min(3, panels))
        rows = -(-panels // columns)
        figure = Figure(figsize=(4 * columns, 2.8 * (rows + 1)), layout="constrained")
        grid = figure.add_gridspec(rows + 1, 6)
        width = 6 // columns
        for i in range(panels):
            r, c = divmod(i, columns)
            axes = figure.add_subplot(grid[r, c * width : (c + 1) * width])
            axes.plot(self.curves.actions[i], self.curves.costs[i], color="0.8")
            allowed = np.where(self.curves.feasible[i], self.curves.costs[i], np.nan)
            axes.plot(self.curves.actions[i], allowed, color="C0")
            axes.plot(self.decision[i], self.expected_cost, "o", color="C3")
            axes.set(xlabel=f"action {self.names[i]}", ylabel="expected cost")
        past = figure.add_subplot(grid[rows, :3])
        _bars(past, self.past.names(), self.past.weights, "weight of past rows")
        effect = figure.add_subplot(grid[rows, 3:])
        order = self.inputs.order()
        names = [str(self.inputs.names[j]) for j in order]
        _bars(effect, names, self.inputs.price[order], "cost of ignoring an input")
        if path is not None:
            figure.savefig(path)
        return figure


def _bars(axes: Any, names: list[str], sizes: np.ndarray, title: str) -> None:
    some = names[:SHOWN]
    axes.barh(range(len(some)), sizes[:SHOWN], color="C0")
    axes.set_yticks(range(len(some)), some)
    axes.invert_yaxis()
    axes.set_title(title)
