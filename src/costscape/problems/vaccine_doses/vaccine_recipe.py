"""Vaccine allocation as it is run: one week, or a wave of eight weeks."""

import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from costscape.problems.files.sources import VARIABLE
from costscape.problems.problem import Problem, fixed_epochs, read_once
from costscape.problems.vaccine_doses.allocation import vaccine, vaccine_wave
from costscape.problems.vaccine_doses.dcrnn import DCRNN
from costscape.problems.vaccine_doses.epidemic import Epidemic, epidemic_state, fit_beta
from costscape.problems.vaccine_doses.graph_convolution import edges_of
from costscape.problems.vaccine_doses.japan_calendar import FLAGS
from costscape.problems.vaccine_doses.mobility import Mobility, mobility
from costscape.solvers import FrankWolfe
from costscape.task import Task
from costscape.training import Training

FIRST, STATE = np.datetime64("2020-04-01"), "2021-01-08"
WEEK = np.timedelta64(7, "D")
RATE = 1e-3  # of all networks: at 1e-2 the loss of forecasts rises in the first epoch


def one_week(seed: int = 0) -> Problem:
    """Vaccine for 47 prefectures before next week's travel is known; infections of that week."""
    return _doses(vaccine)


def eight_weeks(seed: int = 0) -> Problem:
    """The same over a wave of eight weeks, at most 10 % of a prefecture's people in the first."""
    return replace(_doses(vaccine_wave), for_origins=_wave_from_2018)


def _wave_from_2018() -> Problem:
    """The wave with every week since 2018 and the calendar in x; the epidemic is the same."""
    problem = _doses(vaccine_wave)
    data: Mobility = read_once(_all_days, (), os.environ.get(VARIABLE))
    network = partial(DCRNN, len(data.population), edges_of(data.adjacency), extra=FLAGS)
    return replace(problem, data=data.splits, source=data.source, encoder=network, network=network)


def _all_days() -> Mobility:
    return mobility(all_days=True)


def _doses(make: Callable[[Epidemic], Task]) -> Problem:
    data: Mobility = read_once(mobility, (), os.environ.get(VARIABLE))
    cases, people = data.cases.numpy(), data.population.numpy()
    days, train = data.case_dates, data.splits.train.dates
    assert train is not None
    known = (days >= FIRST) & (days < train[-1] + WEEK)
    beta = fit_beta(cases[known], people)
    task = make(epidemic_state(cases, days, people, STATE, beta=beta))
    task.hindsight = FrankWolfe().hindsight(task)
    network = partial(DCRNN, len(people), edges_of(data.adjacency))
    return Problem(
        data=data.splits,
        task=task,
        encoder=network,
        training=fixed_epochs(50, lr=1e-4),
        schedule=Training(lr=RATE),
        points=100,
        variances=(0.01, 0.02, 0.05),
        source=data.source,
        network=network,
        solver=FrankWolfe(),
        score_every=5,
        reach=2 * WEEK,
    )
