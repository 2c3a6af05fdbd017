from fractions import Fraction
from math import comb, factorial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from costscape.sets import Box, Budget

# false alarms of all the tests of laws together stay rare: they are about a hundred
LEVEL = 1e-5


def people(d=47):
    """Caps like 10 % of the population of 47 prefectures, 12.6 million in all."""
    caps = np.exp(np.random.default_rng(0).normal(0, 0.8, d))
    return 12.6e6 * caps / caps.sum()


def test_without_caps_samples_are_uniform(rng):
    # the first d of a flat Dirichlet in d + 1: a_i / total is Beta(1, d), E[sum] = d / (d + 1)
    d = 6
    a = Budget(total=4.0, dim=d).sample(20_000, rng()) / 4
    assert abs(a.sum(-1).mean() - d / (d + 1)) < 1e-3 * 3
    assert stats.kstest(a.sum(-1).numpy(), stats.beta(d, 1).cdf).pvalue > LEVEL
    for i in range(d):
        assert stats.kstest(a[:, i].numpy(), stats.beta(1, d).cdf).pvalue > LEVEL


@pytest.mark.parametrize("caps", [[0.4, 0.5, 0.9], [0.9, 0.9, 0.9], [0.2, 0.1, 1.0]])
def test_with_caps_samples_are_those_that_rejection_leaves(caps, rng):
    a = Budget(total=1.0, dim=3, upper=caps).sample(20_000, rng())
    box = Box(0.0, caps).sample(400_000, rng(1))
    exact = box[box.sum(-1) <= 1][:40_000]
    for v in (*np.eye(3), [1, 1, 1], [1, -1, 0.5]):
        v = torch.tensor(v, dtype=torch.float32)
        assert stats.ks_2samp((a @ v).numpy(), (exact @ v).numpy()).pvalue > LEVEL


@pytest.mark.parametrize("share", [0.15, 0.3, 0.45, 0.6])
def test_in_47_dimensions_the_sum_has_the_law_of_irwin_and_hall(share, rng):
    # 47 uniform numbers given that their sum is at most T: P(sum <= s) = F(s) / F(T)
    d, n = 47, 4000
    T = share * d

    def F(s):  # exact: in floating point the terms cancel
        s = Fraction(s)
        terms = ((-1) ** k * comb(d, k) * (s - k) ** d for k in range(int(s) + 1))
        return sum(terms) / factorial(d)

    sums = Budget(total=T, dim=d, upper=1.0).double().sample(n, rng()).sum(-1).sort().values
    cdf = np.array([float(F(float(s)) / F(T)) for s in sums[::40]])
    assert np.abs(cdf - np.arange(0, n, 40) / n).max() < stats.kstwobign.isf(LEVEL) / n**0.5


@pytest.mark.parametrize("total", [1e5, 1e6, 5e6, 9e6, 1e7, 2e7])
def test_vaccine_sized_budgets_are_sampled_at_any_total(total, rng):
    c = Budget(total=total, dim=47, upper=people())
    a = c.sample(500, rng())
    assert a.shape == (500, 47)
    assert c.contains(a).all()
    if total >= people().sum():  # the total does not bind: a uniform box
        assert torch.allclose(a.mean(0), c.upper / 2, rtol=0.15)


def test_the_tilt_makes_the_mean_sum_the_total():
    caps = people()
    for total in (1e5, 1e6, 5e6):
        t = float(Budget(total=total, dim=47, upper=caps).tilt) / total
        cut = np.minimum(caps, total)
        assert abs(stats.truncexpon(t * cut, scale=1 / t).mean().sum() / total - 1) < 1e-5
    assert Budget(total=7e6, dim=47, upper=caps).tilt == 0  # the box has a mean sum of 6.3e6


def test_a_cap_of_zero_and_a_cap_of_infinity_mean_what_they_say(rng):
    c = Budget(total=2.0, dim=3, upper=[0.0, float("inf"), 1.0])
    a = c.sample(1000, rng())
    assert (a[:, 0] == 0).all()
    assert a[:, 1].max() > 1.5
    assert a[:, 2].max() <= 1
    assert c.bounds[1].tolist() == [0, 2, 1]


@given(
    arrays(np.float64, (3, 4), elements=st.floats(-10, 10)),
    arrays(np.float64, 4, elements=st.floats(0.01, 5)),
    st.floats(0.1, 10),
)
@settings(deadline=None, max_examples=50)
def test_projects_as_the_quadratic_program_does(qp, a, caps, total):
    a = torch.tensor(a)
    G = np.vstack([-np.eye(4), np.eye(4), np.ones((1, 4))])
    exact = qp(a, [], [], G, np.concatenate([np.zeros(4), caps, [total]]))
    c = Budget(total=torch.tensor(total, dtype=torch.float64), dim=4, upper=caps)
    assert torch.allclose(c.project(a), exact, atol=1e-9)


def test_without_caps_it_projects_as_the_quadratic_program_does(qp, rng):
    a = 2 * torch.randn(50, 5, generator=rng(), dtype=torch.float64)
    exact = qp(a, [], [], np.vstack([-np.eye(5), np.ones((1, 5))]), np.append(np.zeros(5), 1.0))
    assert torch.allclose(Budget(total=1.0, dim=5).double().project(a), exact, atol=1e-12)


@pytest.mark.parametrize("far", [1e6, 1e12, 1e30])
def test_points_from_very_far_come_back(far, rng):
    c = Budget(total=3.0, dim=6, upper=[1.0, 1.0, 1.0, 0.5, 2.0, 0.0])
    p = c.project(torch.cat([far * torch.randn(50, 6, generator=rng()), torch.full((1, 6), far)]))
    assert c.contains(p).all()
    # the total falls evenly, until a cap is met: 4 t + 0.5 = 3
    assert torch.allclose(p[-1], torch.tensor([0.625, 0.625, 0.625, 0.5, 0.625, 0.0]))


def test_the_derivative_of_the_projection_is_exact(rng):
    a = 2 * torch.randn(10, 4, generator=rng(), dtype=torch.float64).requires_grad_()
    c = Budget(total=1.5, dim=4, upper=[0.4, 1.0, 1.0, 0.8]).double()
    assert torch.autograd.gradcheck(c.project, (a,))


def test_violation_by_hand():
    c = Budget(total=2.0, dim=2, upper=[1.5, 1.0])
    a = torch.tensor([[1.0, 1.0], [1.5, 0.75], [1.75, 0.0], [-3.0, 1.0], [0.0, 1.5]])
    assert c.violation(a).tolist() == [0.0, 0.25, 0.25, 3.0, 0.5]


def test_repr_tells_the_caps_where_there_are_some():
    assert repr(Budget(total=5e6, dim=47)) == "Budget(total=5e+06, dim=47)"
    assert repr(Budget(total=5.0, dim=2, upper=[1, 2])) == "Budget(total=5, upper=1..2, dim=2)"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Budget(total=-1.0, dim=3), "Budget needs total to be one positive number.*-1.0"),
        (lambda: Budget(total=1.0, dim=0), "Budget needs dim"),
        (lambda: Budget(total=1.0, dim=2, upper=[1.0, -2.0]), r"upper\[1\] is -2 \(1 such\)"),
        (lambda: Budget(total=1.0, dim=2, upper=float("nan")), r"upper\[0\] is nan \(2 such\)"),
        (lambda: Budget(total=1.0, dim=2, upper=[1.0] * 3), r"2 numbers, but got shape \(3,\)"),
    ],
)
def test_a_wrong_budget_says_what_to_do(make, words):
    with pytest.raises(ValueError, match=words):
        make()
