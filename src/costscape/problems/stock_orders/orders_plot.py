"""Orders against the demand that came, and how well they served it."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from costscape.problems.pictures import labels, mark_time, one_panel, read, write

if TYPE_CHECKING:
    from matplotlib.figure import Figure


TICKS = 15  # labels of the time axis, at most


class Service(NamedTuple):
    """``days``: the share without shortage; ``demand``: the share of the demand served."""

    days: float
    demand: float


def service_level(orders: Any, demand: Any) -> Service:
    """Of n orders and n demands: the share of a_i >= y_i, and sum min(a_i, y_i) / sum y_i.

    >>> service_level([2.0, 1.0], [1.0, 3.0])
    Service(days=0.5, demand=0.5)
    """
    a = read("service_level", "orders", orders, (None,), "one number a day")
    y = read("service_level", "demand", demand, (len(a),), "one number a day")
    if (a < 0).any() or (y < 0).any():
        raise ValueError(
            f"service_level needs orders and demands of at least 0, but the least are {a.min():g} "
            f"and {y.min():g}. Put returns at 0."
        )
    served = float(np.minimum(a, y).sum() / y.sum()) if y.sum() > 0 else 1.0
    return Service(float((a >= y).mean()), served)


def orders_plot(
    orders: Any,
    demand: Any,
    *,
    days: Iterable[Any] | None = None,
    unit: str = "units",
    title: str = "Orders",
    path: Path | str | None = None,
) -> "Figure":
    """Orders (n,) as steps, demand (n,) as bars, what was short hatched; service in the title.

    ``days`` are labels such as dates; None: 1, 2, ...
    """
    a = read("orders_plot", "orders", orders, (None,), "one number a day")
    n = len(a)
    y = read("orders_plot", "demand", demand, (n,), "one number a day")
    names = labels("orders_plot", "days", range(1, n + 1) if days is None else days, n)
    level = service_level(a, y)
    figure, axes = one_panel()
    at, served = np.arange(n), np.minimum(a, y)
    axes.bar(at, served, width=0.8, color="#c4c4c4", label="demand served")
    if (lost := y > a).any():
        hatched: dict[str, Any] = {
            "color": "white",
            "edgecolor": "black",
            "hatch": "////",
            "linewidth": 0.6,
        }
        short = (y - a)[lost]
        axes.bar(at[lost], short, 0.8, a[lost], label="demand not served", **hatched)
    edges = np.arange(n + 1) - 0.5
    axes.stairs(a, edges, baseline=None, color="#1f6f8b", linewidth=2, label="order")
    every = -(-n // TICKS)
    mark_time(axes, at[::every], names[::every])
    words = (
        f"{title}\nno shortage on {100 * level.days:.0f} % of {n} days, "
        f"{100 * level.demand:.1f} % of the demand served"
    )
    axes.set(xlabel="day", ylabel=f"quantity ({unit})", title=words)
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
    return write(figure, path)
