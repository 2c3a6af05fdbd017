"""The methods that have a name. To add one, add an entry to METHODS."""

from collections.abc import Callable
from dataclasses import dataclass, replace
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
    DecisionForest,
    DirectedWeightedMSE,
    KernelSmoother,
    Method,
    NearestNeighbours,
    PlainNetwork,
    PolicyNet,
    RandomForest,
    ResidualSAA,
    SafetyStock,
    TaskMet,
    TwoStage,
)
from costscape.models import Flat, Flow, Mixture, Point, Quantiles
from costscape.models.encoders import LINEAR_RATE
from costscape.problems import proportional
from costscape.problems.problem import Problem
from costscape.solvers import Layer, argmin_layer

NEIGHBOURS = (10, 25, 50, 100, 200, 400, 800)  # tried for the residuals of the nearest rows


def _network(p: Problem, seed: int) -> dict[str, Any]:
    """What all methods with networks share on a problem."""
    return {"encoder": p.network, "solver": p.solver, "training": p.schedule, "seed": seed}


def _argmin(p: Problem) -> Layer:
    """The layer that DFL chooses by itself; named here, so that the recipe of a row has it."""
    return argmin_layer(p.task.feasible, p.solver)


@dataclass(frozen=True)
class NamedMethod:
    """The maker of a method for a problem and a seed, and one line about it."""

    words: str
    make: Callable[..., Method]

    def __call__(self, *arguments: Any) -> Method:
        return self.make(*arguments)


def _as_in_paper(p: Problem, seed: int) -> Method:
    made = DF2.as_in_paper(
        p.task, points=p.points, encoder=p.encoder, seed=seed, training=p.training
    )
    return replace(made, choose_epoch=True, solver=p.solver)


def _linear_mixture(p: Problem, seed: int, k: int) -> Method:
    training = replace(p.schedule, lr=LINEAR_RATE)
    settings = {**_network(p, seed), "encoder": Flat, "training": training}
    return TwoStage(p.task, Mixture(k), **settings)


