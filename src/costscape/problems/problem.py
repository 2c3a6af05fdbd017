"""A named problem: data, a task, and what all methods share on them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from costscape.data import Splits
from costscape.evaluation import Truth
from costscape.models import Builder, Level, mean_level
from costscape.solvers import Auto, Solver
from costscape.task import Task
from costscape.training import Training


@dataclass(frozen=True)
class Problem:
    """Data and a task, and what all methods share on it: the encoder and the training.

    ``encoder`` is the paper's; ``network`` what all methods take but the paper's own recipe, None
    for one by the shape of x. ``points`` is the paper's number of attention points, ``variances``
    those of its proposal for SO-EBM, ``solver`` the one all methods decide with, ``score_every``
    how often they look at the validation part. ``level`` is what a method whose name ends in
    +levels sees windows and outcomes relative to. ``schedule`` trains the networks of all
    methods, ``training`` those of the paper's own recipe. ``reach`` is the time from the first
    moment of a row's x to the end of its y, None where rows have no order in time.
    ``for_origins`` makes the problem from whose rows origins are cut, None for this one: a problem
    may have more history than its paper takes. ``source`` says which data this is.
    """

    data: Splits
    task: Task
    encoder: Builder
    training: Training
    points: int
    variances: tuple[float, ...]
    source: str
    truth: Truth | None = None
    network: Builder | None = None
    solver: Solver = field(default_factory=Auto)
    score_every: int = 1
    level: Level = mean_level
    schedule: Training = field(default_factory=Training)
    reach: np.timedelta64 | None = None
    for_origins: "Callable[[], Problem] | None" = None


def fixed_epochs(epochs: int, lr: float | None = None) -> Training:
    """So many epochs, whatever the number of rows: the schedule of the paper's own recipe."""
    return Training(epochs=epochs, lr=lr, patience=20, smooth=5)


@lru_cache(maxsize=8)
def read_once(load: Callable[..., Any], arguments: tuple[Any, ...], folder: str | None) -> Any:
    """``load(*arguments)``, read once for all seeds; ``folder`` is where the loader looks."""
    return load(*arguments)
