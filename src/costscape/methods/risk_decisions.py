"""Decisions by a risk of the cost and within a service level, for methods with scenarios."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from costscape.chance import Chance
from costscape.methods.fitted_method import FittedMethod
from costscape.methods.surfaces import ScenarioMethod
from costscape.risk.calibration import FEWEST, Calibration, Levels, learn_levels, quantile
from costscape.risk.measures import Risk
from costscape.risk.surfaces import RiskCost, ServiceLimit, summarised
from costscape.scenarios import ExpectedCost, Scenarios
from costscape.sets import ConstraintSet, RowSets
from costscape.solvers.service_search import minimise_within
from costscape.task import Refusal, Task

DUST = 1e-6  # weight of the scenarios that are left out, such as those that are no neighbours


def decide_at_risk(
    method: FittedMethod,
    x: Tensor,
    risk: Risk | None,
    chance: Chance | None,
    feasible: ConstraintSet | None = None,
    strict: bool = True,
) -> Float[Tensor, "B d"]:
    """The action of least risk (None: expected cost) that keeps the chance, for each x.

    ``feasible`` None stands for the set of the task. Where no action keeps the chance, raise an
    error, or with ``strict=False`` return the safest action.
    """
    owner = with_scenarios(method, "chance=" if risk is None else "risk=")
    C = _task(owner).sets(x) if feasible is None else feasible
    if chance is not None and isinstance(C, RowSets):
        a = x.new_empty(len(x), C.dim, dtype=C.bounds[0].dtype)
        for rows, one in C.groups():
            a[rows] = decide_at_risk(method, x[rows], risk, chance, one, strict)
        return a
    g = owner._surface(x) if risk is None else risk_surface(owner, x, risk)
    if chance is None:
        return owner.solver.minimise(g, C, len(x)).action
    v = _limit(owner, x, chance)
    found = minimise_within(g, v, C, owner.solver)
    if strict and not found.kept.all():
        _raise_unattainable(v, found.action, found.kept)
    return found.action


def risk_surface(method: FittedMethod, x: Tensor, risk: Risk) -> RiskCost:
    """The risk of the cost at each x, recalibrated where the method is."""
    owner = with_scenarios(method, "risk=")
    if not isinstance(risk, Risk):
        raise TypeError(f"risk needs a Risk such as cs.CVaR(0.9), but got {risk!r}.")
    known = owner.calibration_
    risk = risk if known is None else risk.recalibrated(known.cost)
    return RiskCost(_task(owner), _costed(owner, x), risk)


def cost_quantiles(
    method: ScenarioMethod, x: Tensor, a: Float[Tensor, "B d"], levels: Sequence[float]
) -> Float[Tensor, "B levels"]:
    """Q of each level, or Q of the level of the scenarios that stands for it."""
    if bad := [level for level in levels if not 0 <= level <= 1]:
        raise ValueError(f"levels need to be from 0 to 1, but got {bad[0]}. 0.9 is 90 %.")
    task, scenarios, known = _task(method), _costed(method, x), method.calibration_
    with torch.no_grad():
        costs = _values(task.cost, a, scenarios, task)[:, None]
        found = []
        for level in levels:
            u = level if known is None else known.cost.to_scenarios(level)
            # without held-out rows there is no reason to look beyond the scenarios
            scale = 0.0 if known is None else known.cost.scale
            q = quantile(costs, scenarios.weights, u, scale)[:, 0]
            inside = q.clamp(costs.amin(-1)[:, 0], costs.amax(-1)[:, 0])
            found.append(inside if known is None else q)
    return torch.stack(found, 1)


def calibration_of(
    method: ScenarioMethod, x: Tensor, y: Tensor, risk: Risk | None, chance: Chance | None
) -> Calibration:
    """The ranks of held-out outcomes among the scenarios, at the decisions of the method."""
    if len(x) < FEWEST:
        raise ValueError(
            f"calibrate needs at least {FEWEST} held-out rows, but got {len(x)}. Some hundreds "
            f"make levels such as 0.9 accurate to a few percent."
        )
    chance = method.task.chance if chance is None else chance
    before, method.calibration_ = method.calibration_, None
    task, scenarios = _task(method), _scenarios(method, x)
    service: tuple[Levels, ...] = ()
    try:
        with torch.no_grad():
            a = _actions(method, x, risk, chance)
            if chance is not None:
                service = _service_levels(chance, task, scenarios, y, a)
            costs = _values(task.cost, a, _costed(method, x), task)
            cost = learn_levels(costs, scenarios.weights, task.cost(task.join(x, y), a))
    finally:
        method.calibration_ = before
    return Calibration(cost, service, chance)


def service_of(
    method: ScenarioMethod, x: Tensor, a: Float[Tensor, "B d"], chance: Chance | None
) -> Float[Tensor, "..."]:
    """P(h <= 0 given x), recalibrated where the method is."""
    chance = method.task.chance if chance is None else chance
    if chance is None:
        raise ValueError("service needs chance=cs.Chance(h, level), or a task with a chance.")
    with torch.no_grad():
        p = _limit(method, x, chance).probability(a[:, None])[:, 0]
    return p[:, 0] if p.shape[-1] == 1 else p


def with_scenarios(method: FittedMethod, wanted: str) -> ScenarioMethod:
    if not isinstance(method, ScenarioMethod):
        raise Refusal(
            f"{wanted} needs the scenarios of a method, and {type(method).__name__} gives none. "
            f"Use a method with scenarios, such as cs.DF2 or cs.TwoStage."
        )
    return method


def _actions(
    method: ScenarioMethod, x: Tensor, risk: Risk | None, chance: Chance | None
) -> Float[Tensor, "B d"]:
    if risk is None and chance is None:
        return method._decide(x)
    return decide_at_risk(method, x, risk, chance, strict=False)


def _service_levels(
    chance: Chance, task: Task, scenarios: Scenarios, y: Tensor, a: Tensor
) -> tuple[Levels, ...]:
    def h(y: Tensor, a: Tensor) -> Tensor:
        return chance.values(y, a, a.ndim - 1)

    values, observed = _values(h, a, scenarios, task), h(y, a)
    return tuple(
        learn_levels(values[..., i], scenarios.weights, observed[:, i])
        for i in range(observed.shape[-1])
    )


def _values(f: object, a: Tensor, scenarios: Scenarios, task: Task) -> Float[Tensor, "B S ..."]:
    """f of the scenarios of each row at its action."""

    def all_of_them(values: Tensor, weights: Tensor) -> Tensor:
        return values.expand(len(weights), *values.shape[1:])

    found = summarised(f, all_of_them, a[:, None], scenarios, task.width)  # type: ignore[arg-type]
    return found[:, 0]


def _limit(method: ScenarioMethod, x: Tensor, chance: Chance) -> ServiceLimit:
    if not isinstance(chance, Chance):
        raise TypeError(f"chance needs a cs.Chance(h, level), but got {chance!r}.")
    known = method.calibration_
    levels = () if known is None else known.of(chance)
    return ServiceLimit(chance, _task(method), _scenarios(method, x), levels)


def _scenarios(method: ScenarioMethod, x: Tensor) -> Scenarios:
    with torch.no_grad():
        found: Scenarios = method._fitted()(x)
    return found.pruned(DUST)


def _costed(method: ScenarioMethod, x: Tensor) -> Scenarios:
    """The scenarios as the cost takes them: with the context of their rows where it has x."""
    return ExpectedCost.at(_task(method), x, _scenarios(method, x)).scenarios


def _task(method: ScenarioMethod) -> Task:
    assert method.task_ is not None
    return method.task_


def _raise_unattainable(v: ServiceLimit, a: Tensor, kept: Tensor) -> None:
    """Say what the safest actions found attain."""
    attained = v.probability(a[:, None])[:, 0].amin(-1)
    attained = attained.masked_fill(kept, torch.inf)
    row = int(attained.argmin())
    raise ValueError(
        f"No action of the set was found that keeps the service level {v.chance.level:g} in "
        f"{int((~kept).sum())} of {len(kept)} rows. The best action found for row {row} keeps "
        f"{float(attained[row]):.3g}. Lower the level to that, or widen the set."
    )
