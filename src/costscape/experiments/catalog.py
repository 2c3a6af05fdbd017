"""The problems and methods that have a name. To add one, add a function and a line."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from costscape.data import (
    Splits,
    mobility,
    pooled_sales,
    sales,
    three_gaussians,
    wind,
    wind_farm,
)
from costscape.evaluation import Truth
from costscape.methods import (
    CME,
    DF2,
    DFL,
    EGL,
    LANCER,
    LODL,
    SOEBM,
    Constant,
    KernelSmoother,
    Method,
    NearestNeighbours,
    PlainNetwork,
    PolicyNet,
    RandomForest,
    TaskMet,
    TwoStage,
)
from costscape.models import (
    DCRNN,
    LSTM,
    MLP,
    Absolute,
    Builder,
    Mixture,
    Outcomes,
    Point,
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
from costscape.train import Training

FIRST, STATE = np.datetime64("2020-04-01"), "2021-01-08"  # of the vaccine problems
WEEK = np.timedelta64(7, "D")


@dataclass(frozen=True)
class Problem:
    """Data and a task, and what all methods share on it: the encoder and the training.

    ``encoder`` is the paper's; ``network`` what all methods take but the paper's own recipe, None
    for one by the shape of x. ``points`` is the paper's number of attention points, ``variances``
    those of its proposal for SO-EBM, ``outcomes`` the form DF2 takes where comparing forms would
    take too long. ``source`` says which data this is.
    """

    data: Splits
    task: Task
    encoder: Builder
    training: Training
    points: int
    variances: tuple[float, ...]
    source: str
    truth: Truth | None = None
    network: Builder | None = None
    outcomes: Outcomes | None = None


Make = Callable[[Problem, int], Method]


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
        training=Training(epochs=50),
        points=1000,
        variances=(0.01, 0.02, 0.05),
        source=f"three Gaussians, seed {seed}",
        truth=MixtureTruth(task, made.maps),
    )


def wind_power(seed: int = 0) -> Problem:
    """Bids for hours 12 to 23 ahead, from 24 h of TenneT's grid (the same for every seed)."""
    found = wind()
    return _bidding(found.splits, found.source)


def wind_farm_bidding(seed: int = 0) -> Problem:
    """Bids for hours 12 to 23 ahead, from 24 h of a French wind farm (the same for every seed)."""
    return _bidding(wind_farm(), "La Haute Borne wind farm 2014-2015 (ENGIE), embedded")


def _bidding(data: Splits, source: str) -> Problem:
    return Problem(
        data=data,
        task=wind_bidding(),
        encoder=partial(LSTM, hidden=256),
        training=Training(epochs=200),
        points=500,
        variances=(0.02, 0.05, 0.1),
        source=source,
    )


def one_item(seed: int = 0) -> Problem:
    """Stock of one item for days 7 to 13 ahead, from 14 days (the same for every seed)."""
    found = sales()
    return _stock(found.splits, found.source)


def whole_store(seed: int = 0) -> Problem:
    """The same for all items of a store, each in its own mean sales, pooled."""
    found = pooled_sales()
    return _stock(found.splits, found.source)


def _stock(data: Splits, source: str) -> Problem:
    return Problem(
        data=data,
        task=inventory(),
        encoder=LSTM,
        training=Training(epochs=200),
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
    found = mobility()
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
        training=Training(epochs=50, lr=1e-4),
        points=100,
        variances=(0.01, 0.02, 0.05),
        source=found.source,
        network=network,
        outcomes=Absolute(),  # others would simulate an epidemic of its own for each x
    )


def df2(p: Problem, seed: int) -> Method:
    """DF2 with its defaults."""
    return DF2(p.task, p.network, outcomes=p.outcomes, seed=seed)


def df2_paper(p: Problem, seed: int) -> Method:
    """DF2 as in the paper."""
    return DF2.as_in_paper(
        p.task, points=p.points, encoder=p.encoder, seed=seed, training=p.training
    )


def policy_net(p: Problem, seed: int) -> Method:
    """A network from x to the action, trained on its cost."""
    return PolicyNet(p.task, p.network, seed=seed)


def two_stage_pe(p: Problem, seed: int) -> Method:
    """The conditional mean, then the best action for it."""
    return TwoStage(p.task, Point(), encoder=p.network, seed=seed)


