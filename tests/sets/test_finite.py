import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from costscape.sets import Finite, finite

# false alarms of all the tests of laws together stay rare: they are about a hundred
LEVEL = 1e-5


def test_samples_are_uniform_over_the_rows(rng):
    a = Finite([[0.0], [1.0], [2.0], [2.0]]).sample(8000, rng())[:, 0]
    counts = [int((a == v).sum()) for v in range(3)]
    assert stats.chisquare(counts, [2000, 2000, 4000]).pvalue > LEVEL


@given(st.integers(0, 2**31), st.integers(1, 20), st.integers(1, 4))
@settings(deadline=None, max_examples=30)
def test_no_row_is_nearer_than_the_projection(seed, K, d):
    rng = torch.Generator().manual_seed(seed)
    c = Finite(torch.randn(K, d, generator=rng))
    a = torch.randn(7, d, generator=rng)
    p = c.project(a)
    distance = torch.stack([(a - row).square().sum(-1).sqrt() for row in c.actions])
    assert torch.equal((a - p).square().sum(-1).sqrt(), distance.amin(0))
    assert torch.equal(c.violation(a), distance.amin(0))
    assert all(any(torch.equal(q, row) for row in c.actions) for q in p)


def test_close_rows_far_from_zero_are_told_apart():
    c = Finite(torch.tensor([[1e8 + 0.001 * i, 0.0] for i in range(50)], dtype=torch.float64))
    assert torch.equal(c.project(c.actions), c.actions)


def test_a_long_list_is_compared_in_parts(monkeypatch, rng):
    c = Finite(torch.randn(50, 3, generator=rng()))
    a = torch.randn(4, 5, 3, generator=rng(1))
    whole = c.project(a)
    monkeypatch.setattr(finite, "BLOCK", 120)
    assert torch.equal(c.project(a), whole)


def test_violation_by_hand():
    c = Finite([[0.0, 0.0], [3.0, 0.0]])
    assert c.violation(torch.tensor([[3.0, 4.0], [0.0, 0.0], [1.0, 0.0]])).tolist() == [4, 0, 1]


def test_bounds_are_the_least_box():
    lower, upper = Finite([[0, 5], [1, 2], [-1, 3]]).bounds
    assert lower.tolist() == [-1, 2]
    assert upper.tolist() == [1, 5]


def test_is_not_described_to_cvxpy():
    with pytest.raises(TypeError, match="Finite list of 2 actions is not convex"):
        Finite([[0.0], [1.0]]).describe(None)


def test_repr_tells_how_many_actions():
    assert repr(Finite([[0.0, 1.0]])) == "Finite(actions=1, dim=2)"


@pytest.mark.parametrize(
    ("actions", "words"),
    [
        ([], r"K >= 1 actions.*got shape \(0,\)"),
        ([[], []], r"got shape \(2, 0\)"),
        ([1.0, 2.0], r"got shape \(2,\)"),
        ([[0.0, float("inf")]], r"actions\[0, 1\] is inf"),
    ],
)
def test_a_wrong_list_says_what_to_do(actions, words):
    with pytest.raises(ValueError, match=words):
        Finite(actions)


def test_a_ragged_list_says_what_to_do():
    with pytest.raises(TypeError, match="actions to be a number, a list of numbers"):
        Finite([[0.0], [1.0, 2.0]])
