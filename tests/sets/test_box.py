import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from costscape.sets import Box

# false alarms of all the tests of laws together stay rare: they are about a hundred
LEVEL = 1e-5


def test_numbers_lists_arrays_and_tensors_make_the_same_box():
    wanted = torch.tensor([0.0, 0.0]), torch.tensor([1.0, 2.0])
    for lower in (0, 0.0, [0.0, 0.0], np.zeros(2), torch.zeros(2), np.float32(0), torch.tensor(0)):
        for upper in ([1, 2], (1.0, 2.0), np.array([2.0, 1.0])[::-1], torch.tensor([1.0, 2.0])):
            box = Box(lower, upper)
            assert box.dim == 2
            assert all(torch.equal(a, b) for a, b in zip(box.bounds, wanted, strict=True))
    assert torch.equal(Box(0.0, 3.0, dim=4).upper, torch.full((4,), 3.0))


def test_tensors_decide_the_dtype_and_numbers_follow():
    assert Box(0.1, 1.0, dim=1).lower.dtype == torch.float32
    box = Box(0.1, torch.ones(1, dtype=torch.float64))
    assert box.lower.dtype == box.upper.dtype == torch.float64
    assert box.lower.item() == 0.1  # not first rounded to float32
    assert Box(torch.tensor(0), torch.tensor([1, 2])).upper.dtype == torch.float32


def test_keeps_no_reference_to_what_it_was_given():
    upper = torch.ones(2)
    box = Box(0.0, upper)
    upper[0] = 7
    assert box.upper[0] == 1


def test_samples_are_uniform(rng):
    a = Box([-1.0, 0.0, 5.0], [1.0, 10.0, 5.0]).sample(20_000, rng())
    assert stats.kstest(a[:, 0].numpy(), stats.uniform(-1, 2).cdf).pvalue > LEVEL
    assert stats.kstest(a[:, 1].numpy(), stats.uniform(0, 10).cdf).pvalue > LEVEL
    assert (a[:, 2] == 5).all()
    assert abs(np.corrcoef(a[:, 0], a[:, 1])[0, 1]) < 4 / 20_000**0.5


@given(st.integers(0, 2**31), st.integers(1, 6))
@settings(deadline=None, max_examples=30)
def test_projects_as_the_quadratic_program_does(qp, seed, d):
    rng = torch.Generator().manual_seed(seed)
    low = torch.randn(d, generator=rng, dtype=torch.float64)
    high = low + torch.rand(d, generator=rng, dtype=torch.float64)
    a = 3 * torch.randn(5, d, generator=rng, dtype=torch.float64)
    G, h = np.vstack([np.eye(d), -np.eye(d)]), np.append(high, -low)
    assert torch.allclose(Box(low, high).project(a), qp(a, [], [], G, h), atol=1e-12)


def test_violation_by_hand():
    a = torch.tensor([[0.5, 0.5], [1.25, 0.5], [-2.0, 1.5]])
    assert Box(0.0, 1.0, dim=2).violation(a).tolist() == [0.0, 0.25, 2.0]


def test_repr_tells_bounds_and_dim():
    assert repr(Box(0.0, [1.0, 2.0])) == "Box(lower=0, upper=1..2, dim=2)"


@pytest.mark.parametrize(
    ("make", "kind", "words"),
    [
        (lambda: Box(0.0, 3.0), ValueError, r"or numbers and dim, but got lower of shape \(\)"),
        (lambda: Box([0.0, 2.0], [1.0, 1.0]), ValueError, "coordinate 1 has lower 2 > upper 1"),
        (
            lambda: Box([0.0, 0.0], [1.0, 1.0, 1.0]),
            ValueError,
            r"of shape \(2,\) and upper of shape \(3,\)",
        ),
        (lambda: Box([0.0, 0.0], 1.0, dim=3), ValueError, r"3 numbers, but got shape \(2,\)"),
        (lambda: Box([[[0.0]]], 1.0), ValueError, r"lower of shape \(1, 1, 1\)"),
        (lambda: Box(0.0, [1.0, float("nan")]), ValueError, r"upper\[1\] is nan"),
        (lambda: Box(float("-inf"), 1.0, dim=2), ValueError, r"lower\[0\] is -inf \(2 such\)"),
        (lambda: Box(0.0, 1.0, dim=0), ValueError, "at least 1, but got 0"),
        (lambda: Box([], []), ValueError, "at least 1, but got 0"),
        (lambda: Box(0.0, ["a"]), TypeError, r"upper to be a number.*got \['a'\] of type list"),
    ],
)
def test_a_wrong_box_says_what_to_do(make, kind, words):
    with pytest.raises(kind, match=words):
        make()


def test_a_box_between_computed_bounds_is_the_same_box():
    lower, upper = torch.tensor([0.0, -1.0]), torch.tensor([1.0, 2.0])
    box, other = Box.between(lower, upper), Box(lower, upper)
    assert box.dim == other.dim == 2
    assert repr(box) == repr(other)
    assert all(torch.equal(box.state_dict()[k], v) for k, v in other.state_dict().items())
