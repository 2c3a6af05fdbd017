import copy
import importlib.util
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar
from scipy.stats import poisson

from costscape.checks import check_task
from costscape.problems.vaccine_doses.allocation import proportional, vaccine, vaccine_wave
from costscape.problems.vaccine_doses.epidemic import Epidemic, epidemic_state, fit_beta
from costscape.problems.vaccine_doses.seirv import trip_shares
from costscape.scenarios import ExpectedCost, Scenarios
from costscape.solvers.frank_wolfe import FrankWolfe
from costscape.task import Task

K = 5
D = torch.float64
PEOPLE = np.array([2e5, 1e6, 5e5, 3e6, 8e5])


def cumulative(days=60, seed=0):
    rng = np.random.default_rng(seed)
    return rng.poisson(PEOPLE * 2e-5 * (1 + np.arange(days)[:, None] / 30)).cumsum(0).astype(float)


def dates(days=60):
    return np.datetime64("2020-11-01") + np.arange(days)


def epidemic(dtype=D):
    return epidemic_state(cumulative(), dates(), PEOPLE, "2020-12-10", beta=0.25, dtype=dtype)


def trips(*batch, seed=0):
    rng = torch.Generator().manual_seed(seed)
    od = torch.rand(*batch, 7, K, K, generator=rng, dtype=D) + 9 * torch.eye(K, dtype=D)
    return trip_shares(od)


def small(make, dtype=D):
    return make(epidemic(dtype), total=3e5)


def two_weeks(state, total):
    return vaccine_wave(state, total=total, weeks=2)


BOTH = pytest.mark.parametrize("make", [vaccine, two_weeks], ids=["week", "wave"])


@BOTH
def test_the_contract_of_a_task_holds_with_hindsight(make):
    task = small(make)
    task.hindsight = FrankWolfe(steps=20).hindsight(task)
    check_task(task, trips(1))


@BOTH
def test_hindsight_is_certified_by_its_gap(make):
    task = small(make)
    y = trips(2)
    a = FrankWolfe().hindsight(task)(y)
    g = ExpectedCost(task, Scenarios(torch.ones(2, 1, dtype=D), y[:, None]))
    assert bool((FrankWolfe.gap(g, task.feasible, a) <= 1e-6 * task.cost(y, a)).all())
    assert bool((task.cost(y, a) < task.cost(y, proportional(task))).all())


def test_more_doses_never_infect_more():
    task = small(vaccine)
    a = torch.linspace(0, 1, 5, dtype=D)[:, None] * proportional(task)
    assert bool((task.cost(trips(), a).diff() < 0).all())


def test_shares_that_cannot_be_are_mended():
    task, y, a = small(vaccine), trips(), torch.full((K,), 0.01, dtype=D)
    assert torch.allclose(task.cost(y + torch.eye(K, dtype=D), a), task.cost(y, a))
    full = y / y.sum(-1, keepdim=True)
    assert torch.allclose(task.cost(5 * full, a), task.cost(full, a))
    assert torch.allclose(task.cost(-y, a), task.cost(0 * y, a))


def test_the_unit_changes_the_numbers_of_a_decision_and_nothing_else():
    people = vaccine(epidemic(), total=3e5, unit=1.0)
    a = torch.tensor([1e4, 2e4, 3e4, 4e4, 5e4], dtype=D)
    assert float(people.feasible.total) == 3e5
    assert torch.allclose(people.cost(trips(), a), small(vaccine).cost(trips(), a / 1e6))


def test_a_table_of_actions_and_scenarios_is_priced_without_copies_of_travel():
    task = small(vaccine)
    y = trips(1, 4)
    a = task.feasible.sample(3, torch.Generator().manual_seed(0))[:, None]
    table = task.cost(y, a)
    assert table.shape == (3, 4)
    for j in range(3):
        for s in range(4):
            assert torch.allclose(table[j, s], task.cost(y[0, s], a[j, 0]))


def test_the_wave_lasts_longer_and_caps_each_region():
    task = small(vaccine_wave)
    assert torch.allclose(task.feasible.upper, torch.tensor(0.1 * PEOPLE / 1e6, dtype=D))
    none = torch.zeros(K, dtype=D)
    week = vaccine_wave(epidemic(), weeks=1, total=3e5)
    assert task.cost(trips(), none) > 5 * week.cost(trips(), none)
    own = vaccine_wave(epidemic(), weeks=1, beta=None)
    assert torch.allclose(own.cost(trips(), none), small(vaccine).cost(trips(), none))


