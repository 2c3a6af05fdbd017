"""The tables of an explanation: past rows, cost curves, deviations, inputs."""

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class PastRows:
    """The training rows that carry the weight, the heaviest first.

    Args:
        labels: numpy array (r,). Index labels of the rows, or their positions.
        weights: numpy array (r,). Positive, with sum 1; empty where the forecast is one point.
        outcomes: numpy array (r, q). Their outcomes; NaN for rows outside the kept sample.
        columns: tuple of q. Names of the outcomes, or their numbers.
        rule: str. How weights of scenarios become weights of rows.
    """

    labels: np.ndarray
    weights: np.ndarray
    outcomes: np.ndarray
    columns: tuple[str | int, ...]
    rule: str

    def names(self) -> list[str]:
        """The labels as texts."""
        return label_texts(self.labels)

    def lines(self) -> list[str]:
        """One short text for each row."""
        return [f"{n}: {w:.1%}" for n, w in zip(self.names(), self.weights, strict=True)]

    def to_frame(self) -> Any:
        """The weights and outcomes by label, as a pandas DataFrame."""
        import pandas as pd

        frame = pd.DataFrame(self.outcomes, self.labels, list(self.columns))
        frame.insert(0, "weight", self.weights, allow_duplicates=True)
        return frame


@dataclass(frozen=True)
class CostCurves:
    """The expected cost along each coordinate, the others fixed at the decision.

    Args:
        names: tuple of d. Names of the coordinates.
        actions: numpy array (d, J). Values of the coordinate, in ascending order, between the
            bounds of the feasible set; the decision is one of them.
        costs: numpy array (d, J). The expected cost of each.
        feasible: numpy array of bool (d, J). Whether the action is in the feasible set.
    """

    names: tuple[str | int, ...]
    actions: np.ndarray
    costs: np.ndarray
    feasible: np.ndarray

    def to_frame(self) -> Any:
        """One line for each coordinate and value, as a pandas DataFrame."""
        import pandas as pd

        points = self.actions.shape[1]
        return pd.DataFrame(
            {
                "coordinate": np.repeat(np.array(self.names, dtype=object), points),
                "action": self.actions.ravel(),
                "expected_cost": self.costs.ravel(),
                "feasible": self.feasible.ravel(),
            }
        )


@dataclass(frozen=True)
class Deviations:
    """The price of one step away from the decision: g(x, a +- step e_i) - g(x, a).

    Args:
        names: tuple of d. Names of the coordinates.
        step: numpy array (d,). The step of each coordinate.
        up: numpy array (d,). The price of one step more.
        down: numpy array (d,). The price of one step less.
        up_feasible: numpy array of bool (d,). Whether one step more stays in the feasible set.
        down_feasible: numpy array of bool (d,). Whether one step less does.
    """

    names: tuple[str | int, ...]
    step: np.ndarray
    up: np.ndarray
    down: np.ndarray
    up_feasible: np.ndarray
    down_feasible: np.ndarray

    def lines(self) -> list[str]:
        """One short text for each coordinate."""
        parts = zip(self.names, self.step, self.up, self.down, strict=True)
        flags = zip(self.up_feasible, self.down_feasible, strict=True)
        return [
            f"{name}: step {step:.4g}, more {_price(up, bool(a))}, less {_price(down, bool(b))}"
            for (name, step, up, down), (a, b) in zip(parts, flags, strict=True)
        ]

    def to_frame(self) -> Any:
        """One line for each coordinate, as a pandas DataFrame."""
        import pandas as pd

        columns = ("step", "up", "down", "up_feasible", "down_feasible")
        return pd.DataFrame({name: getattr(self, name) for name in columns}, list(self.names))


@dataclass(frozen=True)
class InputEffects:
    """What changes if one input is replaced by its median over the training rows.

    Args:
        names: tuple of p. Names of the inputs: columns, or columns of a series, each as a whole.
        coordinates: tuple of d. Names of the coordinates of the decision.
        change: numpy array (p, d). The decision less the one with the input at its median.
        price: numpy array (p,). What the decision without the input costs more, by the expected
            cost at the true x. About 0 for an input that does not matter.
        expected_change: numpy array (p,). The expected cost less the one that the model expects
            with the input at its median.
    """

    names: tuple[str | int, ...]
    coordinates: tuple[str | int, ...]
    change: np.ndarray
    price: np.ndarray
    expected_change: np.ndarray

    def order(self) -> np.ndarray:
        """The inputs from the largest price to the least; equal prices by the change."""
        return np.lexsort((-np.abs(self.change).sum(1), -self.price))

    def lines(self) -> list[str]:
        """One short text for each input, the most important first."""
        return [
            f"{self.names[j]}: moves the decision by {np.abs(self.change[j]).max():.4g} at most, "
            f"ignoring it costs {self.price[j]:.4g}"
            for j in self.order()
        ]

    def to_frame(self) -> Any:
        """One line for each input, as a pandas DataFrame."""
        import pandas as pd

        frame = pd.DataFrame(self.change, list(self.names), list(self.coordinates))
        frame.columns = [f"change of {name}" for name in self.coordinates]
        frame.insert(0, "price", self.price)
        frame.insert(1, "expected_change", self.expected_change)
        return frame


def label_texts(labels: np.ndarray) -> list[str]:
    """Labels of rows as texts; dates without a time of day are dates."""
    if labels.dtype.kind != "M":
        return [str(label) for label in labels]
    whole = (labels == labels.astype("datetime64[D]")).all()
    return [str(label) for label in labels.astype(f"datetime64[{'D' if whole else 's'}]")]


def _price(price: float, feasible: bool) -> str:
    return f"costs {price:.4g}" + ("" if feasible else " (not feasible)")