METHODS: dict[str, NamedMethod] = {
    "df2": NamedMethod(
        "DF2 with its defaults: its forms, cross-fitted and blended",
        lambda p, seed: DF2(p.task, **_network(p, seed)),
    ),
    "df2-quick": NamedMethod(
        "DF2 with one network",
        lambda p, seed: replace(DF2.quick(p.task), **_network(p, seed)),
    ),
    "df2-paper": NamedMethod(
        "DF2 as in the paper, with the epoch chosen as for all others",
        lambda p, seed: _as_in_paper(p, seed),
    ),
    "blend": NamedMethod(
        "DF2's forms, a mixture, a forest and neighbours, cross-fitted and blended",
        lambda p, seed: Blend(p.task, solver=p.solver, training=p.schedule, seed=seed),
    ),
    "policy-net": NamedMethod(
        "A network from x to the action, trained on its cost",
        lambda p, seed: PolicyNet(p.task, p.network, training=p.schedule, seed=seed),
    ),
    "two-stage-pe": NamedMethod(
        "The conditional mean, then the best action for it",
        lambda p, seed: TwoStage(p.task, Point(), **_network(p, seed)),
    ),
    "safety-stock": NamedMethod(
        "The conditional mean and a fixed margin, then the best action for it",
        lambda p, seed: SafetyStock(p.task, **_network(p, seed)),
    ),
    "two-stage-quantiles": NamedMethod(
        "Quantiles of each coordinate joined by ranks, then the best action for the scenarios",
        lambda p, seed: TwoStage(p.task, Quantiles(), **_network(p, seed)),
    ),
    "two-stage-flow": NamedMethod(
        "A law of any shape by flow matching, then the best action for draws of it",
        lambda p, seed: TwoStage(p.task, Flow(), **_network(p, seed)),
    ),
    "dfl-pe": NamedMethod(
        "A point forecast trained through the argmin",
        lambda p, seed: DFL(p.task, Point(), layer=_argmin(p), **_network(p, seed)),
    ),
    "dfl-flow": NamedMethod(
        "A law by flow matching, trained through the argmin over its draws",
        lambda p, seed: DFL(p.task, Flow(), layer=_argmin(p), **_network(p, seed)),
    ),
    "lodl-pe": NamedMethod(
        "A point forecast trained on a learned loss of its own for each pair",
        lambda p, seed: LODL(p.task, Point(), **_network(p, seed)),
    ),
    "egl": NamedMethod(
        "A point forecast trained on one learned loss for all pairs",
        lambda p, seed: EGL(p.task, **_network(p, seed)),
    ),
    "lodl-directed": NamedMethod(
        "A point forecast trained on squared errors with learned weights for each pair",
        lambda p, seed: LODL(p.task, loss=DirectedWeightedMSE(), **_network(p, seed)),
    ),
    "egl-directed": NamedMethod(
        "A point forecast trained on squared errors, their weights one function of the pair",
        lambda p, seed: EGL(p.task, loss=DirectedWeightedMSE(), **_network(p, seed)),
    ),
    "lancer": NamedMethod(
        "A point forecast trained on a learned landscape of decision cost",
        lambda p, seed: LANCER(p.task, **_network(p, seed)),
    ),
    "lancer-unsigned": NamedMethod(
        "The same with the landscape of its paper, a function of squared errors",
        lambda p, seed: LANCER(p.task, signed=False, regularise=0.0, **_network(p, seed)),
    ),
    "taskmet": NamedMethod(
        "A point forecast by least squares in a learned metric",
        lambda p, seed: TaskMet(p.task, **_network(p, seed)),
    ),
    "wsaa-knn": NamedMethod(
        "Weights on the nearest neighbours' outcomes",
        lambda p, seed: NearestNeighbours(p.task, solver=p.solver, seed=seed),
    ),
    "wsaa-forest": NamedMethod(
        "Weights on outcomes that share leaves of a random forest",
        lambda p, seed: RandomForest(p.task, solver=p.solver, seed=seed),
    ),
    "wsaa-kernel": NamedMethod(
        "Weights on outcomes by a Gaussian kernel (Nadaraya-Watson)",
        lambda p, seed: KernelSmoother(p.task, solver=p.solver, seed=seed),
    ),
    "cme": NamedMethod(
        "Weights on outcomes by kernel ridge regression",
        lambda p, seed: CME(p.task, solver=p.solver, seed=seed),
    ),
    "decision-forest": NamedMethod(
        "Weights on outcomes that share leaves of a forest grown on the cost of decisions",
        lambda p, seed: DecisionForest(p.task, solver=p.solver, seed=seed),
    ),
    "residual-saa": NamedMethod(
        "A ridge regression of y, and its residuals as scenarios",
        lambda p, seed: ResidualSAA(p.task, solver=p.solver, seed=seed),
    ),
    "residual-saa-scaled": NamedMethod(
        "The same with residuals whose spread depends on x",
        lambda p, seed: ResidualSAA(p.task, scaled=True, solver=p.solver, seed=seed),
    ),
    "residual-saa-loo": NamedMethod(
        "The same with the residual of each row by the fit without it",
        lambda p, seed: ResidualSAA(p.task, leave_one_out=True, solver=p.solver, seed=seed),
    ),
    "residual-saa-knn": NamedMethod(
        "The same with the residuals of the nearest neighbours",
        lambda p, seed: ResidualSAA(p.task, k=NEIGHBOURS, solver=p.solver, seed=seed),
    ),
    "no-attention": NamedMethod(
        "A plain network g(x, a), fitted as DF2 is",
        lambda p, seed: PlainNetwork(p.task, **_network(p, seed)),
    ),
    "constant": NamedMethod(
        "The best constant action", lambda p, seed: Constant(p.task, solver=p.solver, seed=seed)
    ),
    "proportional": NamedMethod(
        "Doses in proportion to people; for the vaccine problems",
        lambda p, seed: Constant(p.task, action=tuple(proportional(p.task).tolist()), seed=seed),
    ),
}
# a name ends in any whole number K, the components of the mixture
FAMILIES: dict[str, NamedMethod] = {
    "two-stage-gmm": NamedMethod(
        "A mixture of K Gaussians by likelihood, then the best action for draws of it",
        lambda p, seed, k: TwoStage(p.task, Mixture(k), **_network(p, seed)),
    ),
    "two-stage-linear-gmm": NamedMethod(
        "The same mixture with means, deviations and weights linear in x",
        lambda p, seed, k: _linear_mixture(p, seed, k),
    ),
    "dfl-gmm": NamedMethod(
        "A mixture of K Gaussians trained through the argmin over its draws",
        lambda p, seed, k: DFL(p.task, Mixture(k), layer=_argmin(p), **_network(p, seed)),
    ),
    "so-ebm-gmm": NamedMethod(
        "A mixture of K Gaussians trained as an energy of the action",
        lambda p, seed, k: SOEBM(p.task, Mixture(k), variances=p.variances, **_network(p, seed)),
    ),
    "lodl-gmm": NamedMethod(
        "A mixture of K Gaussians trained on a learned loss of its own for each pair",
        lambda p, seed, k: LODL(p.task, Mixture(k), **_network(p, seed)),
    ),
}