def two_stage_gmm(p: Problem, seed: int, k: int) -> Method:
    """A mixture of K Gaussians by likelihood, then the best action for draws of it."""
    return TwoStage(p.task, Mixture(k), encoder=p.network, seed=seed)


def dfl_pe(p: Problem, seed: int) -> Method:
    """A point forecast trained through the argmin."""
    return DFL(p.task, Point(), encoder=p.network, seed=seed)


def dfl_gmm(p: Problem, seed: int, k: int) -> Method:
    """A mixture of K Gaussians trained through the argmin over its draws."""
    return DFL(p.task, Mixture(k), encoder=p.network, seed=seed)


def so_ebm_gmm(p: Problem, seed: int, k: int) -> Method:
    """A mixture of K Gaussians trained as an energy of the action."""
    return SOEBM(p.task, Mixture(k), encoder=p.network, variances=p.variances, seed=seed)


def lodl_pe(p: Problem, seed: int) -> Method:
    """A point forecast trained on a learned loss of its own for each pair."""
    return LODL(p.task, Point(), encoder=p.network, seed=seed)


def lodl_gmm(p: Problem, seed: int, k: int) -> Method:
    """A mixture of K Gaussians trained on a learned loss of its own for each pair."""
    return LODL(p.task, Mixture(k), encoder=p.network, seed=seed)


def egl(p: Problem, seed: int) -> Method:
    """A point forecast trained on one learned loss for all pairs."""
    return EGL(p.task, encoder=p.network, seed=seed)


def lancer(p: Problem, seed: int) -> Method:
    """A point forecast trained on a learned landscape of decision cost."""
    return LANCER(p.task, encoder=p.network, seed=seed)


def taskmet(p: Problem, seed: int) -> Method:
    """A point forecast by least squares in a learned metric."""
    return TaskMet(p.task, encoder=p.network, seed=seed)


def wsaa_knn(p: Problem, seed: int) -> Method:
    """Weights on the nearest neighbours' outcomes."""
    return NearestNeighbours(p.task, seed=seed)


def wsaa_forest(p: Problem, seed: int) -> Method:
    """Weights on outcomes that share leaves of a random forest."""
    return RandomForest(p.task, seed=seed)


def wsaa_kernel(p: Problem, seed: int) -> Method:
    """Weights on outcomes by a Gaussian kernel (Nadaraya-Watson)."""
    return KernelSmoother(p.task, seed=seed)


def cme(p: Problem, seed: int) -> Method:
    """Weights on outcomes by kernel ridge regression."""
    return CME(p.task, seed=seed)


def no_attention(p: Problem, seed: int) -> Method:
    """A plain network g(x, a), fitted as DF2 is."""
    return PlainNetwork(p.task, p.network, seed=seed)


def constant(p: Problem, seed: int) -> Method:
    """The best constant action."""
    return Constant(p.task, seed=seed)


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
METHODS: dict[str, Make] = {
    "df2": df2,
    "df2-paper": df2_paper,
    "policy-net": policy_net,
    "two-stage-pe": two_stage_pe,
    "dfl-pe": dfl_pe,
    "lodl-pe": lodl_pe,
    "egl": egl,
    "lancer": lancer,
    "taskmet": taskmet,
    "wsaa-knn": wsaa_knn,
    "wsaa-forest": wsaa_forest,
    "wsaa-kernel": wsaa_kernel,
    "cme": cme,
    "no-attention": no_attention,
    "constant": constant,
}
# a name ends in any whole number K, the components of the mixture
FAMILIES: dict[str, Callable[[Problem, int, int], Method]] = {
    "two-stage-gmm": two_stage_gmm,
    "dfl-gmm": dfl_gmm,
    "so-ebm-gmm": so_ebm_gmm,
    "lodl-gmm": lodl_gmm,
}


def method_of(name: str) -> Make:
    """The maker of a named method; ``two-stage-gmm10`` is the family's with K = 10."""
    if name in METHODS:
        return METHODS[name]
    found = re.fullmatch(r"(.*-gmm)([1-9]\d*)", name)
    if found and found[1] in FAMILIES:
        return _of_family(FAMILIES[found[1]], int(found[2]))
    families = ", ".join(f"{family}K" for family in FAMILIES)
    raise ValueError(
        f"There is no method named {name!r}. There are {', '.join(METHODS)}, and {families} with "
        f"K any whole number, such as two-stage-gmm10."
    )


def _of_family(make: Callable[[Problem, int, int], Method], k: int) -> Make:
    return lambda p, seed: make(p, seed, k)
