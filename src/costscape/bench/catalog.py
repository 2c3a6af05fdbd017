"""The methods that have a name. To add one, add a function and a line."""

import re
from collections.abc import Callable
from dataclasses import fields, replace
from functools import partial
from typing import Any

from costscape.methods import (
    CME,
    DF2,
    DFL,
    EGL,
    LANCER,
    LODL,
    SOEBM,
    Blend,
    Constant,
    CrossFit,
    KernelSmoother,
    Method,
    NearestNeighbours,
    PlainNetwork,
    PolicyNet,
    RandomForest,
    TaskMet,
    TwoStage,
)
from costscape.models import Flat, Flow, Mixture, Point, Quantiles
from costscape.problems import proportional
from costscape.problems.problem import Problem
from costscape.solvers import Implicit

Make = Callable[[Problem, int], Method]
LINEAR_RATE = 1e-2  # at 1e-3 a linear map is far from its optimum after 1,000 steps


def _network(p: Problem, seed: int) -> dict[str, Any]:
    """What all opponents with a network share on a problem."""
    return {"encoder": p.network, "solver": p.solver, "training": p.schedule, "seed": seed}


def df2(p: Problem, seed: int) -> Method:
    """DF2 with its defaults: its forms, cross-fitted and blended."""
    return DF2(p.task, p.network, solver=p.solver, seed=seed)


def df2_quick(p: Problem, seed: int) -> Method:
    """DF2 with one network."""
    return replace(DF2.quick(p.task, seed=seed), encoder=p.network, solver=p.solver)


def df2_paper(p: Problem, seed: int) -> Method:
    """DF2 as in the paper, with the epoch chosen as for all others."""
    made = DF2.as_in_paper(
        p.task, points=p.points, encoder=p.encoder, seed=seed, training=p.training
    )
    return replace(made, choose_epoch=True, solver=p.solver)


def blend(p: Problem, seed: int) -> Method:
    """DF2's forms, a mixture, a forest and neighbours, cross-fitted and blended."""
    return Blend(p.task, solver=p.solver, seed=seed)


def policy_net(p: Problem, seed: int) -> Method:
    """A network from x to the action, trained on its cost."""
    return PolicyNet(p.task, p.network, training=p.schedule, seed=seed)


def two_stage_pe(p: Problem, seed: int) -> Method:
    """The conditional mean, then the best action for it."""
    return TwoStage(p.task, Point(), **_network(p, seed))


def two_stage_gmm(p: Problem, seed: int, k: int) -> Method:
    """A mixture of K Gaussians by likelihood, then the best action for draws of it."""
    return TwoStage(p.task, Mixture(k), **_network(p, seed))


def two_stage_linear_gmm(p: Problem, seed: int, k: int) -> Method:
    """The same mixture with means, deviations and weights linear in x."""
    settings = _network(p, seed)
    training = replace(p.schedule, lr=LINEAR_RATE)
    return TwoStage(p.task, Mixture(k), **{**settings, "encoder": Flat, "training": training})


def two_stage_quantiles(p: Problem, seed: int) -> Method:
    """Quantiles of each coordinate joined by ranks, then the best action for the scenarios."""
    return TwoStage(p.task, Quantiles(), **_network(p, seed))


def two_stage_flow(p: Problem, seed: int) -> Method:
    """A law of any shape by flow matching, then the best action for draws of it."""
    return TwoStage(p.task, Flow(), **_network(p, seed))


def dfl_pe(p: Problem, seed: int) -> Method:
    """A point forecast trained through the argmin."""
    return DFL(p.task, Point(), layer=Implicit(p.solver), **_network(p, seed))


def dfl_gmm(p: Problem, seed: int, k: int) -> Method:
    """A mixture of K Gaussians trained through the argmin over its draws."""
    return DFL(p.task, Mixture(k), layer=Implicit(p.solver), **_network(p, seed))


def dfl_flow(p: Problem, seed: int) -> Method:
    """A law by flow matching, trained through the argmin over its draws."""
    return DFL(p.task, Flow(), layer=Implicit(p.solver), **_network(p, seed))


def so_ebm_gmm(p: Problem, seed: int, k: int) -> Method:
    """A mixture of K Gaussians trained as an energy of the action."""
    return SOEBM(p.task, Mixture(k), variances=p.variances, **_network(p, seed))


def lodl_pe(p: Problem, seed: int) -> Method:
    """A point forecast trained on a learned loss of its own for each pair."""
    return LODL(p.task, Point(), **_network(p, seed))


def lodl_gmm(p: Problem, seed: int, k: int) -> Method:
    """A mixture of K Gaussians trained on a learned loss of its own for each pair."""
    return LODL(p.task, Mixture(k), **_network(p, seed))


def egl(p: Problem, seed: int) -> Method:
    """A point forecast trained on one learned loss for all pairs."""
    return EGL(p.task, **_network(p, seed))


