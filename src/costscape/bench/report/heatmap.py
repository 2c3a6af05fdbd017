"""Landscapes g(x, .) over two actions: initial, learned, true, on one scale of colours.

Colours are sixteen steps of cividis (Nunez, Anderton and Renslow, PLOS ONE 2018), the same to
all eyes, by sqrt((g - least) / (most - least)), which is finer near the least. Each step is one
path, which keeps a surface of 25 x 25 within some kilobytes.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from costscape.bench.report.number_format import number
from costscape.bench.report.read_rows import SURFACES
from costscape.bench.report.svg import WIDTH, at, dot, line, picture, text, tick_text, ticks

COLOURS = (
    *("#00224e", "#002e6c", "#1e3a6f", "#35456c", "#47516c", "#575d6d", "#666970", "#757575"),
    *("#848279", "#948e77", "#a59c74", "#b7a96e", "#c8b866", "#dbc75a", "#eed649", "#fee838"),
)
GAP = 12.0
SIDE = (WIDTH - 30 - 2 * GAP) / 3


def heatmaps(landscape: Mapping[str, Any]) -> str:
    """Three surfaces side by side, the least entry of each marked, and the colours' legend."""
    a1, a2 = (np.asarray(landscape[key], dtype=np.float64) for key in ("a1", "a2"))
    surfaces = {
        name: np.asarray(landscape["surfaces"][name], dtype=np.float64) for name in SURFACES
    }
    for name, surface in surfaces.items():
        if surface.shape != (len(a1), len(a2)) or not np.isfinite(surface).all():
            raise ValueError(
                f"A landscape needs finite numbers of shape ({len(a1)}, {len(a2)}), as many as "
                f"a1 and a2, but its surface {name!r} has shape {surface.shape}. Make it again."
            )
    low = min(float(surface.min()) for surface in surfaces.values())
    high = max(float(surface.max()) for surface in surfaces.values())
    parts = []
    for i, (name, surface) in enumerate(surfaces.items()):
        parts += _panel(name, surface, a1, a2, (low, high), 26 + i * (SIDE + GAP), i == 0)
    parts += _legend(low, high, SIDE + 68)
    title = f"{landscape['problem']}: cost landscapes, initial, learned and true"
    return picture(title, SIDE + 106, parts)


def minimum(landscape: Mapping[str, Any], name: str) -> tuple[float, float, float]:
    """a1, a2 and g of the least entry of a surface."""
    surface = np.asarray(landscape["surfaces"][name], dtype=np.float64)
    i, j = np.unravel_index(int(surface.argmin()), surface.shape)
    return float(landscape["a1"][i]), float(landscape["a2"][j]), float(surface[i, j])


def _panel(
    name: str,
    surface: npt.NDArray[np.float64],
    a1: npt.NDArray[np.float64],
    a2: npt.NDArray[np.float64],
    ends: tuple[float, float],
    left: float,
    first: bool,
) -> list[str]:
    top = 22.0
    n, m = surface.shape
    wide, tall = SIDE / n, SIDE / m
    levels = _levels(surface, ends)
    parts = [text(left + SIDE / 2, 14, name, "panel", "middle")]
    for level in sorted(set(levels.ravel().tolist())):
        way = "".join(_run(levels[:, j] == level, m - 1 - j) for j in range(m))
        parts.append(
            f'<path fill="{COLOURS[level]}" shape-rendering="crispEdges" '
            f'transform="translate({at(left)} {at(top)}) scale({wide:.4f} {tall:.4f})" d="{way}"/>'
        )
    i, j = np.unravel_index(int(surface.argmin()), surface.shape)
    x, y = left + (float(i) + 0.5) * wide, top + (m - float(j) - 0.5) * tall
    tip = f"least at ({a1[i]:.3g}, {a2[j]:.3g}): {number(float(surface[i, j]))}"
    parts += [dot(x, y, 5, "least", tip), dot(x, y, 1.6, "least-core", tip)]
    for k, anchor in ((0, "start"), (n - 1, "end")):
        edge = left if k == 0 else left + SIDE
        parts.append(
            text(edge, top + SIDE + 13, tick_text(round(float(a1[k]), 3)), "tick", anchor)
        )
    parts.append(text(left + SIDE / 2, top + SIDE + 13, "a1", "tick", "middle"))
    if first:
        ends_at = ((m - 1, top + 8.0), (0, top + SIDE))
        for k, height in ends_at:
            words = tick_text(round(float(a2[k]), 3))
            parts.append(text(left - 4, height, words, "tick", "end"))
        parts.append(text(left - 4, top + SIDE / 2 + 3, "a2", "tick", "end"))
    return parts


def _levels(surface: npt.NDArray[np.float64], ends: tuple[float, float]) -> npt.NDArray[np.int64]:
    low, high = ends
    share = np.sqrt((surface - low) / (high - low or 1.0))
    return np.minimum((share * len(COLOURS)).astype(np.int64), len(COLOURS) - 1)


def _run(here: npt.NDArray[np.bool_], row: int) -> str:
    """Neighbours of one colour in a row as one rectangle each."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], here.astype(np.int8), [0]])))
    return "".join(
        f"M{start} {row}h{end - start}v1h{start - end}z"
        for start, end in zip(edges[::2], edges[1::2], strict=True)
    )


def _legend(low: float, high: float, top: float) -> list[str]:
    left, right = 26.0, 26 + 3 * SIDE + 2 * GAP
    step = (right - left) / len(COLOURS)
    parts = [
        f'<rect fill="{colour}" x="{at(left + k * step)}" y="{at(top)}" '
        f'width="{at(step + 0.5)}" height="9"/>'
        for k, colour in enumerate(COLOURS)
    ]
    for value in ticks(low, high, 5):
        x = left + (right - left) * math.sqrt(max(value - low, 0.0) / (high - low or 1.0))
        parts.append(line(x, top + 9, x, top + 12, "whisker"))
        parts.append(text(x, top + 23, tick_text(value), "tick", "middle"))
    parts.append(text(left, top - 6, "expected cost g(x, a)", "tick"))
    return parts
