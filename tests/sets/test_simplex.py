import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from costscape.sets import Simplex

# false alarms of all the tests of laws together stay rare: they are about a hundred
LEVEL = 1e-5


def test_samples_are_flat_dirichlet(rng):
    # a_i / total is Beta(1, d - 1); Var[a_i] = (d - 1) / (d^2 (d + 1)), Cov = -1 / (d^2 (d + 1))
    d = 5
    a = Simplex(total=3.0, dim=d).double().sample(20_000, rng()) / 3
    assert torch.allclose(a.sum(-1), torch.ones(20_000, dtype=a.dtype))
    for i in range(d):
        assert stats.kstest(a[:, i].numpy(), stats.beta(1, d - 1).cdf).pvalue > LEVEL
    cov = torch.full((d, d), -1.0).fill_diagonal_(d - 1.0) / (d**2 * (d + 1))
    assert torch.allclose(a.T.cov().float(), cov, atol=1e-3)


@given(arrays(np.float64, (3, 4), elements=st.floats(-10, 10)), st.floats(0.1, 10))
@settings(deadline=None, max_examples=50)
def test_projects_as_the_quadratic_program_does(qp, a, total):
    a = torch.tensor(a)
    exact = qp(a, np.ones((1, 4)), [total], -np.eye(4), np.zeros(4))
    found = Simplex(total=torch.tensor(total, dtype=torch.float64), dim=4).project(a)
    assert torch.allclose(found, exact, atol=1e-9)


def test_single_precision_is_exact_to_its_rounding(rng):
    a = 1000 * torch.randn(200, 30, generator=rng())
    c = Simplex(dim=30)
    p = c.project(a)
    assert p.dtype == torch.float32
    assert torch.allclose(p, c.double().project(a.double()).float(), atol=1e-7)


@pytest.mark.parametrize("far", [1e6, 1e12, 1e30])
def test_points_from_very_far_come_back(far, rng):
    c = Simplex(dim=5)
    p = c.project(torch.cat([far * torch.randn(20, 5, generator=rng()), torch.full((1, 5), far)]))
    assert c.contains(p).all()
    assert torch.allclose(p[-1], torch.full((5,), 0.2))


def test_the_derivative_of_the_projection_is_exact(rng):
    a = torch.randn(6, 4, generator=rng(), dtype=torch.float64).requires_grad_()
    assert torch.autograd.gradcheck(Simplex(dim=4).double().project, (a,))


def test_violation_by_hand():
    a = torch.tensor([[0.25, 0.75], [0.5, 0.75], [-1.0, 1.5], [-0.5, 1.5]])
    assert Simplex(dim=2).violation(a).tolist() == [0.0, 0.25, 1.0, 0.5]


def test_bounds_are_the_least_box():
    lower, upper = Simplex(total=2.0, dim=3).bounds
    assert lower.tolist() == [0, 0, 0]
    assert upper.tolist() == [2, 2, 2]
    assert Simplex(total=2.0, dim=1).bounds[0].tolist() == [2]


def test_repr_tells_total_and_dim():
    assert repr(Simplex(total=2.5, dim=3)) == "Simplex(total=2.5, dim=3)"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Simplex(total=0.0, dim=3), "Simplex needs total to be one positive number.*0.0"),
        (lambda: Simplex(total=float("nan"), dim=3), "one positive number, but got nan"),
        (lambda: Simplex(total=float("inf"), dim=3), "one positive number, but got inf"),
        (lambda: Simplex(total=[[1.0]], dim=3), r"one positive total.*but got shape \(1, 1\)"),
        (lambda: Simplex(dim=0), "Simplex needs dim.*but got 0"),
        (lambda: Simplex(dim=True), "Simplex needs dim.*but got True"),
    ],
)
def test_a_wrong_simplex_says_what_to_do(make, words):
    with pytest.raises(ValueError, match=words):
        make()
