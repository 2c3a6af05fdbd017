"""Panel 1: what a law of the wrong kind costs, all else exact.

    gap = E[f(y, a) | x] - min over C of the same,   a = argmin of E[f(y, a)] under the wrong law

The truth has three Gaussians. Decisions are by the closed form of the expected cost, so no draws
add an error. A law of infinite data is the one of its kind with the highest likelihood.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from costscape.bench.execution import execute
from costscape.bench.figure1.true_law import (
    DEVIATION,
    argmin,
    cost_of_normals,
    digits,
    known_parts,
    means,
    weights,
)
from costscape.bench.runs import Run, prepare
from costscape.problems import MixtureTruth
from costscape.task import SeparableTask

PROBLEM = "synthetic-convex"
FORECASTS = ("two-stage-pe", "dfl-pe", "two-stage-gmm1", "dfl-gmm1", "two-stage-gmm3", "dfl-gmm3")


def mismatch(epochs: int, quick: bool = False) -> list[dict[str, Any]]:
    """The mean gap of each law with infinite data, and of networks that were fitted."""
    p = prepare(Run(PROBLEM, "constant", quick=quick)).problem
    task, truth = known_parts(p)
    x = p.data.test.x
    rows: list[dict[str, Any]] = [
        {"panel": "mismatch", "law": law, "gap": digits(truth.gap(x, a).mean())}
        for law, a in nearest_laws(task, truth, x).items()
    ]
    for name in (*FORECASTS, "df2-quick"):
        changes = {"epochs": epochs, **({"draws": None} if name in FORECASTS else {})}
        row = execute(Run(PROBLEM, name, 0, changes, quick), "cpu").row
        if row["error"]:
            raise RuntimeError(f"{name} failed on {PROBLEM}:\n{row['error']}")
        kept = {key: row[key] for key in ("method", "seed", "changes", "recipe")}
        rows.append({"panel": "mismatch", **kept, "gap": digits(row["gap"])})
    return rows


def nearest_laws(
    task: SeparableTask, truth: MixtureTruth, x: Float[Tensor, "B p"]
) -> dict[str, Float[Tensor, "B d"]]:
    """The decisions for the law of each kind that is nearest to the truth in likelihood.

    A point is the mean. One diagonal Gaussian has the mean and the deviations of the truth.
    """
    m, w = means(truth, x), weights()
    mean = torch.einsum("c,bcd->bd", w, m)
    deviation = (DEVIATION**2 + torch.einsum("c,bcd->bd", w, (m - mean[:, None]) ** 2)).sqrt()
    one = torch.ones_like(mean[:, :1])
    assert task.hindsight is not None
    return {
        "point": task.hindsight(mean),
        "one Gaussian": argmin(cost_of_normals(task, one, mean[:, None], deviation[:, None])),
        "three Gaussians": argmin(
            cost_of_normals(task, w.expand(len(x), -1), m, torch.full_like(m, DEVIATION))
        ),
    }
