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
from costscape.bench.zoo.laws import Law, gaussian, lognormal, pareto, student
from costscape.bench.zoo.real_series import farm_energy, item_sales
from costscape.bench.zoo.zoo_costs import newsvendor
from costscape.bench.zoo.zoo_tasks import ramp_limits, separable
from costscape.checks import check_task
from costscape.problems import sales, wind_farm
from costscape.scenarios import ExpectedCost, Scenarios
from costscape.sets import Box, Budget, Finite, Polytope, Simplex
from costscape.solvers import ProjectedAdam
from costscape.task import SeparableTask

ROWS = 40  # on which hindsights are checked
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
    assert row["gap"] is None


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


def test_outcomes_follow_their_law():
    rng, x = np.random.default_rng(0), torch.zeros(20_000, 1)
    maps = [lambda x: x.new_full((len(x), 2), 1.0), lambda x: x.new_full((len(x), 2), 3.0)]
    law = Law((), gaussian, (0.2, 0.1), chance=lambda x: x.new_full((len(x), 1), 0.25))
    y = law.sample(maps, x, 2, rng)
    first = y[:, 0] < 2.2
    assert torch.equal(first, y[:, 1] < 2.2)  # both coordinates come from the same part
    assert float(first.double().mean()) == pytest.approx(0.25, abs=0.02)
    assert float(y[~first].std()) == pytest.approx(0.1, abs=0.01)
    assert y[first].mean() == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize(
    "feasible",
    [Budget(total=6.0, dim=4, upper=3.0), Simplex(total=6.0, dim=4), ramp_limits(4, 6.0, 0.375)],
)
def test_hindsight_is_no_worse_than_long_descent(feasible):
    task = separable(newsvendor(0.7, squared=1.0), feasible).double()
    y = 6 * torch.rand(5, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    best = task.hindsight(y)
    g = ExpectedCost(task, Scenarios(y.new_ones(5, 1), y[:, None], own=True))
    found = ProjectedAdam(steps=500).minimise(g, task.feasible, 5).cost
    assert task.feasible.contains(best, 1e-6).all()
    assert (task.cost(y, best) <= found + 1e-5 * found.abs()).all()
