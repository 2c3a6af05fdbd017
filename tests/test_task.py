"""A task checks what its cost returns, in sentences."""

import copy
import pickle

import jaxtyping
import pytest
import torch
from torch import nn

from costscape import Box, SeparableTask, Task

BOX = Box(0.0, 1.0, dim=3)
Y, A = torch.rand(4, 1, 3), torch.rand(1, 5, 3)


def squares(y, a):
    return (y - a) ** 2


def test_the_cost_of_broadcast_batches_is_the_cost_of_each_pair():
    task = Task(lambda y, a: squares(y, a).sum(-1), BOX)
    table = task.cost(Y, A)
    assert table.shape == (4, 5)
    assert task.cost(Y[2, 0], A[0, 3]).shape == ()
    torch.testing.assert_close(task.cost(Y[2, 0], A[0, 3]), table[2, 3])
    torch.testing.assert_close(task.cost(Y[:, 0], A[0, 3]), table[:, 3])


def test_a_separable_cost_is_the_sum_of_its_terms():
    task = SeparableTask(squares, BOX)
    assert task.terms(Y, A).shape == (4, 5, 3)
    torch.testing.assert_close(task.cost(Y, A), squares(Y, A).sum(-1))


def test_the_axes_of_an_outcome_are_no_batch():
    task = Task(lambda y, a: y.sum((-1, -2)) + a.sum(-1), BOX, y_dims=2)
    assert task.cost(torch.ones(4, 1, 3, 7), torch.zeros(5, 3)).shape == (4, 5)
    summands = SeparableTask(lambda y, a: y.sum(-1) + a, BOX, y_dims=2)
    y, a = torch.rand(4, 1, 3, 7), torch.rand(5, 3)
    assert summands.terms(y, a).shape == (4, 5, 3)
    torch.testing.assert_close(
        summands.cost(y, a), task.cost(y, a) + 2 * a.sum(-1) - a.sum(-1) * 2
    )


WRONG_COSTS = {
    "all summed up": (lambda y, a: squares(y, a).sum(), r"\(\)"),
    "not summed": (squares, r"\(4, 5, 3\)"),
    "the batch summed": (lambda y, a: squares(y, a).sum((0, 2)), r"\(5,\)"),
    "an axis kept": (lambda y, a: squares(y, a).sum(-1, keepdim=True), r"\(4, 5, 1\)"),
    "blind to y": (lambda y, a: a.sum(-1), r"\(1, 5\)"),
}


@pytest.mark.parametrize("name", WRONG_COSTS)
def test_a_cost_of_the_wrong_shape_is_told_which_is_right(name):
    cost, came = WRONG_COSTS[name]
    words = (
        r"^cost\(y, a\) must return shape \(4, 5\) for y \(4, 1, 3\) and a \(1, 5, 3\), but "
        rf"returned {came}. Sum over the last axis only, with .sum\(-1\), and keep the leading "
        r"axes.$"
    )
    with pytest.raises(ValueError, match=words):
        Task(cost, BOX).cost(Y, A)


@pytest.mark.parametrize("J", [3, 5])  # 3 actions of 3 numbers: a sum too many looks like terms
@pytest.mark.parametrize("ask", ["cost", "terms"])
def test_terms_of_the_wrong_shape_are_told_which_is_right(J, ask):
    task = SeparableTask(lambda y, a: squares(y, a).sum(-1), BOX)
    words = (
        rf"^terms\(y, a\) must return shape \(4, {J}, 3\) for y \(4, 1, 3\) and a \(1, {J}, 3\), "
        rf"but returned \(4, {J}\). Return one summand per coordinate of a, and do not sum over "
        r"the last axis.$"
    )
    with pytest.raises(ValueError, match=words):
        getattr(task, ask)(Y, torch.rand(1, J, 3))


def test_a_cost_that_is_no_tensor_is_told_so(monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # it would speak first
    words = r"^{}\(y, a\) must return a torch tensor, but returned {}. Write it with torch"
    with pytest.raises(TypeError, match=words.format("cost", "float")):
        Task(lambda y, a: 3.0, BOX).cost(Y, A)
    with pytest.raises(TypeError, match=words.format("cost", "ndarray")):
        Task(lambda y, a: squares(y, a).sum(-1).numpy(), BOX).cost(Y, A)
    task = SeparableTask(lambda y, a: [0.0, 0.0], BOX)
    for ask in (task.cost, task.terms):
        with pytest.raises(TypeError, match=words.format("terms", "list")):
            ask(Y, A)


def test_what_is_no_function_or_no_set_is_refused(monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(TypeError, match=r"^Task needs a function cost\(y, a\), but got 3.0 of"):
        Task(3.0, BOX)
    with pytest.raises(TypeError, match=r"^SeparableTask needs a function terms\(y, a\), but got"):
        SeparableTask(torch.zeros(3), BOX)
    for kind in (Task, SeparableTask):
        with pytest.raises(TypeError, match=r"such as Box.*, but got .*The order is Task\(cost, "):
            kind(BOX, squares)
        with pytest.raises(TypeError, match=r"but got \(0.0, 1.0\) of type tuple"):
            kind(squares, (0.0, 1.0))


class Priced(nn.Module):
    """A cost that holds tensors."""

    def __init__(self):
        super().__init__()
        self.register_buffer("price", torch.tensor([1.0, 2.0, 3.0]))

    def forward(self, y, a):
        return self.price * (y - a) ** 2


@pytest.mark.parametrize("twin", [copy.deepcopy, lambda t: pickle.loads(pickle.dumps(t))])
def test_a_copied_task_pays_with_its_own_copy_of_the_terms(twin):
    task = SeparableTask(Priced(), BOX)
    other = twin(task)
    before = task.cost(Y, A)
    assert torch.equal(other.cost(Y, A), before)
    other.f_terms.price.mul_(10)
    assert torch.equal(task.cost(Y, A), before)
    torch.testing.assert_close(other.cost(Y, A), 10 * before)
    torch.testing.assert_close(other.cost(Y, A), other.terms(Y, A).sum(-1))


@pytest.mark.parametrize("kind", [Task, SeparableTask])
def test_the_tensors_of_a_cost_move_with_the_task(kind):
    cost = Priced() if kind is SeparableTask else nn.Sequential(Priced())[0]
    task = kind(cost, Box(0.0, 1.0, dim=3)).double()
    assert {name.split(".")[-1] for name in task.state_dict()} == {"price", "lower", "upper"}
    assert all(v.dtype == torch.float64 for v in task.state_dict().values())
    assert cost.price.dtype == torch.float64


def test_a_task_makes_no_promise_that_was_not_made():
    task = Task(lambda y, a: squares(y, a).sum(-1), BOX)
    assert (task.convex, task.hindsight, task.cvxpy, task.y_dims) == (False, None, None, 1)
    promised = SeparableTask(squares, BOX, convex=True, hindsight=torch.clone, y_dims=2)
    assert (promised.convex, promised.hindsight, promised.y_dims) == (True, torch.clone, 2)
