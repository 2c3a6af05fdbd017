import math

import cvxpy as cp
import numpy as np
import pytest
import torch

from costscape import Convex, ExpectedCost, ProjectedAdam, Scenarios
from costscape.checks import check_set, check_task
from costscape.problems import generator_scheduling
from costscape.problems.generator_schedule.scheduling import LeastMajorant, ramp_limits
from costscape.solvers import Auto, BoxRelaxation, RampLimits


@pytest.fixture(scope="module")
def task():
    return generator_scheduling()


def days(n, seed=0, jump=0.0):
    """Loads of n days; ``jump`` is added to hour 12, which breaks the ramp from 0.4 on."""
    rng = torch.Generator().manual_seed(seed)
    hour = torch.arange(24)
    y = (
        1.6
        + 0.4 * torch.sin((hour - 8) / 24 * 2 * math.pi)
        + 0.1 * torch.randn(n, 1, generator=rng)
    )
    y = y + 0.02 * torch.randn(n, 24, generator=rng)
    y[:, 12] += jump
    return y


def surface(task, rows=4, draws=30, jump=0.0, seed=0):
    rng = torch.Generator().manual_seed(seed + 1)
    y = days(rows, seed, jump)[:, None] + 0.05 * torch.randn(rows, draws, 24, generator=rng)
    return ExpectedCost(task, Scenarios(torch.full((rows, draws), 1 / draws), y))


def test_cost_of_a_shortage_and_of_a_surplus_by_hand(task):
    y, a = torch.full((24,), 2.0), torch.full((24,), 2.0)
    assert task.cost(y, a) == 0
    a[3] = 1.9  # 50 * 0.1 + 0.1^2 / 2
    assert float(task.cost(y, a)) == pytest.approx(5.005, rel=1e-5)
    a[7] = 2.3  # and 0.5 * 0.3 + 0.3^2 / 2
    assert float(task.cost(y, a)) == pytest.approx(5.005 + 0.195, rel=1e-5)


def test_the_task_keeps_its_promises(task):
    check_task(task, days(20))
    check_set(task.feasible)


def test_the_mean_under_a_normal_law_is_that_of_many_draws(task):
    m, s, a = days(1)[0], torch.full((24,), 0.1), days(1)[0] + 0.15
    draws = m + s * torch.randn(200_000, 24, generator=torch.Generator().manual_seed(0))
    mean = task.terms(draws, a).mean(0)
    assert torch.allclose(task.normal(m, s, a), mean, rtol=0.03)


def test_the_limits_are_those_of_the_ramp_and_the_bounds():
    C = ramp_limits(3, 0.4, 0.5, 3.5)
    inside = torch.tensor([[1.0, 1.4, 1.0], [0.5, 0.5, 0.9], [3.5, 3.1, 2.7]])
    assert C.contains(inside).all()
    beyond = torch.tensor([[1.0, 1.5, 1.2], [0.4, 0.5, 0.6], [3.6, 3.4, 3.4], [2.0, 2.0, 1.5]])
    np.testing.assert_allclose(C.violation(beyond), [0.1, 0.1, 0.1, 0.1], atol=1e-6)
    drawn = C.sample(500, torch.Generator().manual_seed(0))
    assert ((drawn[:, 1:] - drawn[:, :-1]).abs() <= 0.4 + 1e-5).all()
    assert ((drawn >= 0.5 - 1e-5) & (drawn <= 3.5 + 1e-5)).all()


def exact(y, ramp=0.4, lower=0.5, upper=3.5):
    """The best schedule for equally likely loads y (S, 24), written down from the paper."""
    a = cp.Variable(24)
    y = y.double().numpy()
    cost = sum(
        50 * cp.sum(cp.pos(v - a)) + 0.5 * cp.sum(cp.pos(a - v)) + 0.5 * cp.sum_squares(a - v)
        for v in y
    )
    limits = [cp.abs(cp.diff(a)) <= ramp, a >= lower, a <= upper]
    problem = cp.Problem(cp.Minimize(cost / len(y)), limits)
    problem.solve(solver=cp.CLARABEL)
    return problem.value, a.value


@pytest.mark.parametrize("jump", [0.0, 0.8], ids=["slack", "at the limit"])
@pytest.mark.parametrize("solver", [Convex(), BoxRelaxation(), RampLimits()], ids=repr)
def test_decisions_are_those_of_the_program_of_the_paper(task, solver, jump):
    g = surface(task, rows=2, jump=jump)
    found = solver.minimise(g, task.feasible, 2)
    for i in range(2):
        least, a = exact(g.scenarios.values[i])
        assert float(found.cost[i]) == pytest.approx(least, rel=1e-3)
        assert np.abs(found.action[i].numpy() - a).max() < 0.02
        at_limit = np.abs(np.diff(a)).max() > 0.4 - 1e-4
        assert at_limit == (jump > 0)


def test_auto_takes_the_solver_for_ramps(task):
    assert Auto().pick(surface(task), task.feasible) == RampLimits()


@pytest.mark.parametrize("jump", [0.0, 0.5, 1.5, 4.0])
def test_hindsight_is_the_exact_optimum(task, jump):
    y = days(3, jump=jump)
    y[2] = 0.3  # below the bound
    best = task.hindsight(y)
    assert task.feasible.contains(best).all()
    for i in range(3):
        least, _ = exact(y[i : i + 1])
        assert float(task.cost(y[i], best[i])) == pytest.approx(least, rel=1e-3, abs=1e-3)


def test_hindsight_of_a_load_within_the_limits_is_that_load(task):
    y = days(5)
    assert torch.equal(task.hindsight(y), y)


def test_hindsight_is_not_promised_where_shortage_is_cheap():
    assert generator_scheduling(hours=4, short=1.0).hindsight is None
    # by hand: excess 1 - 0.4 and 1 - 0.8 on each side, at 0.5 more each: 2 (1.1 + 0.7) = 3.6
    best = LeastMajorant(0.4, 0.0, 1.0)
    assert best.is_optimal(24, short=3.6 + 1e-9, spare=0.5)
    assert not best.is_optimal(24, short=3.59, spare=0.5)


def test_adam_is_near_the_optimum(task):
    g = surface(task, rows=2)
    adam = ProjectedAdam().minimise(g, task.feasible, 2)
    best = BoxRelaxation().minimise(g, task.feasible, 2)
    assert (adam.cost >= best.cost - 1e-3).all()
    assert (adam.cost <= 1.05 * best.cost).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"short": -1.0}, "short is -1.0"),
        ({"ramp": 0.0}, "ramp 0"),
        ({"lower": 2.0, "upper": 1.0}, "lower 2 and upper 1"),
        ({"hours": 0}, "hours 0"),
    ],
)
def test_bad_settings_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        generator_scheduling(**arguments)
