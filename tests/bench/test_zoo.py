"""The zoo's problems keep their promises, cover all kinds, and use no test row of the paper's."""

from copy import deepcopy
from functools import cache

import numpy as np
import pytest
import torch

from costscape.bench import Run, execute
from costscape.bench.problem_names import PROBLEMS, problem_named
from costscape.bench.zoo import GENERATED, ZOO
from costscape.bench.zoo.assemble import is_exact
from costscape.bench.zoo.decisions import ramp_limits
from costscape.bench.zoo.lattice import minimise_on_lattice
from costscape.bench.zoo.laws import gaussian, lognormal, pareto, student
from costscape.bench.zoo.real_series import farm_energy, item_sales
from costscape.bench.zoo.separable_costs import newsvendor
from costscape.checks import check_task
from costscape.problems import sales, wind_farm
from costscape.scenarios import ExpectedCost, Scenarios
from costscape.sets import Box, Budget, Finite, Polytope, Simplex
from costscape.solvers import Convex
from costscape.task import SeparableTask

ROWS = 40  # on which truths and hindsights are checked
TRIED = 200  # sampled actions


@cache
def made(name, seed=0):
    return problem_named(name)(seed)


def sampled(feasible, n=TRIED):
    return feasible.sample(n, torch.Generator().manual_seed(1))


def test_there_are_enough_problems_and_half_of_them_are_generated():
    assert len(ZOO) >= 32
    assert 0.4 <= len(GENERATED) / len(ZOO) <= 0.6
    assert all(name.startswith("zoo-") for name in ZOO)
    assert not set(ZOO) & set(PROBLEMS)
    assert [name for name in ZOO if made(name).truth is not None] == list(GENERATED)


@pytest.mark.parametrize("name", ZOO)
def test_a_problem_is_whole(name):
    p = made(name)
    d = p.task.feasible.dim
    for part in (p.data.train, p.data.val, p.data.test):
        assert part.x.dtype == part.y.dtype == torch.float32
        assert part.x.isfinite().all()
        assert part.y.isfinite().all()
        assert part.x.shape[1:] == p.data.train.x.shape[1:]
        assert part.y.ndim == 2
    least = 500 if name in GENERATED and is_exact(p.task) else 80
    assert len(p.data.test) >= least
    code = p.encoder()(p.data.train.x[:3])
    assert code.shape[0] == 3
    assert "seed 0" in p.source
    a = sampled(p.task.feasible, 5)
    assert a.shape == (5, d)
    assert p.task.cost(p.data.test.y[:, None], a).isfinite().all()


@pytest.mark.parametrize("name", ZOO)
def test_a_task_keeps_its_promises_and_knows_the_best_action_in_hindsight(name):
    p = made(name)
    check_task(p.task, p.data.test.y[:20])
    exact = deepcopy(p.task).double()  # as rows are evaluated
    y = p.data.test.y[:ROWS].double()
    best = exact.hindsight(y)
    assert best.dtype == y.dtype
    assert exact.feasible.contains(best).all()
    costs = exact.cost(y[:, None], sampled(exact.feasible))
    assert (exact.cost(y, best) <= costs.amin(1) + 1e-5 * costs.abs().mean()).all()


@pytest.mark.parametrize("name", GENERATED)
def test_the_truth_has_gap_zero_at_its_best_action_and_none_is_better(name):
    p = made(name)
    x, feasible = p.data.test.x[:ROWS], p.truth.task.feasible
    best, least = p.truth.best(x)
    size = least.abs().mean()
    assert feasible.contains(best).all()
    assert p.truth.gap(x, best).abs().max() <= 1e-12 * size
    tried = sampled(feasible, ROWS)
    near = feasible.project(best + 0.03 * (tried - tried.mean(0)))
    for a in (tried, tried.roll(1, 0), near, feasible.project(best.roll(1, 0))):
        assert (p.truth.gap(x, a) >= -1e-4 * size).all()
    assert p.truth.gap(x, tried).mean() > 0.01 * size


@pytest.mark.parametrize("name", GENERATED)
def test_the_data_follow_the_law_of_the_truth(name):
    p = made(name)
    x, y = p.data.test.x, p.data.test.y.double()
    a = sampled(p.truth.task.feasible, 1).expand(len(x), -1)
    surprise = p.truth.task.cost(y, a) - p.truth.expected_cost(x, a)
    assert surprise.mean().abs() <= 4 * surprise.std() / len(x) ** 0.5


@pytest.mark.parametrize("name", ZOO)
def test_the_seed_alone_decides_the_data(name):
    first, again, other = made(name), problem_named(name)(0), problem_named(name)(1)
    for part in ("train", "val", "test"):
        one, two, three = (getattr(p.data, part) for p in (first, again, other))
        assert torch.equal(one.x, two.x)
        assert torch.equal(one.y, two.y)
        if name in GENERATED:
            assert not torch.equal(one.x, three.x)
            assert not torch.equal(one.y, three.y)


