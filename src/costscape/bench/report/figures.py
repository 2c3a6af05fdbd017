"""Cells -> inline SVG by matplotlib: bars, time against result, settings, landscapes.

matplotlib writes fixed colours. Each colour of PALETTE is replaced by the page's variable of the
same name, and text has no colour, so a figure follows the light or dark colours of its page.
"""

import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from costscape.bench.report.number_format import number
from costscape.bench.report.problem_tables import Series
from costscape.bench.report.read_rows import SURFACES
from costscape.bench.report.summary import BEST, MAIN, OTHER, OURS, Cell

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

PALETTE = {
    **{MAIN: "#0072b2", OURS: "#56b4e9", BEST: "#d55e00", OTHER: "#a9b1b8", "line": "#dfe2e4"},
    **{"s1": "#009e73", "s2": "#b0588a", "s3": "#8a6d00", "s4": "#59626b"},
}
NAMES = {MAIN: "main method", OURS: "its variants", BEST: "best opponent", OTHER: "others"}
STYLE: Any = {
    "svg.fonttype": "none",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": PALETTE["line"],
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": PALETTE["line"],
    "xtick.color": PALETTE["line"],
    "ytick.color": PALETTE["line"],
    "xtick.labelcolor": "black",
    "ytick.labelcolor": "black",
}
WIDTH = 5.0  # inches
NAMED = 12  # points of a scatter, at most, that all have their names


@dataclass(frozen=True)
class Figure:
    """An inline picture, what one sees in it, and the names of its colours."""

    svg: str
    caption: str
    legend: tuple[tuple[str, str], ...] = ()


def bars(cells: Sequence[Cell], title: str) -> Figure | None:
    """The measure of each cell with whiskers of one sd; None where no cell has it."""
    shown = [(cell, cell.score) for cell in cells if cell.score]
    if not shown:
        return None
    measure = shown[0][0].measure
    canvas, axes = _canvas(0.7 + 0.24 * len(shown))
    limit = _limit([stat.mean for _, stat in shown])
    for i, (cell, stat) in enumerate(shown):
        axes.barh(i, stat.mean, 0.6, xerr=stat.sd, color=PALETTE[cell.role], ecolor="gray")
    axes.set_yticks(range(len(shown)), [cell.label for cell, _ in shown])
    axes.set_ylim(len(shown) - 0.4, -0.6)
    axes.grid(False, axis="y")
    axes.set_xlim(min(0.0, *(stat.mean for _, stat in shown)), 1.1 * limit or 1.0)
    axes.set_xlabel(measure)
    cut = " Bars that reach the edge go on beyond it." * any(s.mean > limit for _, s in shown)
    words = f"Mean {measure} over seeds, whiskers of one standard deviation. Shorter is better."
    return Figure(_svg(canvas, f"{title}: {measure} of each method"), words + cut, _legend(cells))


def scatter(cells: Sequence[Cell], title: str) -> Figure | None:
    """Mean seconds to fit, on a log axis, against the measure; None with fewer than two."""
    shown = [
        (cell, max(cell.fit_seconds, 1e-3), cell.score.mean)
        for cell in cells
        if cell.score and cell.fit_seconds is not None
    ]
    if len(shown) < 2:
        return None
    measure = shown[0][0].measure
    canvas, axes = _canvas(3.4)
    limit, times = _limit([mean for *_, mean in shown]), [time for _, time, _ in shown]
    for cell, time, mean in shown:
        marker = "^" if mean > limit else "o"
        axes.plot(time, min(mean, limit), marker, color=PALETTE[cell.role], markersize=6)
        if cell.role != OTHER or len(shown) <= NAMED:
            right = time**2 > min(times) * max(times)  # the name is on the side with more room
            spot, side = (time, min(mean, limit)), "right" if right else "left"
            place = {"textcoords": "offset points", "ha": side, "in_layout": False}
            axes.annotate(cell.label, spot, (-5 if right else 5, 4), **place)
    axes.set(xscale="log", xlabel="seconds to fit", ylabel=f"{measure}, mean over seeds")
    words = f"Time to fit against mean {measure}: down and to the left is better."
    edge = " A triangle at the upper edge stands for a larger value."
    mixed = " Times are of several devices." * (len({d for c in cells for d in c.devices}) > 1)
    words += edge * any(mean > limit for *_, mean in shown) + mixed
    return Figure(
        _svg(canvas, f"{title}: seconds to fit against {measure}"), words, _legend(cells)
    )


