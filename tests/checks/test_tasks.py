"""check_task passes what keeps its promises, and names the promise that is broken."""

import pytest
import torch

from costscape import Box, Finite, SeparableTask, Task
from costscape.checks import check_task
from costscape.problems import inventory, synthetic_convex, synthetic_nonconvex, wind_bidding

BOX = Box(0.0, 2.0, dim=2)
Y = 2 * torch.rand(5, 2, generator=torch.Generator().manual_seed(0))


def squares(y, a):
    return ((y - a) ** 2).sum(-1)


@pytest.mark.parametrize(
    "task",
    [
        inventory(days=2),
        synthetic_convex(),
        synthetic_nonconvex(),
        wind_bidding(hours=2),
        Task(squares, Box(0.0, 2.0, dim=2), convex=True),
        Task(squares, Finite([[0.0, 1.0], [1.0, 1.0]])),
    ],
)
def test_our_own_tasks_keep_their_promises(task):
    check_task(task, Y)
    check_task(task.double(), Y)


BROKEN = {
    "not finite on": lambda: Task(lambda y, a: (y - a).log().sum(-1), BOX),
    "slope that is not finite": lambda: Task(lambda y, a: (0 * y + a - a).sqrt().sum(-1), BOX),
    "of a batch and of each pair differ": lambda: Task(
        lambda y, a: squares(y, a) - squares(y, a).mean(), BOX
    ),
    "says convex=True": lambda: Task(lambda y, a: -squares(y, a), BOX, convex=True),
    "changing a_0 changes another summand": lambda: SeparableTask(
        lambda y, a: (y - a) ** 2 + a.flip(-1), BOX
    ),
    "hindsight.. gives actions outside": lambda: Task(squares, BOX, hindsight=lambda y: y + 9),
    "cheaper than hindsight": lambda: Task(squares, BOX, hindsight=torch.zeros_like),
    "written for cvxpy differs": lambda: Task(
        squares, BOX, cvxpy=lambda y, a: 2 * ((y - a) ** 2).sum(1)
    ),
}


@pytest.mark.parametrize("sentence", BROKEN)
def test_a_broken_promise_is_named(sentence):
    with pytest.raises(AssertionError, match=sentence):
        check_task(BROKEN[sentence](), Y)