def lancer(p: Problem, seed: int) -> Method:
    """A point forecast trained on a learned landscape of decision cost."""
    return LANCER(p.task, **_network(p, seed))


def taskmet(p: Problem, seed: int) -> Method:
    """A point forecast by least squares in a learned metric."""
    return TaskMet(p.task, **_network(p, seed))


def wsaa_knn(p: Problem, seed: int) -> Method:
    """Weights on the nearest neighbours' outcomes."""
    return NearestNeighbours(p.task, solver=p.solver, seed=seed)


def wsaa_forest(p: Problem, seed: int) -> Method:
    """Weights on outcomes that share leaves of a random forest."""
    return RandomForest(p.task, solver=p.solver, seed=seed)


def wsaa_kernel(p: Problem, seed: int) -> Method:
    """Weights on outcomes by a Gaussian kernel (Nadaraya-Watson)."""
    return KernelSmoother(p.task, solver=p.solver, seed=seed)


def cme(p: Problem, seed: int) -> Method:
    """Weights on outcomes by kernel ridge regression."""
    return CME(p.task, solver=p.solver, seed=seed)


def no_attention(p: Problem, seed: int) -> Method:
    """A plain network g(x, a), fitted as DF2 is."""
    return PlainNetwork(p.task, **_network(p, seed))


def constant(p: Problem, seed: int) -> Method:
    """The best constant action."""
    return Constant(p.task, solver=p.solver, seed=seed)


def in_proportion(p: Problem, seed: int) -> Method:
    """Doses in proportion to people; for the vaccine problems."""
    return Constant(p.task, action=tuple(proportional(p.task).tolist()), seed=seed)


METHODS: dict[str, Make] = {
    "df2": df2,
    "df2-quick": df2_quick,
    "df2-paper": df2_paper,
    "blend": blend,
    "policy-net": policy_net,
    "two-stage-pe": two_stage_pe,
    "two-stage-quantiles": two_stage_quantiles,
    "two-stage-flow": two_stage_flow,
    "dfl-pe": dfl_pe,
    "dfl-flow": dfl_flow,
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
    "proportional": in_proportion,
}
# a name ends in any whole number K, the components of the mixture
FAMILIES: dict[str, Callable[[Problem, int, int], Method]] = {
    "two-stage-gmm": two_stage_gmm,
    "two-stage-linear-gmm": two_stage_linear_gmm,
    "dfl-gmm": dfl_gmm,
    "so-ebm-gmm": so_ebm_gmm,
    "lodl-gmm": lodl_gmm,
}


CROSSFIT = "+crossfit"  # after a method's name: once for each fold, averaged
LEVELS = "+levels"  # after a method's name: outcomes relative to what the problem says
ENCODER = "+encoder"  # after a method's name: the paper's encoder


def method_of(name: str) -> Make:
    """The maker of a named method; ``two-stage-gmm10`` is the family's with K = 10.

    ``two-stage-gmm10+levels`` sees windows and outcomes as multiples of the problem's ``level``.
    ``two-stage-gmm10+encoder`` has the paper's encoder, and ``two-stage-gmm10+crossfit`` is
    fitted once for each of four folds, as DF2 is.
    """
    if name.endswith(CROSSFIT):
        make = method_of(name.removesuffix(CROSSFIT))
        return lambda p, seed: CrossFit(make(p, seed))
    if name.endswith(LEVELS):
        make = method_of(name.removesuffix(LEVELS))
        return partial(_with, make, name, "level", lambda p: p.level)
    if name.endswith(ENCODER):
        make = method_of(name.removesuffix(ENCODER))
        return partial(_with, make, name, "encoder", lambda p: p.encoder)
    if name in METHODS:
        return partial(_made, METHODS[name])
    found = re.fullmatch(r"(.*-gmm)([1-9]\d*)", name)
    if found and found[1] in FAMILIES:
        family, k = FAMILIES[found[1]], int(found[2])
        return partial(_made, lambda p, seed: family(p, seed, k))
    families = ", ".join(f"{family}K" for family in FAMILIES)
    raise ValueError(
        f"There is no method named {name!r}. There are {', '.join(METHODS)}, and {families} with "
        f"K any whole number, such as two-stage-gmm10."
    )


def _with(
    make: Make, name: str, setting: str, of: Callable[[Problem], Any], p: Problem, seed: int
) -> Method:
    method = make(p, seed)
    if setting not in {f.name for f in fields(method)}:  # type: ignore[arg-type]
        raise ValueError(
            f"There is no method named {name!r}: {type(method).__name__} has no setting "
            f"{setting}. Those that forecast have one, such as two-stage-gmm1."
        )
    return replace(method, **{setting: of(p)})  # type: ignore[type-var]


def _made(make: Make, p: Problem, seed: int) -> Method:
    method = make(p, seed)
    training = method.trains()
    if p.score_every == 1 or training is None:
        return method
    return method.changed(training=replace(training, score_every=p.score_every))
