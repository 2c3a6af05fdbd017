"""The smooth choice from a list, against closed forms and finite differences."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck

from costscape import (
    Box,
    ExpectedCost,
    Finite,
    Implicit,
    ProjectedAdam,
    Scenarios,
    SoftChoice,
    Task,
)
from costscape.solvers import argmin_layer


def linear(y, a):
    return -(y * a).sum(-1)


def curved(y, a):
    return (y - a).square().sum(-1)


def listed(k=5, d=3, cost=linear):
    return Task(cost, Finite(torch.randn(k, d, dtype=torch.float64)))


def outcomes(rows=4, count=6, d=3):
    weights = torch.rand(rows, count, dtype=torch.float64)
    return Scenarios(weights / weights.sum(1, keepdim=True), torch.randn(rows, count, d).double())


def choose(task, s, temperature=0.1):
    return SoftChoice(temperature)(ExpectedCost(task, s))


@pytest.fixture(autouse=True)
def _same_numbers_every_run():
    torch.manual_seed(0)


def test_it_minimises_the_cost_less_the_entropy_of_the_choice():
    """p of the list, with t of the spread: g'p + t sum_i p_i log p_i is least at the answer."""
    task, s, t = listed(), outcomes(rows=1), 0.3
    a = choose(task, s, t)[0]
    actions = task.feasible.actions
    g = ExpectedCost(task, s)(actions[None])[0]
    scale = t * g.std(correction=0)
    worth = lambda p: p @ g + scale * torch.special.xlogy(p, p).sum(-1)  # noqa: E731
    logits = torch.zeros(5, dtype=torch.float64, requires_grad=True)
    descent = torch.optim.LBFGS([logits], max_iter=200, line_search_fn="strong_wolfe")

    def closure():
        descent.zero_grad()
        value = worth(logits.softmax(0))
        value.backward()
        return value

    descent.step(closure)
    assert torch.allclose(logits.detach().softmax(0) @ actions, a, atol=1e-5)
    others = torch.distributions.Dirichlet(torch.ones(5).double()).sample((500,))
    best = worth(logits.detach().softmax(0))
    assert all(worth(p) >= best for p in others)


@pytest.mark.parametrize("cost", [linear, curved])
def test_its_derivative_is_that_of_finite_differences(cost):
    """Of weights, values, and where the spread of the costs is held fixed."""
    task, s = listed(cost=cost), outcomes()
    costs = ExpectedCost(task, s)(task.feasible.actions[None])
    temperature = 0.2 * costs.std(1, correction=0, keepdim=True)

    def by_hand(w, y):
        g = torch.einsum("bs,bks->bk", w, cost(y[:, None], task.feasible.actions[None, :, None]))
        return (-g / temperature).softmax(1) @ task.feasible.actions

    w, y = s.weights.requires_grad_(), s.values.requires_grad_()
    assert gradcheck(by_hand, (w, y))
    a, b = choose(task, Scenarios(w, y), 0.2), by_hand(w, y)
    assert torch.allclose(a, b)
    v = torch.randn_like(a)
    for found, expected in zip(
        torch.autograd.grad((a * v).sum(), (w, y)),
        torch.autograd.grad((b * v).sum(), (w, y)),
        strict=True,
    ):
        assert torch.allclose(found, expected)


@given(st.integers(0, 10_000), st.integers(1, 7), st.sampled_from([linear, curved]))
def test_a_cold_choice_is_the_best_action(seed, k, cost):
    torch.manual_seed(seed)
    task, s = listed(k=k, cost=cost), outcomes()
    g = ExpectedCost(task, s)(task.feasible.actions[None])
    assert torch.allclose(choose(task, s, 1e-6), task.feasible.actions[g.argmin(1)])


@given(st.floats(1e-6, 1e6), st.floats(-1e3, 1e3))
def test_the_unit_and_the_zero_of_the_cost_do_not_matter(unit, zero):
    torch.manual_seed(0)
    task, s = listed(), outcomes()
    other = Task(lambda y, a: unit * (linear(y, a) + zero), task.feasible)
    assert torch.allclose(choose(task, s), choose(other, s), atol=1e-6)


def test_actions_of_one_cost_weigh_the_same_and_have_slopes():
    task = Task(lambda y, a: (y * a).sum(-1) * 0, Finite([[0.0, 0.0], [1.0, 3.0]]))
    s = Scenarios(torch.ones(2, 1), torch.zeros(2, 1, 2, requires_grad=True))
    a = choose(task, s)
    assert torch.equal(a.detach(), torch.tensor([[0.5, 1.5]]).expand(2, 2))
    a.sum().backward()
    assert s.values.grad.isfinite().all()


def test_a_list_of_one_action_is_that_action():
    task = Task(linear, Finite([[2.0, 1.0]]))
    s = Scenarios(torch.ones(3, 1), torch.randn(3, 1, 2))
    assert torch.equal(choose(task, s), torch.tensor([[2.0, 1.0]]).expand(3, 2))


def test_other_sets_are_refused_and_have_the_other_layer():
    box, solver = Box(0.0, 1.0, dim=2), ProjectedAdam(steps=3)
    with pytest.raises(TypeError, match=r"SoftChoice needs a Finite list .* is a Box"):
        choose(Task(linear, box), Scenarios(torch.ones(1, 1), torch.zeros(1, 1, 2)))
    assert argmin_layer(box, solver) == Implicit(solver)
    assert argmin_layer(Finite([[0.0]]), solver) == SoftChoice()
    for temperature in (0.0, -1.0, float("nan")):
        with pytest.raises(ValueError, match="temperature"):
            SoftChoice(temperature)
