"""The mean of f under a normal law, in closed form, against quadrature."""

from itertools import pairwise

import pytest
import torch
from scipy.integrate import quad
from scipy.stats import norm

from costscape import Box, Task
from costscape.problems import inventory, synthetic_convex, synthetic_nonconvex, wind_bidding

TASKS = {
    "convex": synthetic_convex(1),
    "nonconvex": synthetic_nonconvex(1),
    "inventory": inventory(1),
    "wind": wind_bidding(1),
}


def one(value):
    return torch.tensor([value], dtype=torch.float64)


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize(("m", "s", "a"), [(0.3, 0.2, 0.4), (1.0, 0.7, 0.1), (-0.5, 0.05, 0.9)])
def test_the_closed_form_is_the_integral_of_f_against_the_density(name, m, s, a):
    task = TASKS[name]

    def integrand(y):
        return float(task.cost(one(y), one(a))) * norm.pdf(y, m, s)

    pieces = [m - 12 * s, *sorted([a - 0.15, a]), m + 12 * s]
    pieces = sorted(min(max(p, pieces[0]), pieces[-1]) for p in pieces)
    expected = sum(quad(integrand, l, r, epsabs=1e-11)[0] for l, r in pairwise(pieces))
    assert float(task.normal(one(m), one(s), one(a)).sum()) == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("name", TASKS)
def test_a_narrow_law_costs_what_its_mean_costs(name):
    task = TASKS[name]
    m, a = torch.rand(20, 1, dtype=torch.float64), 1 + torch.rand(20, 1, dtype=torch.float64)
    s = torch.full_like(m, 1e-9)
    assert torch.allclose(task.normal(m, s, a).sum(-1), task.cost(m, a), rtol=1e-6)


def test_laws_are_outcomes_of_another_task_on_the_same_set():
    task = inventory(2)
    laws = task.of_normals()
    m, s, a = torch.rand(5, 1, 2), torch.rand(5, 1, 2), torch.rand(1, 3, 2)
    assert laws.feasible is task.feasible
    assert laws.convex
    assert torch.equal(laws.terms(torch.cat([m, s], -1), a), task.normal(m, s, a))


def test_a_task_without_a_closed_form_says_so():
    task = Task(lambda y, a: (y - a).square().sum(-1), Box(0.0, 1.0, dim=1))
    with pytest.raises(TypeError, match=r"made without normal=. Pass draws=1000"):
        task.of_normals()


def test_a_plain_task_takes_the_mean_of_its_sum():
    def cost(y, a):
        return (y - a).square().sum(-1)

    def normal(m, s, a):
        return ((m - a).square() + s.square()).sum(-1)

    laws = Task(cost, Box(0.0, 1.0, dim=2), normal=normal).of_normals()
    y = torch.tensor([[0.5, 0.25, 0.1, 0.2]])
    a = torch.tensor([[0.0, 0.25]])
    assert laws.cost(y, a).item() == pytest.approx(0.25 + 0.01 + 0.04)
