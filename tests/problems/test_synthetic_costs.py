import pickle

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, optimize, stats

from costscape.problems import (
    MixtureTruth,
    synthetic_convex,
    synthetic_nonconvex,
    three_gaussians,
    wind_bidding,
)

D = torch.float64
TASKS = [synthetic_convex, synthetic_nonconvex]
both = pytest.mark.parametrize("make", TASKS)


def by_the_book(make, y, a):
    """The two costs of one coordinate, as they are defined."""
    short, spare = np.maximum(y - a, 0), np.maximum(a - y, 0)
    if make is synthetic_convex:
        return 5 * short + 20 * spare + 0.5 * short**2 + 0.2 * spare**2
    return 10 * short**2 + 2 * spare**2 + 4 * a**3


def limit(make):
    return 1.0 if make is synthetic_convex else 2.0


def integrated(make, means, a):
    """E[f] of one coordinate by adaptive quadrature."""

    def integrand(y):
        weighted = np.array([0.3, 0.3, 0.4]) * stats.norm.pdf(y, means, 0.1**0.5)
        return by_the_book(make, y, a) * weighted.sum()

    ends, inner = (-8.0, 8.0), sorted({a, *means.tolist()})
    return integrate.quad(integrand, *ends, points=inner, epsabs=1e-11, epsrel=1e-11, limit=200)[0]


@both
def test_the_cost_is_the_definition(make):
    rng = torch.Generator().manual_seed(0)
    y, a = (4 * torch.rand(200, 2, generator=rng, dtype=D) - 2 for _ in range(2))
    expected = by_the_book(make, y.numpy(), a.numpy())
    np.testing.assert_allclose(make().terms(y, a), expected, rtol=1e-12)
    np.testing.assert_allclose(make().cost(y, a), expected.sum(-1), rtol=1e-12, atol=1e-12)


@both
def test_the_feasible_set_and_its_dimension(make):
    lower, upper = make(dim=3).feasible.bounds
    assert lower.tolist() == [-limit(make)] * 3
    assert upper.tolist() == [limit(make)] * 3


def test_only_the_convex_one_says_it_is():
    assert synthetic_convex().convex
    assert not synthetic_nonconvex().convex
    # 4 a^3 wins over the squares at the left end: the middle of a segment costs more than its ends
    task, y = synthetic_nonconvex(1), torch.tensor([-1.9], dtype=D)
    cost = [float(task.cost(y, torch.tensor([a], dtype=D))) for a in (-2.0, -1.7, -1.4)]
    assert cost[1] > (cost[0] + cost[2]) / 2


@both
@given(y=st.floats(-6, 6))
@settings(deadline=None, max_examples=80)
def test_hindsight_is_not_beaten_by_any_point_of_a_fine_grid(make, y):
    task = make(dim=1)
    a = task.hindsight(torch.tensor([y], dtype=D))
    assert task.feasible.contains(a)
    grid = np.linspace(-limit(make), limit(make), 20001)
    assert by_the_book(make, y, a.item()) <= by_the_book(make, y, grid).min() + 1e-12


@both
def test_hindsight_agrees_with_scipy_to_the_last_digits(make):
    task, end = make(dim=1), limit(make)
    for y in np.linspace(-3, 3, 25):
        grid = np.linspace(-end, end, 401)
        start = grid[by_the_book(make, y, grid).argmin()]
        box = (max(start - 0.02, -end), min(start + 0.02, end))
        found = optimize.minimize_scalar(
            lambda a, y=y: by_the_book(make, y, a), bounds=box, options={"xatol": 1e-12}
        )
        best = by_the_book(make, y, task.hindsight(torch.tensor([y], dtype=D)).item())
        assert best == pytest.approx(
            min(found.fun, *by_the_book(make, y, np.array(box))), abs=1e-7
        )


@both
def test_hindsight_keeps_shape_and_precision(make):
    y = 3 * torch.randn(4, 5, 2, generator=torch.Generator().manual_seed(0))
    a = make().hindsight(y)
    assert a.shape == y.shape
    assert a.dtype == torch.float32
    torch.testing.assert_close(a, make().hindsight(y.double()).float(), atol=1e-5, rtol=1e-5)


