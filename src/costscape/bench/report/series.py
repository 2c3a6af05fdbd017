"""Cells -> series: the settings that were tried at several numbers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from costscape.bench.report.read_rows import label
from costscape.bench.report.summary import Cell


@dataclass(frozen=True)
class Series:
    """A method with one setting at several numbers, all else alike; ``title`` as of a cell."""

    title: str
    setting: str
    label: str
    points: tuple[tuple[float, Cell], ...]


def series(cells: Sequence[Cell]) -> list[Series]:
    """The settings that some method has at two numbers or more, with results."""
    groups: dict[tuple[str, str, str], list[tuple[float, Cell]]] = {}
    for cell in cells:
        for key, value in cell.changes.items():
            if _numeric(value) and cell.score is not None:
                group = (cell.title, key, label(cell.method, _without(cell, key)))
                groups.setdefault(group, []).append((float(value), cell))
    return [
        Series(title, key, name, tuple(sorted(points, key=_first)))
        for (title, key, name), points in groups.items()
        if len(points) > 1
    ]


def _numeric(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _without(cell: Cell, key: str) -> dict[str, Any]:
    return {name: value for name, value in cell.changes.items() if name != key}


def _first(point: tuple[float, Cell]) -> float:
    return point[0]
