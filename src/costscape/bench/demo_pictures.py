"""The pictures of the demo: orders against demand and what is saved; the cost of wind bids."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#b0588a", "#8a6d00")
DEMAND, FIRST = "#cfd4d8", 2.4
SHOWN = 2.0  # a curve is shown up to so many times its least cost


@dataclass(frozen=True)
class Product:
    """Demand and the orders of several methods for the same days."""

    title: str
    demand: np.ndarray
    orders: Mapping[str, np.ndarray]


def orders_picture(
    path: Path,
    days: np.ndarray,
    products: Sequence[Product],
    dates: np.ndarray,
    saved: Mapping[str, np.ndarray],
) -> None:
    """Orders of products on a few days, and what each method saves over all test days.

    ``saved`` is summed up, in thousands of euros; its first method is drawn strongest.
    """
    from matplotlib.dates import DateFormatter
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.6), layout="constrained")
    grid = figure.add_gridspec(len(products), 2, width_ratios=[1.45, 1])
    panels: list[Axes] = []
    for i, product in enumerate(products):
        axes = figure.add_subplot(grid[i, 0], sharex=panels[0] if panels else None)
        panels.append(axes)
        axes.bar(days, product.demand, 0.8, color=DEMAND, label="demand")
        for (name, orders), colour in zip(product.orders.items(), COLOURS, strict=False):
            style: dict[str, Any] = {"linewidth": FIRST} if colour == COLOURS[0] else {}
            axes.step(days, orders, where="mid", color=colour, label=name, **style)
        axes.set(title=product.title, ylabel="pieces")
    panels[0].tick_params(labelbottom=False)
    panels[0].set_ylim(top=1.35 * max(float(v.max()) for v in _heights(products[0])))
    panels[0].legend(frameon=False, ncols=3, fontsize=8.5, loc="upper left")
    right = figure.add_subplot(grid[:, 1])
    for (name, line), colour in zip(saved.items(), COLOURS, strict=False):
        wide = FIRST if colour == COLOURS[0] else 1.3
        right.plot(dates, line, color=colour, linewidth=wide, label=f"{name}: {line[-1]:.1f}")
    right.axhline(0, color="#59626b", linestyle="--", linewidth=1, label="last week's sales: 0")
    right.set(title="Saved, thousand euros", ylabel="")
    right.legend(frameon=False, fontsize=8.5, loc="upper left")
    for axes, form in ((panels[-1], "%d %b"), (right, "%b")):
        formatter: Any = DateFormatter
        axes.xaxis.set_major_formatter(formatter(form))
    _write(figure, [*panels, right], path)


def _heights(product: Product) -> list[np.ndarray]:
    return [product.demand, *product.orders.values()]


@dataclass(frozen=True)
class Curve:
    """The learned expected cost of one hour's bid; the bid and the energy that came."""

    title: str
    bids: np.ndarray
    costs: np.ndarray
    bid: float
    energy: float


def wind_picture(path: Path, curves: Sequence[Curve]) -> None:
    """One panel for each curve, cut to the bids whose cost is near the least."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.4 * len(curves), 3.3), layout="constrained")
    panels = figure.subplots(1, len(curves), squeeze=False)[0]
    for axes, curve in zip(panels, curves, strict=True):
        a, g = curve.bids, curve.costs
        near = a[g <= g.min() + (SHOWN - 1) * abs(g.min())]
        low, high = near.min(), near.max()
        inside = (a >= low) & (a <= high)
        axes.plot(a[inside], g[inside], color=COLOURS[0], linewidth=FIRST, label="expected cost")
        at = float(np.interp(curve.bid, a, g))
        axes.plot(curve.bid, at, "o", color=COLOURS[1], label=f"bid {curve.bid:.2f}")
        beyond = " (beyond)" * (not low <= curve.energy <= high)
        at = curve.energy if not beyond else float("nan")
        words = f"energy {curve.energy:.2f}{beyond}"
        axes.axvline(at, color="#59626b", linestyle=":", label=words)
        axes.set(title=curve.title, xlabel="bid (2.05 MWh)")
        axes.legend(frameon=False, fontsize=8.5)
    panels[0].set_ylabel("cost of the hour")
    _write(figure, panels, path)


def _write(figure: Any, panels: Any, path: Path) -> None:
    for axes in panels:
        axes.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