def test_a_task_moves_to_double_precision_and_copies():
    task = small(vaccine, torch.float32)
    y, a = trips().float(), torch.full((K,), 0.01)
    assert task.cost(y, a).dtype == torch.float32
    assert task.feasible.total.dtype == torch.float32
    twin = copy.deepcopy(task).double()
    assert torch.allclose(twin.cost(y.double(), a.double()).float(), task.cost(y, a), rtol=1e-4)


def test_hindsight_follows_a_copy_of_its_task():
    task = small(vaccine)
    task.hindsight = FrankWolfe().hindsight(task)
    twin = copy.deepcopy(task)
    assert twin.hindsight.task is twin


def test_the_state_counts_cases_of_ten_days_before_and_five_after():
    cases = cumulative()
    state = epidemic_state(cases, dates(), PEOPLE, "2020-12-10", beta=0.2, dtype=D)
    t = 39
    people = (state.shares * state.population).numpy()
    assert np.allclose(people[1], cases[t + 5] - cases[t])
    assert np.allclose(people[2], cases[t] - cases[t - 10])
    assert np.allclose(people[3], cases[t - 10])
    assert np.allclose(people.sum(0), PEOPLE)


def test_beta_has_the_greatest_poisson_likelihood():
    cases = cumulative()
    found = fit_beta(cases, PEOPLE)
    new = np.diff(cases, axis=0, prepend=0)
    for k in range(K):

        def misfit(beta, k=k):
            total = 0.0
            for t in range(10, len(cases) - 5):
                I = cases[t, k] - cases[t - 10, k]
                S = PEOPLE[k] - cases[t + 5, k]
                total -= poisson.logpmf(new[t + 5, k], beta * S * I / PEOPLE[k])
            return total

        best = minimize_scalar(misfit, bounds=(0.01, 0.4), method="bounded")
        assert abs(best.x - found[k]) < 1e-4


def test_beta_keeps_to_its_bounds_and_a_region_without_cases_gets_the_lower():
    t = np.arange(40.0)[:, None]
    cases = np.floor(np.hstack([10 * np.exp(t / 3), 1000 - 1000 * np.exp(-t / 2), 0 * t]))
    assert np.allclose(fit_beta(cases, np.full(3, 1e9)), [0.4, 0.01, 0.01])


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: vaccine(epidemic(), unit=0.0), "unit is how many doses"),
        (lambda: vaccine(epidemic(), steps=0), "steps a day of at least 1"),
        (lambda: vaccine_wave(epidemic(), cap=1.5), "needs cap"),
        (lambda: vaccine_wave(epidemic(), weeks=0), "needs weeks of at least 1"),
        (lambda: small(vaccine).cost(trips()[:6], torch.zeros(K, dtype=D)), "of 5 regions needs"),
        (lambda: proportional(Task(lambda y, a: a, small(vaccine).feasible)), "made by vaccine"),
        (lambda: fit_beta(cumulative(15), PEOPLE), "more than 15 days"),
        (lambda: fit_beta(cumulative()[::-1], PEOPLE), "may not fall"),
        (
            lambda: epidemic_state(cumulative(), dates(), PEOPLE, "2020-11-03", beta=0.1),
            "between 2020-11-11 and 2020-12-25",
        ),
        (
            lambda: epidemic_state(cumulative(), dates(59), PEOPLE, "2020-12-10", beta=0.1),
            "59 dates for 60 rows",
        ),
        (
            lambda: Epidemic(torch.ones(3), torch.ones(4, 3), torch.ones(3)),
            "add up to 1",
        ),
    ],
    ids=range(11),
)
def test_senseless_input_is_refused_with_a_sentence(call, sentence):
    with pytest.raises(ValueError if "made by" not in sentence else TypeError, match=sentence):
        call()


def test_the_state_of_the_problems_is_that_of_the_real_cases():
    root = Path(os.environ.get("COSTSCAPE_DATA", "none")) / "mobility"
    if not root.is_dir():
        pytest.skip("The real cases are needed, in the folder that COSTSCAPE_DATA names.")
    import csv

    with open(root / "acc_infection_num.csv", encoding="utf-8-sig") as file:
        rows = [row for row in csv.reader(file) if row][1:]
    cases = np.array([[float(v) for v in row[1:]] for row in rows])
    now = next(i for i, row in enumerate(rows) if row[0] == "2021-1-8")
    script = Path(__file__).parents[2] / "benchmarks" / "vaccine_state.py"
    spec = importlib.util.spec_from_file_location("vaccine_state", script)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    state = module.read_epidemic(D)
    infectious = (state.shares[2] * state.population).numpy()
    assert np.allclose(infectious, cases[now] - cases[now - 10])
    assert bool(((state.beta >= 0.01) & (state.beta <= 0.4)).all())
