"""The problems that have a name. To add one, add a function and a line."""

import os
import re
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np

from costscape.data import (
    Mobility,
    PooledSales,
    Sales,
    Splits,
    Wind,
    mobility,
    pooled_sales,
    sales,
    three_gaussians,
    wind,
    wind_farm,
)
from costscape.data.sources import VARIABLE
from costscape.experiments.problem import Problem as Problem
from costscape.experiments.problem import fixed_epochs
from costscape.experiments.zoo import ZOO
from costscape.models import (
    DCRNN,
    LSTM,
    MLP,
    edges_of,
)
from costscape.solvers import FrankWolfe
from costscape.tasks import (
    Epidemic,
    MixtureTruth,
    SeparableTask,
    Task,
    epidemic_state,
    fit_beta,
    inventory,
    vaccine,
    vaccine_wave,
    wind_bidding,
)
from costscape.tasks import synthetic_convex as convex_task
from costscape.tasks import synthetic_nonconvex as nonconvex_task

FIRST, STATE = np.datetime64("2020-04-01"), "2021-01-08"  # of the vaccine problems
WEEK = np.timedelta64(7, "D")
EPOCHS = 60  # of every opponent on the paper's problems


def synthetic_convex(seed: int = 0) -> Problem:
    """Three Gaussians, piecewise linear-quadratic cost on [-1, 1]^2."""
    return _synthetic(convex_task(), seed)


def synthetic_nonconvex(seed: int = 0) -> Problem:
    """Three Gaussians, quadratic cost with a cubic on [-2, 2]^2."""
    return _synthetic(nonconvex_task(), seed)


def _synthetic(task: SeparableTask, seed: int) -> Problem:
    made = three_gaussians(seed=seed)
    return Problem(
        data=made.splits,
        task=task,
        encoder=partial(MLP, 2),
        training=fixed_epochs(50),
        schedule=fixed_epochs(EPOCHS),
        points=1000,
        variances=(0.01, 0.02, 0.05),
        source=f"three Gaussians, seed {seed}",
        truth=MixtureTruth(task, made.maps),
    )


def wind_power(seed: int = 0) -> Problem:
    """Bids for hours 12 to 23 ahead, from 24 h of TenneT's grid (the same for every seed)."""
    found: Wind = _read(wind, os.environ.get(VARIABLE))
    return _bidding(found.splits, found.source)


def wind_farm_bidding(seed: int = 0) -> Problem:
    """Bids for hours 12 to 23 ahead, from 24 h of a French wind farm (the same for every seed)."""
    return _bidding(wind_farm(), "La Haute Borne wind farm 2014-2015 (ENGIE), embedded")


def _bidding(data: Splits, source: str) -> Problem:
    return Problem(
        data=data,
        task=wind_bidding(),
        encoder=partial(LSTM, hidden=256),
        training=fixed_epochs(200),
        schedule=fixed_epochs(EPOCHS),
        points=500,
        variances=(0.02, 0.05, 0.1),
        source=source,
    )


def one_item(seed: int = 0, item: int = 1) -> Problem:
    """Stock of one item for days 7 to 13 ahead, from 14 days (the same for every seed)."""
    found: Sales = _read(partial(sales, item), os.environ.get(VARIABLE))
    return _stock(found.splits, found.source)


def whole_store(seed: int = 0) -> Problem:
    """The same for all items of a store, each in its own mean sales, pooled."""
    found: PooledSales = _read(pooled_sales, os.environ.get(VARIABLE))
    return _stock(found.splits, found.source)


def _stock(data: Splits, source: str) -> Problem:
    return Problem(
        data=data,
        task=inventory(),
        encoder=LSTM,
        training=fixed_epochs(200),
        schedule=fixed_epochs(EPOCHS),
        points=230,
        variances=(0.05, 0.1, 0.2),
        source=source,
    )


def one_week(seed: int = 0) -> Problem:
    """Vaccine for 47 prefectures before next week's travel is known; infections of that week."""
    return _doses(vaccine)


def eight_weeks(seed: int = 0) -> Problem:
    """The same over a wave of eight weeks, at most 10 % of a prefecture's people in the first."""
    return _doses(vaccine_wave)


def _doses(make: Callable[[Epidemic], Task]) -> Problem:
    found: Mobility = _read(mobility, os.environ.get(VARIABLE))
    cases, people = found.cases.numpy(), found.population.numpy()
    days, train = found.case_dates, found.splits.train.dates
    assert train is not None
    known = (days >= FIRST) & (days < train[-1] + WEEK)
    beta = fit_beta(cases[known], people)
    task = make(epidemic_state(cases, days, people, STATE, beta=beta))
    task.hindsight = FrankWolfe().hindsight(task)
    network = partial(DCRNN, len(people), edges_of(found.adjacency))
    return Problem(
        data=found.splits,
        task=task,
        encoder=network,
        training=fixed_epochs(50, lr=1e-4),
        schedule=fixed_epochs(EPOCHS),
        points=100,
        variances=(0.01, 0.02, 0.05),
        source=found.source,
        network=network,
        solver=FrankWolfe(),
        score_every=5,
    )


def _read(load: Callable[[], Any], folder: str | None) -> Any:
    """What ``load`` finds, read once for all seeds; ``folder`` is where it looks."""
    made = load if isinstance(load, partial) else partial(load)
    return _read_once(made.func, made.args, folder)


@lru_cache(maxsize=4)
def _read_once(load: Callable[..., Any], given: tuple[Any, ...], folder: str | None) -> Any:
    return load(*given)


PROBLEMS: dict[str, Callable[[int], Problem]] = {
    "synthetic-convex": synthetic_convex,
    "synthetic-nonconvex": synthetic_nonconvex,
    "wind": wind_power,
    "wind-farm": wind_farm_bidding,
    "inventory": one_item,
    "inventory-store": whole_store,
    "vaccine": one_week,
    "vaccine-wave": eight_weeks,
}
# a name ends in any whole number, the item of store 1
PROBLEM_FAMILIES: dict[str, Callable[[int, int], Problem]] = {"inventory-item": one_item}


def problem_named(name: str) -> Callable[[int], Problem]:
    """The maker of a named problem; ``inventory-item8`` is the family's with item 8."""
    if name in PROBLEMS:
        return PROBLEMS[name]
    if name in ZOO:
        return ZOO[name]
    found = re.fullmatch(r"(.*?)([1-9]\d*)", name)
    if found and found[1] in PROBLEM_FAMILIES:
        family, number = PROBLEM_FAMILIES[found[1]], int(found[2])
        return lambda seed: family(seed, number)
    raise ValueError(
        f"There is no problem named {name!r}. There are {', '.join(sorted(PROBLEMS))}, and "
        f"inventory-itemN with N the number of an item, such as inventory-item8."
    )
