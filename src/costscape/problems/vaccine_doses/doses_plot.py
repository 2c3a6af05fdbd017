"""Where the doses go, and the infections they avert."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from costscape.problems.pictures import Array, labels, read, write
from costscape.problems.vaccine_doses.prefectures import PREFECTURES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DARK = 0.55  # of the largest number: beyond, a tile's text is white


def doses_plot(
    doses: Any,
    averted: Any = None,
    *,
    names: Iterable[Any] | None = None,
    tiles: Any = None,
    unit: str = "doses",
    title: str = "Doses by region",
    path: Path | str | None = None,
) -> "Figure":
    """Doses (n,) by region as a map of tiles, darker for more, or as bars from most to least.

    ``tiles`` gives each region its (row, column); 47 doses without names are the prefectures of
    Japan in the order of their codes. Without tiles: bars. ``averted`` (n,), infections averted
    in each region, is written below the doses, or drawn as bars of its own.
    """
    a = read("doses_plot", "doses", doses, (None,), "one number a region")
    n = len(a)
    gain = None
    if averted is not None:
        gain = read("doses_plot", "averted", averted, (n,), "one number a region")
    if names is None and tiles is None and n == len(PREFECTURES):
        names, tiles = [p.name for p in PREFECTURES], [p.tile for p in PREFECTURES]
    named = range(1, n + 1) if names is None else names
    texts = labels("doses_plot", "names", named, n)
    if tiles is None:
        return write(_bars(a, gain, texts, unit, title), path)
    places = read("doses_plot", "tiles", tiles, (n, 2), "a (row, column) for each region")
    where = places.astype(int)
    if (where != places).any() or (where < 0).any() or len({*map(tuple, where.tolist())}) < n:
        raise ValueError(
            "doses_plot needs a tile of its own for each region, its row and column counted from "
            "0, but some of tiles coincide, are negative or are no whole numbers. Move them apart."
        )
    return write(_map(a, gain, texts, where, unit, title), path)


def _map(
    a: Array, gain: Array | None, names: list[str], where: Any, unit: str, title: str
) -> "Figure":
    from matplotlib.collections import PatchCollection
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

    rows, columns = (where.max(0) + 1).tolist()
    figure = Figure(figsize=(0.75 * columns + 1.5, 0.7 * rows + 0.8), layout="constrained")
    axes = figure.subplots()
    top = max(float(a.max()), 1e-12)
    squares = [Rectangle((column, row), 1, 1) for row, column in where.tolist()]
    shades = PatchCollection(squares, cmap="Greys", edgecolor="#888888", linewidth=0.6)
    shades.set_array(a)
    shades.set_clim(min(0.0, float(a.min())), top)
    axes.add_collection(shades)
    for i, (row, column) in enumerate(where.tolist()):
        lines = [names[i], _short(a[i])] + ([] if gain is None else [f"({_short(gain[i])})"])
        ink = "white" if a[i] > DARK * top else "black"
        text = axes.text(column + 0.5, row + 0.5, "\n".join(lines), color=ink, fontsize=7)
        text.set(ha="center", va="center")
    axes.set(xlim=(-0.05, columns + 0.05), ylim=(rows + 0.05, -0.05), aspect="equal")
    axes.set_axis_off()
    axes.set_title(title if gain is None else f"{title} (in brackets: infections averted)")
    figure.colorbar(shades, ax=axes, label=unit, shrink=0.6, format=_tick)
    return figure


def _bars(a: Array, gain: Array | None, names: list[str], unit: str, title: str) -> "Figure":
    from matplotlib.figure import Figure

    order = np.argsort(-a, kind="stable")
    shown = [(a, unit, "#8a8a8a", "")]
    if gain is not None:
        shown.append((gain, "infections averted", "white", "////"))
    size = (4.5 * len(shown) + 1, 0.24 * len(a) + 1.4)
    figure = Figure(figsize=size, layout="constrained")
    panels = figure.subplots(1, len(shown), sharey=True, squeeze=False)[0]
    at = np.arange(len(a))
    for axes, (numbers, label, fill, hatch) in zip(panels, shown, strict=True):
        axes.barh(at, numbers[order], color=fill, edgecolor="black", linewidth=0.6, hatch=hatch)
        axes.set_xlabel(label)
        axes.xaxis.set_major_formatter(_tick)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_yticks(at, [names[i] for i in order])
    panels[0].set_ylabel("region")
    panels[0].invert_yaxis()
    figure.suptitle(title)
    return figure


def _tick(value: float, position: int | None = None) -> str:
    return _short(value)


def _short(value: float) -> str:
    """1234567 as 1.23M, 45000 as 45k."""
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= 0.9995 * size:
            return f"{value / size:.3g}{letter}"
    whole = abs(value) >= 9.95 or value == round(value)
    return f"{value:.0f}" if whole else f"{value:.1f}"