def settings(series: Sequence[Series], best: Cell | None, title: str) -> Figure:
    """One setting of one or more methods: the measure with a band of one sd, below it seconds."""
    canvas, axes = _canvas(3.8, rows=2)
    top, below = axes
    tones = iter(["s1", "s2", "s3", "s4"] * len(series))
    legend = []
    for one in series:
        role = one.points[0][1].role
        tone = role if role in (MAIN, OURS) else next(tones)
        legend.append((tone, one.label))
        x = [value for value, _ in one.points]
        stats = [cell.score for _, cell in one.points if cell.score]
        mean, sd = np.array([(stat.mean, stat.sd or 0.0) for stat in stats]).T
        top.plot(x, mean, "o-", color=PALETTE[tone])
        top.fill_between(x, mean - sd, mean + sd, color=PALETTE[tone], alpha=0.16, linewidth=0)
        below.plot(x, [cell.fit_seconds for _, cell in one.points], "o-", color=PALETTE[tone])
    name, measure = series[0].setting, series[0].points[0][1].measure
    values = [value for one in series for value, _ in one.points]
    if min(values) > 0 and max(values) > 15 * min(values):
        top.set_xscale("log")
    if best and best.score:
        top.axhline(best.score.mean, color=PALETTE[BEST], linestyle="--")
    top.set_ylabel(f"{measure}, mean and sd")
    below.set(xlabel=name, ylabel="seconds to fit")
    dashed = f" Dashed: {best.label}, the best opponent." if best else ""
    words = (
        f"The setting {name}: mean {measure} with a band of one standard deviation, and below it "
        f"the mean seconds to fit.{dashed}"
    )
    return Figure(_svg(canvas, f"{title}: {measure} and seconds by {name}"), words, tuple(legend))


def landscape(one: Mapping[str, Any]) -> Figure:
    """g(x, .) over two actions: initial, learned and true, on one scale of colours."""
    from matplotlib.colors import PowerNorm

    a1, a2 = (np.asarray(one[key], dtype=np.float64) for key in ("a1", "a2"))
    surfaces = {name: np.asarray(one["surfaces"][name], dtype=np.float64) for name in SURFACES}
    for name, surface in surfaces.items():
        if surface.shape != (len(a1), len(a2)) or not np.isfinite(surface).all():
            raise ValueError(
                f"A landscape needs finite numbers of shape ({len(a1)}, {len(a2)}), as many as "
                f"a1 and a2, but its surface {name!r} has shape {surface.shape}. Make it again."
            )
    low, high = (f([f(s) for s in surfaces.values()]) for f in (np.min, np.max))
    canvas, axes = _canvas(2.6, columns=3)
    least = {}
    for panel, (name, surface) in zip(axes, surfaces.items(), strict=True):
        i, j = np.unravel_index(int(surface.argmin()), surface.shape)
        least[name] = f"({a1[i]:.3g}, {a2[j]:.3g}) with {number(float(surface[i, j]))}"
        image = panel.imshow(
            surface.T,
            norm=PowerNorm(0.5, low, high),  # finer near the least
            cmap="cividis",
            origin="lower",
            extent=(a1[0], a1[-1], a2[0], a2[-1]),
            aspect="auto",
        )
        panel.plot(a1[i], a2[j], "o", markerfacecolor="none", markeredgecolor="white")
        panel.set(title=name, xlabel="a1")
        panel.grid(False)
    axes[0].set_ylabel("a2")
    canvas.colorbar(image, ax=list(axes), location="bottom", label="expected cost g(x, a)")
    x = ", ".join(f"{value:.3g}" for value in one["x"])
    words = (
        f"Expected cost of two actions at x = ({x}): before training, as {one['method']} learned "
        f"it (seed {one['seed']}), and true. A ring marks the least: learned at "
        f"{least['learned']}, true at {least['true']}."
    )
    return Figure(
        _svg(canvas, f"{one['problem']}: cost landscapes, initial, learned, true"), words
    )


def _canvas(height: float, rows: int = 1, columns: int = 1) -> "tuple[Canvas, Any]":
    """A figure without a screen, and its axes."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure as Canvas

    with rc_context(STYLE):
        canvas = Canvas(figsize=(WIDTH, height), layout="constrained", facecolor="none")
        axes: Axes | np.ndarray = canvas.subplots(
            rows, columns, sharex=rows > 1, sharey=columns > 1
        )
    for panel in np.atleast_1d(np.asarray(axes, dtype=object)):
        panel.set_facecolor("none")
    return canvas, axes


def _svg(canvas: "Canvas", title: str) -> str:
    """The figure as the text of one element with the title that a screen reader says."""
    from matplotlib import rc_context

    out, nothing = io.StringIO(), dict.fromkeys(("Date", "Creator", "Format", "Type"))
    with rc_context({**STYLE, "svg.hashsalt": title}):
        canvas.savefig(out, format="svg", metadata=nothing, transparent=True)
    text = re.sub(r'<(g|svg)([^>]*?) id="[^"]*"', r"<\1\2", out.getvalue())  # not unique in a page
    for name, colour in PALETTE.items():
        text = text.replace(colour, f"var(--{name})")
    box = re.search(r'viewBox="[^"]*"', text)
    assert box is not None
    body = text[text.index(">", text.index("<svg")) + 1 :].strip()
    head = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
    return f'<svg {head} {box[0]} role="img"><title>{escape(title)}</title>{body}'


def _limit(values: Sequence[float]) -> float:
    """Where an axis ends, so that a few enormous values do not hide the others."""
    positive = [value for value in values if value > 0]
    return max((v for v in positive if v <= 3 * np.median(positive)), default=max(values))


def _legend(cells: Sequence[Cell]) -> tuple[tuple[str, str], ...]:
    names: dict[str, list[str]] = {}
    for cell in cells:
        if cell.score:
            names.setdefault(cell.role, []).append(cell.label)
    alone = [role for role in (MAIN, BEST) if len(names.get(role, [])) == 1]
    return tuple((r, names[r][0] if r in alone else NAMES[r]) for r in NAMES if r in names)
