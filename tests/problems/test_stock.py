import pickle

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from costscape.problems import inventory


def test_price_of_one_short_and_one_spare():
    # one short: 20 * 1 + 1^2; one spare: 5 * 1 + 1^2
    cost = inventory(days=2).cost(torch.tensor([2.0, 1.0]), torch.tensor([1.0, 2.0]))
    assert cost == (20 + 1) + (5 + 1)


def test_terms_are_the_days_and_batches_broadcast():
    task = inventory(days=3)
    y, a = torch.rand(4, 1, 3), torch.rand(1, 5, 3)
    assert task.terms(y, a).shape == (4, 5, 3)
    torch.testing.assert_close(task.terms(y, a).sum(-1), task.cost(y, a))
    torch.testing.assert_close(task.cost(y, a)[2, 3], task.cost(y[2, 0], a[0, 3]))


def test_defaults_are_the_papers():
    task = inventory()
    lower, upper = task.feasible.bounds
    assert lower.tolist() == [0.0] * 7
    assert upper.tolist() == [3.0] * 7
    assert task.convex


@given(y=st.floats(-1, 5), under=st.floats(0, 30), over=st.floats(0, 30), cap=st.floats(0.5, 4))
@settings(deadline=None, max_examples=50)
def test_hindsight_is_not_beaten_by_any_point_of_a_fine_grid(y, under, over, cap):
    task = inventory(days=1, under=under, over=over, cap=cap)
    y = torch.tensor([y], dtype=torch.float64)
    a = task.hindsight(y)
    assert task.feasible.contains(a)
    cap = float(task.feasible.upper[0])  # rounded to single precision
    grid = torch.linspace(0, cap, 2001, dtype=torch.float64).unsqueeze(-1)
    assert task.cost(y, a) <= task.cost(y, grid).min() + 1e-9


def test_the_cost_is_convex_along_every_segment():
    task = inventory(days=2)
    rng = torch.Generator().manual_seed(0)
    y, a, b = (4 * torch.rand(500, 2, generator=rng, dtype=torch.float64) for _ in range(3))
    middle = task.cost(y, (a + b) / 2)
    assert (middle <= (task.cost(y, a) + task.cost(y, b)) / 2 + 1e-12).all()


def test_the_cvxpy_form_costs_the_same():
    cp = pytest.importorskip("cvxpy")
    task = inventory(days=3, under=7.0, over=2.0)
    rng = np.random.default_rng(0)
    y, a = rng.uniform(0, 3, (6, 3)), cp.Variable((1, 3))
    a.value = rng.uniform(0, 3, (1, 3))
    expression = task.cvxpy(y, a)
    assert expression.shape == (6,)
    assert expression.is_convex()
    expected = task.cost(torch.from_numpy(y), torch.from_numpy(a.value))
    np.testing.assert_allclose(expression.value, expected, rtol=1e-12)


def test_a_pickled_task_costs_the_same():
    task = inventory(days=2, under=3.0)
    copy = pickle.loads(pickle.dumps(task))
    y, a = torch.rand(5, 2), torch.rand(5, 2)
    assert torch.equal(copy.cost(y, a), task.cost(y, a))
    assert torch.equal(copy.hindsight(y), task.hindsight(y))


@pytest.mark.parametrize("price", [-1.0, float("nan"), float("inf")])
def test_a_price_that_is_no_price_is_refused(price):
    with pytest.raises(
        ValueError, match=f"inventory needs finite prices >= 0, but over is {price}"
    ):
        inventory(over=price)


def test_hindsight_is_within_the_bounds_as_rounded_to_single_precision():
    task = inventory(cap=3.3).double()
    a = task.hindsight(torch.full((7,), 5.0, dtype=torch.float64))
    assert task.feasible.violation(a) == 0
