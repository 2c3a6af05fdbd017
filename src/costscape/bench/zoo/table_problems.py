"""Decisions on the tables that scikit-learn includes. To add one, add an entry to TABLES.

The seed shuffles the rows before they are cut 64 / 16 / 20.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
import torch

from costscape.bench.zoo.assemble import assemble
from costscape.bench.zoo.zoo_costs import Priced, asymmetric, fined, newsvendor, pathways
from costscape.bench.zoo.zoo_tasks import listed, separable
from costscape.data import Dataset, split
from costscape.problems.problem import Problem
from costscape.sets import Box, Budget, Finite, Simplex
from costscape.task import Task

Rows = tuple[np.ndarray, np.ndarray]  # x (n, p) and y (n, d)
DOSES = [[0.25 * k] for k in range(1, 13)]
# watch, biopsy or surgery, where the tumour is malignant and where it is benign
TREATMENTS = ((20.0, 4.0, 1.0), (0.0, 2.0, 6.0))


def _table(load: str) -> Rows:
    from sklearn import datasets  # slow to import, and every run imports the names of problems

    found: Rows = getattr(datasets, load)(return_X_y=True)
    return found


def _diabetes(rng: np.random.Generator) -> Rows:
    """Progression of the disease over its mean."""
    x, y = _table("load_diabetes")
    return x, y[:, None] / y.mean()


def _tumours(rng: np.random.Generator) -> Rows:
    """Malignant or benign, one-hot."""
    x, y = _table("load_breast_cancer")
    return x, np.eye(2)[y]


def _worst_cells(rng: np.random.Generator) -> Rows:
    """From the mean of 10 measurements of cells: 5 of the worst, over their means."""
    x, _ = _table("load_breast_cancer")
    worst = x[:, [20, 21, 23, 25, 26]]
    return x[:, :10], worst / worst.mean(axis=0)


def _digit_demand(rng: np.random.Generator) -> Rows:
    """From 64 pixels: two demands that rise and fall with the digit, and noise."""
    x, y = _table("load_digits")
    mean = np.stack([y, 9 - y], 1) / 3
    return x, (mean + rng.gamma(2.0, 0.2, mean.shape)).clip(0, 4)


def _digit_pair(rng: np.random.Generator) -> Rows:
    """From 64 pixels: which of five pairs of digits, one-hot."""
    x, y = _table("load_digits")
    return x, np.eye(5)[y // 2]


def _make(name: str, seed: int) -> Problem:
    table, task = PARTS[name]
    rng = np.random.default_rng(seed)
    x, y = (torch.from_numpy(v.astype(np.float32)) for v in table(rng))
    order = torch.from_numpy(rng.permutation(len(x)))
    data = split(Dataset(x[order], y[order]), train=0.64, val=0.16)
    source = f"{name}: a table of scikit-learn, shuffled with seed {seed}"
    return assemble(data, task(), source)


PARTS: dict[str, tuple[Callable[[np.random.Generator], Rows], Callable[[], Task]]] = {
    "zoo-diabetes": (_diabetes, lambda: separable(newsvendor(0.9), Box(0.0, 3.0, dim=1))),
    "zoo-diabetes-doses": (
        _diabetes,
        lambda: separable(
            partial(fined, short=4.0, spare=1.0, fine=3.0, slack=0.25), Finite(DOSES), convex=False
        ),
    ),
    "zoo-tumour-pathways": (
        _tumours,
        lambda: listed(partial(pathways, table=TREATMENTS), Finite(np.eye(3))),
    ),
    "zoo-cells-budget": (
        _worst_cells,
        lambda: separable(
            Priced(asymmetric(20.0, 5.0), (1.0, 0.5, 0.2, 0.5, 1.0)),
            Budget(total=5.0, dim=5, upper=3.0),
        ),
    ),
    "zoo-digits-demand": (
        _digit_demand,
        lambda: separable(newsvendor(0.75), Box(0.0, 4.0, dim=2)),
    ),
    "zoo-digits-simplex": (
        _digit_pair,
        lambda: separable(asymmetric(8.0, 2.0), Simplex(dim=5)),
    ),
}
TABLES: dict[str, Callable[[int], Problem]] = {name: partial(_make, name) for name in PARTS}