@pytest.mark.parametrize("name", ["zoo-budget", "zoo-item13-rare-shortage"])
def test_a_run_on_a_problem_gives_a_row(name):
    row = execute(Run(name, "constant", quick=True), device="cpu").row
    assert row["error"] is None
    assert row["regret"] > 0
    assert (row["gap"] is not None) == (name in GENERATED)


def test_all_kinds_are_there():
    problems = {name: made(name) for name in ZOO}
    tasks = [p.task for p in problems.values()]
    for kind in (Box, Budget, Simplex, Polytope, Finite):
        assert sum(isinstance(t.feasible, kind) for t in tasks) >= 4, kind
    coupled = [t for t in tasks if not isinstance(t, SeparableTask)]
    assert len(coupled) >= 6
    assert sum(not t.convex for t in tasks) >= 6
    rows = [len(p.data.train) for p in problems.values()]
    assert min(rows) == 200
    assert max(rows) == 20_000
    assert sum(500 <= n <= 2500 for n in rows) > len(rows) / 2
    shapes = [p.data.train.x.shape[1:] for p in problems.values()]
    assert {2, 5, 20, 150} <= {s[0] for s in shapes if len(s) == 1}
    assert sum(len(s) == 2 for s in shapes) >= 5
    dims = {t.feasible.dim for t in tasks}
    assert {1, 2, 8, 24} <= dims


def test_no_test_row_of_a_named_problem_is_used():
    days, series = item_sales(11)
    test = sales(1).splits.test
    assert days[-1] < test.dates[0] - np.timedelta64(14 + 7, "D")
    assert len(days) == len(series)
    for item in (1, 10, 51):
        with pytest.raises(ValueError, match="items 11 to 50"):
            item_sales(11, item)
    hours, energy = farm_energy()
    test = wind_farm().test
    assert hours[-1] < test.dates[0] - np.timedelta64(24 + 12, "h")
    assert len(hours) == len(energy)
    known = wind_farm().train
    assert torch.equal(energy[:24], known.x[0])


@pytest.mark.parametrize(
    ("name", "before", "unit"),
    [
        ("zoo-item22-quadratic", 28 + 3, "D"),
        ("zoo-item31-tomorrow", 28, "D"),
        ("zoo-wind-ramp", 12 + 1, "h"),
        ("zoo-wind-line", 24 + 2, "h"),
    ],
)
def test_no_moment_is_in_two_parts(name, before, unit):
    data, step = made(name).data, np.timedelta64(1, unit)
    for early, late in ((data.train, data.val), (data.val, data.test)):
        last = early.dates[-1] + (early.y.shape[1] - 1) * step
        assert last < late.dates[0] - before * step


@pytest.mark.parametrize("noise", [gaussian, lognormal, student, pareto])
def test_a_noise_has_mean_zero_and_variance_one(noise):
    e = noise((torch.arange(500_000, dtype=torch.float64) + 0.5) / 500_000)
    assert abs(float(e.mean())) < 1e-3
    assert float(e.var()) == pytest.approx(1, abs=0.05)  # the variance is in the tail


def test_the_sampled_truth_is_the_closed_form_of_a_normal_law():
    p = made("zoo-linear")
    x, cost = p.data.test.x[:ROWS], newsvendor(0.8)
    part = p.truth.law.parts[0]
    m, s = part.mean(x.double()), part.spread(x.double())
    inside = ((m > 2) & (m < 4)).all(-1)  # where hardly any outcome is clipped
    a = m[inside] + 0.4
    exact = cost.mean(m[inside], s[inside], a).sum(-1)
    assert inside.sum() > 5
    assert torch.allclose(p.truth.expected_cost(x[inside], a), exact, rtol=2e-3)


@pytest.mark.parametrize(
    ("feasible", "ramp"),
    [
        (Budget(total=6.0, dim=4, upper=3.0), None),
        (Simplex(total=6.0, dim=4), None),
        (ramp_limits(4, 6.0, 0.375), 0.375),
    ],
)
def test_the_lattice_finds_what_a_convex_program_finds(feasible, ramp):
    cost = newsvendor(0.7, squared=1.0)
    task = SeparableTask(cost, feasible.double(), convex=True, cvxpy=cost.cvxpy).double()
    y = 6 * torch.rand(5, 12, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    g = ExpectedCost(task, Scenarios(y.new_full((5, 12), 1 / 12), y, own=True))
    a = minimise_on_lattice(g, None, ramp=ramp, scales=9)
    assert feasible.contains(a, 1e-6).all()
    exact = Convex().minimise(g, feasible, 5).cost
    assert torch.allclose(g(a[:, None])[:, 0], exact, rtol=1e-6)


def test_the_lattice_refuses_a_set_it_does_not_know():
    task = SeparableTask(newsvendor(0.7), Box(0.0, 1.0, dim=2))
    g = ExpectedCost(task, Scenarios(torch.ones(1, 1), torch.ones(1, 1, 2), own=True))
    with pytest.raises(TypeError, match="Budget, a Simplex or a ramp limit"):
        minimise_on_lattice(g, None, ramp=None, scales=1)
