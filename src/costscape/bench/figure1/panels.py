"""The rows of the three panels, and their file in a store."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from costscape.bench.figure1.gradient_variance import sampling
from costscape.bench.figure1.local_quadratic import local
from costscape.bench.figure1.model_mismatch import mismatch
from costscape.bench.store_files import FIGURE1
from costscape.whole_file import write_whole


@dataclass(frozen=True)
class Size:
    """How much is computed; the default takes two minutes on one core.

    - ``epochs``: of every network.
    - ``draws``, ``repeats``, ``batch``: numbers of draws, gradients for each, rows of a gradient.
    - ``points``: of each curve.
    - ``quick``: whether the problems are small: to test the command.
    """

    epochs: int = 10
    draws: tuple[int, ...] = (10, 30, 100, 300, 1000, 3000)
    repeats: int = 40
    batch: int = 64
    points: int = 81
    quick: bool = False


QUICK = Size(epochs=1, draws=(10, 40), repeats=5, batch=8, points=21, quick=True)


def bottlenecks(size: Size) -> list[dict[str, Any]]:
    """Compute the rows of the three panels."""
    return [
        *mismatch(size.epochs, size.quick),
        *sampling(size.draws, size.repeats, size.batch, size.epochs, size.quick),
        local(size.points, size.quick),
    ]


def write_bottlenecks(folder: Path, size: Size) -> list[dict[str, Any]]:
    """Compute the rows and write them into a store, one JSON object a line."""
    rows = bottlenecks(size)
    lines = "".join(f"{json.dumps(row, allow_nan=False)}\n" for row in rows)
    write_whole(folder / FIGURE1, lines.encode())
    return rows


def read_bottlenecks(folder: Path) -> list[dict[str, Any]]:
    """Read the rows of a store."""
    return [json.loads(line) for line in (folder / FIGURE1).read_text().splitlines()]
