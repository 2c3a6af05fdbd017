"""What all problems of the zoo share: the encoder by the shape of x, and the training."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from costscape.bench.zoo.decisions import Decision
from costscape.data import Splits
from costscape.evaluation import Truth
from costscape.models import LSTM, MLP, Builder, deep_by_shape
from costscape.problems.problem import Problem
from costscape.sets import Box, Finite
from costscape.task import SeparableTask, Task
from costscape.training import Training

POINTS = 100
TESTED = 200  # test rows, where a decision takes an iterative solver
RATE = 3e-3  # of every opponent, for its short schedule; no other rate was tried
VARIANCES = (0.02, 0.05, 0.1)
Parts = tuple[Callable[[], Splits], Callable[[], Decision]]  # makers of the data and the decision


def assemble(data: Splits, task: Task, source: str, truth: Truth | None = None) -> Problem:
    """The problem of these data and this task. Rows get an MLP, windows (T, channels) an LSTM.

    Where every decision takes an iterative solver, evenly spread test rows are tested on.
    """
    if not is_exact(task):
        test = data.test[:: -(-len(data.test) // TESTED)]
        data = replace(data, test=test)
    shape = data.train.x.shape[1:]
    encoder: Builder = partial(LSTM, shape[1]) if len(shape) == 2 else partial(MLP, shape[0])
    return Problem(
        data=data,
        task=task,
        encoder=encoder,
        training=Training(),
        points=POINTS,
        variances=VARIANCES,
        source=source,
        truth=truth,
        network=deep_by_shape(tuple(shape)),
        schedule=Training(lr=RATE),
    )


def is_exact(task: Task) -> bool:
    """Whether decisions are quick: a sum over the coordinates of a box, or a list of actions."""
    on_box = isinstance(task, SeparableTask) and isinstance(task.feasible, Box)
    return on_box or isinstance(task.feasible, Finite)


def from_parts(name: str, source: str, parts: Parts, seed: int) -> Problem:
    """A problem on real data, which are the same for every seed."""
    data, decision = parts
    return assemble(data(), decision().task, f"{name}: {source}, embedded, for seed {seed}")