def test_the_cvxpy_form_of_the_convex_one_costs_the_same():
    cp = pytest.importorskip("cvxpy")
    rng = np.random.default_rng(0)
    y, a = rng.uniform(-2, 2, (6, 2)), cp.Variable((1, 2))
    a.value = rng.uniform(-1, 1, (1, 2))
    expression = synthetic_convex().cvxpy(y, a)
    assert expression.shape == (6,)
    assert expression.is_convex()
    expected = synthetic_convex().cost(torch.from_numpy(y), torch.from_numpy(a.value))
    np.testing.assert_allclose(expression.value, expected, rtol=1e-12)
    assert synthetic_nonconvex().cvxpy is None


@both
def test_a_pickled_task_costs_the_same(make):
    copy = pickle.loads(pickle.dumps(make()))
    y, a = torch.rand(5, 2), torch.rand(5, 2)
    assert torch.equal(copy.cost(y, a), make().cost(y, a))
    assert torch.equal(copy.hindsight(y), make().hindsight(y))


@pytest.fixture(params=TASKS)
def truth(request):
    data = three_gaussians(n=200, seed=1)
    return request.param, data, MixtureTruth(request.param(), data.maps)


def test_the_expected_cost_is_the_integral(truth):
    make, data, law = truth
    x = data.splits.test.x[:6]
    means = torch.einsum("cij,nj->nic", data.maps.double(), x.double()).numpy()
    rng = torch.Generator().manual_seed(0)
    a = limit(make) * (2 * torch.rand(6, 2, generator=rng, dtype=D) - 1)
    expected = [
        sum(integrated(make, means[n, i], float(a[n, i])) for i in range(2)) for n in range(6)
    ]
    np.testing.assert_allclose(law.expected_cost(x, a), expected, rtol=1e-9, atol=1e-9)


def test_the_expected_cost_is_the_mean_over_many_draws(truth):
    make, data, law = truth
    rng = torch.Generator().manual_seed(0)
    x = torch.tensor([0.7, -0.4], dtype=D)
    which = torch.multinomial(torch.tensor([0.3, 0.3, 0.4]), 400_000, True, generator=rng)
    noise = 0.1**0.5 * torch.randn(400_000, 2, generator=rng, dtype=D)
    y = torch.einsum("nij,j->ni", data.maps.double()[which], x) + noise
    for a in ([0.1, -0.3], [0.9, 0.8], [-0.9, 0.2]):
        a = torch.tensor(a, dtype=D)
        paid = make().cost(y, a)
        error = float(paid.mean() - law.expected_cost(x, a))
        assert abs(error) < 5 * float(paid.std()) * len(paid) ** -0.5


@both
@given(m=st.floats(-3, 3), a=st.floats(-3, 3), s=st.floats(0.05, 2))
@settings(deadline=None, max_examples=60)
def test_the_slope_is_the_derivative_of_the_mean(make, m, a, s):
    cost = make().f_terms
    m, a = torch.tensor(m, dtype=D), torch.tensor(a, dtype=D, requires_grad=True)
    (expected,) = torch.autograd.grad(cost.mean(m, s, a), a)
    torch.testing.assert_close(cost.slope(m, s, a), expected, rtol=1e-9, atol=1e-9)


def test_far_from_the_outcomes_the_mean_is_that_of_a_polynomial():
    # a is 30 standard deviations above y: all is spare, and E (a-y)^2 = (a-m)^2 + s^2
    cost = synthetic_convex().f_terms
    m, s, a = torch.tensor(0.0, dtype=D), 0.1, torch.tensor(3.0, dtype=D)
    assert float(cost.mean(m, s, a)) == pytest.approx(20 * 3 + 0.2 * (9 + 0.01), rel=1e-14)
    assert float(cost.mean(-m, s, -a)) == pytest.approx(5 * 3 + 0.5 * (9 + 0.01), rel=1e-14)


def test_the_best_action_is_that_of_brute_force(truth):
    make, data, law = truth
    x = data.splits.test.x
    a, cost = law.best(x)
    assert make().double().feasible.contains(a).all()
    torch.testing.assert_close(law.expected_cost(x, a), cost, rtol=0, atol=0)
    line = torch.linspace(-limit(make), limit(make), 4001, dtype=D)
    for i in range(2):
        # coordinates do not interact: vary one, keep the other at its best
        others = a.unsqueeze(1).expand(-1, len(line), -1).clone()
        others[..., i] = line
        tried = law.expected_cost(x.unsqueeze(1), others)
        assert (cost <= tried.min(1).values + 1e-12).all()


