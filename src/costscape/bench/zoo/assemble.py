"""What all problems of the zoo share: the encoder by the shape of x, and the training."""

from dataclasses import replace
from functools import partial

from costscape.data import Splits
from costscape.models import LSTM, MLP, Builder
from costscape.problems.problem import Problem
from costscape.sets import Box, Finite
from costscape.task import SeparableTask, Task
from costscape.training import Training

TESTED = 200  # test rows, where a decision takes an iterative solver


def assemble(data: Splits, task: Task, source: str) -> Problem:
    """The problem of these data and this task. Rows get an MLP, windows (T, channels) an LSTM.

    Where every decision takes an iterative solver, evenly spread test rows are tested on.
    """
    if not is_exact(task):
        data = replace(data, test=data.test[:: -(-len(data.test) // TESTED)])
    shape = data.train.x.shape[1:]
    encoder: Builder = partial(LSTM, shape[1]) if len(shape) == 2 else partial(MLP, shape[0])
    return Problem(
        data=data,
        task=task,
        encoder=encoder,
        training=Training(),
        points=100,
        variances=(0.02, 0.05, 0.1),
        source=source,
    )


def is_exact(task: Task) -> bool:
    """Whether decisions are quick: a sum over the coordinates of a box, or a list of actions."""
    on_box = isinstance(task, SeparableTask) and isinstance(task.feasible, Box)
    return on_box or isinstance(task.feasible, Finite)
