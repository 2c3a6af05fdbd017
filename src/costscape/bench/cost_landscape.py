"""g(x, .) of one test x as numbers to draw: at the start, learned, and true."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from costscape.bench.runs import Run, prepare, recipe_of
from costscape.bench.store_files import LANDSCAPES, Key, locked, read_lines, write_lines
from costscape.methods import DF2
from costscape.problems import MixtureTruth

GRID = 25  # points along each coordinate
NOTHING = 1e-12  # a rate at which a network stays at its start


def landscape(run: Run, row: int = 0, device: str | None = None) -> dict[str, Any]:
    """Three surfaces over the two coordinates of a synthetic problem's action."""
    made = prepare(run, device)
    p, method = made.problem, made.method
    if not isinstance(p.truth, MixtureTruth) or not isinstance(method, DF2):
        raise ValueError(
            f"A landscape needs DF2 on a problem whose truth is known, such as "
            f"synthetic-nonconvex, but got {run.method} on {run.problem}."
        )
    train, val = p.data.train, p.data.val
    x = p.data.test.x[row : row + 1]
    first = replace(method.training, epochs=1, lr=NOTHING)
    start = replace(method, training=first, folds=1, ema=None)
    lower, upper = (bound.cpu() for bound in p.task.feasible.bounds)
    a1, a2 = (torch.linspace(float(lower[i]), float(upper[i]), GRID) for i in range(2))
    a = torch.cartesian_prod(a1, a2)
    surfaces = {"true": p.truth.expected_cost(x[:, None], a[None])[0]}
    for name, one in (("initial", start), ("learned", method)):
        one.fit(train.x, train.y, val=(val.x, val.y))
        surfaces[name] = one.expected_cost(x, a[None])[0]
    return {
        "problem": run.problem,
        "method": run.method,
        "seed": run.seed,
        "changes": dict(run.changes),
        "quick": run.quick,
        "recipe": made.recipe,
        "x": _digits(x[0]),
        "a1": _digits(a1),
        "a2": _digits(a2),
        "surfaces": {
            name: [_digits(line) for line in surfaces[name].reshape(GRID, GRID)]
            for name in ("initial", "learned", "true")
        },
    }


def write_landscape(run: Run, folder: Path, device: str | None = None) -> Path:
    """Add the landscape to the file of landscapes of a store; one of the same recipe is kept."""
    path = folder / LANDSCAPES
    key = Key(run.name, False)
    if read_lines(path).get(key, {}).get("recipe") == recipe_of(run):
        return path
    made = landscape(run, device=device)
    with locked(folder):
        write_lines(path, {**read_lines(path), key: made}.values())
    return path


def _digits(values: Tensor) -> list[float]:
    return [float(f"{v:.4g}") for v in values.tolist()]