def test_the_best_cost_agrees_with_scipy_to_nine_digits(truth):
    make, data, law = truth
    x = data.splits.test.x[:3]
    for n in range(3):

        def expected(a, n=n):
            return float(law.expected_cost(x[n], torch.from_numpy(a)))

        box = [(-limit(make), limit(make))] * 2
        grid = optimize.brute(expected, box, Ns=17, finish=None)
        found = optimize.minimize(
            expected,
            grid,
            bounds=box,
            method="Nelder-Mead",
            options={"xatol": 1e-10, "fatol": 1e-14},
        )
        assert float(law.best(x[n : n + 1])[1]) == pytest.approx(found.fun, abs=1e-9)


def test_the_best_action_is_stationary_or_an_end_that_slopes_inwards(truth):
    make, data, law = truth
    x = data.splits.train.x
    a = law.best(x)[0].requires_grad_()
    (slope,) = torch.autograd.grad(law.expected_cost(x, a).sum(), a)
    end = limit(make)
    inside = a.abs() < end
    assert slope[inside].abs().max() < 1e-12
    assert (slope[a == -end] >= 0).all()
    assert (slope[a == end] <= 0).all()


def test_the_nonconvex_minimum_is_sometimes_the_far_end_and_sometimes_the_valley():
    # the two candidates differ by more than a cell of any grid: a local search would miss one
    x = 2 * torch.rand(400, 2, generator=torch.Generator().manual_seed(0)) - 1
    law = MixtureTruth(synthetic_nonconvex(), 2.0 * three_gaussians(seed=0).maps)
    a = law.best(x)[0]
    assert 0 < (a == -2).sum() < a.numel()
    assert (a > -0.84).sum() + (a == -2).sum() == a.numel()


def test_best_does_not_depend_on_how_many_are_asked_at_once(truth):
    _, _, law = truth
    x = 2 * torch.rand(1500, 2, generator=torch.Generator().manual_seed(0)) - 1
    many, _ = law.best(x)
    few, _ = law.best(x[1020:1030])
    torch.testing.assert_close(many[1020:1030], few, rtol=0, atol=1e-14)


def test_the_gap_is_zero_at_the_best_and_positive_elsewhere(truth):
    make, data, law = truth
    x = data.splits.test.x
    a, _ = law.best(x)
    assert (law.gap(x, a) == 0).all()
    other = make().feasible.project((a + 0.05 * torch.where(a > 0, -1.0, 1.0)).float())
    gap = law.gap(x, other)
    assert gap.dtype == D
    assert (gap > 1e-4).all()
    torch.testing.assert_close(gap, law.expected_cost(x, other) - law.expected_cost(x, a))


def test_the_constant_action_zero_has_the_gap_of_its_integrals(truth):
    make, data, law = truth
    x = data.splits.test.x[:2]
    means = torch.einsum("cij,nj->nic", data.maps.double(), x.double()).numpy()
    gap = law.gap(x, torch.zeros(2, 2))
    best, _ = law.best(x)
    for n in range(2):
        cost = [
            sum(integrated(make, means[n, i], float(v[n, i])) for i in range(2))
            for v in (torch.zeros(2, 2), best)
        ]
        assert float(gap[n]) == pytest.approx(cost[0] - cost[1], abs=1e-8)


def test_batches_of_actions_broadcast_against_x(truth):
    _, data, law = truth
    x, a = data.splits.test.x[:4], torch.rand(1, 5, 2)
    table = law.expected_cost(x.unsqueeze(1), a)
    assert table.shape == (4, 5)
    torch.testing.assert_close(table[3, 2], law.expected_cost(x[3], a[0, 2]))


def test_single_precision_of_the_module_costs_no_digits(truth):
    make, data, law = truth
    x = data.splits.test.x
    expected = law.best(x)[1]
    assert torch.equal(MixtureTruth(make(), data.maps).float().best(x)[1], expected)
    assert torch.equal(MixtureTruth(make(), data.maps).double().best(x.double())[1], expected)


def test_moving_the_truth_leaves_the_task_alone():
    task = synthetic_convex()
    MixtureTruth(task, three_gaussians(n=20).maps).double()
    assert task.feasible.bounds[0].dtype == torch.float32


def test_other_tasks_and_other_dimensions_are_refused():
    maps = three_gaussians(n=20).maps
    with pytest.raises(TypeError, match="needs synthetic_convex"):
        MixtureTruth(wind_bidding(hours=2), maps)
    with pytest.raises(ValueError, match=r"dimension 3, but got maps of shape \(3, 2, 2\)"):
        MixtureTruth(synthetic_convex(dim=3), maps)
