"""A named problem: data, a task, and what all methods share on them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from costscape.data import Splits
from costscape.evaluation import Truth
from costscape.models import Base, Builder, Level, mean_level
from costscape.solvers import Solver
from costscape.tasks import Task
from costscape.train import Training


@dataclass(frozen=True)
class Problem:
    """Data and a task, and what all methods share on it: the encoder and the training.

    ``encoder`` is the paper's; ``network`` what all methods take but the paper's own recipe, None
    for one by the shape of x. ``points`` is the paper's number of attention points, ``variances``
    those of its proposal for SO-EBM, ``df2`` what DF2 takes in place of its defaults where f or
    an epoch is too costly for them, ``solver`` the one all methods decide with, ``score_every``
    how often they look at the validation part. ``level`` is what a method whose name ends in
    +levels sees windows and outcomes relative to. ``source`` says which data this is.
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
    df2: Mapping[str, Any] = field(default_factory=dict)
    solver: Solver | Literal["auto"] = "auto"
    score_every: int = 1
    level: Level | Base = mean_level
