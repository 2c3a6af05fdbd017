"""From a fitted method and one x to the explanation of its decision."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from costscape.chance import Chance
from costscape.methods.explained_choice import Choice
from costscape.methods.explanation import Explanation
from costscape.methods.explanation_tables import CostCurves, Deviations, InputEffects, PastRows
from costscape.methods.fitted_method import FittedMethod
from costscape.methods.kept_rows import KeptRows
from costscape.methods.past_rows import past_weights
from costscape.methods.surfaces import ScenarioMethod
from costscape.risk.measures import Risk
from costscape.sets import ConstraintSet, Whole
from costscape.solvers import Objective

CELLS = 40  # of a cost curve between the bounds of its coordinate
STEP = 0.01  # of the width of a coordinate, the default step
LEAST = 1e-6  # weight of a past row that is listed


def explain(
    method: FittedMethod,
    X: Any,
    step: float | None = None,
    feasible: Any = None,
    *,
    risk: Risk | None = None,
    chance: Chance | None = None,
) -> Explanation:
    """Explain the decision for one row of X, with the arguments of ``decide``."""
    if not isinstance(method, ScenarioMethod):
        raise TypeError(
            f"explain needs a method with scenarios, such as DF2, TwoStage or NearestNeighbours, "
            f"but {type(method).__name__} has none. Fit one of them to see what may happen at x."
        )
    x, _ = method._read(X)
    if len(x) != 1:
        raise ValueError(
            f"explain needs one row of X, but got {len(x)}. Pass X[i : i + 1], or "
            f"frame.iloc[[i]], row by row."
        )
    if step is not None and not step > 0:
        raise ValueError(f"explain needs a positive step, but got {step}.")
    kept = method._kept_rows("explain")
    choice = Choice.at(method, x, feasible, risk, chance)
    g, C = choice.objective(x), choice.set(x)
    with torch.no_grad():
        a = choice.actions(x)[0]
        cost = float(g(a[None, None])[0, 0])
        weights = method.scenarios(x).weights[0].double()
        names = _names(method.columns_, len(a))
        return Explanation(
            decision=_numpy(a),
            expected_cost=cost,
            names=names,
            scenarios=len(weights),
            effective_scenarios=float(1 / weights.square().sum()),
            past=_past(method, x, kept),
            curves=_curves(C, g, a, names),
            deviations=_deviations(C, g, a, names, step),
            inputs=_inputs(choice, g, a, names, x, kept),
        )


def _past(method: ScenarioMethod, x: Tensor, kept: KeptRows) -> PastRows:
    weights, rules = past_weights(method, x, kept)
    order = weights.argsort(descending=True, stable=True)
    order = order[weights[order] > LEAST]
    y = torch.full((len(kept.fold), kept.y[0].numel()), torch.nan, dtype=kept.y.dtype)
    y[kept.positions] = kept.y.flatten(1)
    return PastRows(
        labels=kept.names(order.numpy()),
        weights=_numpy(weights[order] / weights[order].sum()),
        outcomes=_numpy(y[order]),
        columns=_names(method.columns_, y.shape[1]),
        rule="; ".join(rules),
    )


def _curves(C: ConstraintSet, g: Objective, a: Tensor, names: tuple[str | int, ...]) -> CostCurves:
    d = len(a)
    lower, upper = C.bounds
    cells = torch.linspace(0, 1, CELLS + 1, device=a.device, dtype=a.dtype)
    values = lower[:, None] + cells * (upper - lower)[:, None]
    values = torch.cat([values, a[:, None]], 1).sort(1).values  # (d, J)
    J = values.shape[1]
    actions = a.expand(d, J, d).clone()
    each = torch.arange(d, device=a.device)
    actions[each, :, each] = values
    costs = g(actions.reshape(1, d * J, d))[0].view(d, J)
    return CostCurves(names, _numpy(values), _numpy(costs), C.contains(actions).cpu().numpy())


def _deviations(
    C: ConstraintSet,
    g: Objective,
    a: Tensor,
    names: tuple[str | int, ...],
    step: float | None,
) -> Deviations:
    lower, upper = C.bounds
    usual = STEP * (upper - lower)
    if isinstance(C, Whole):
        usual = C.step.where(C.step > 0, usual)
    steps = usual if step is None else torch.full_like(a, step)
    moves = torch.cat([torch.diag(steps), -torch.diag(steps), torch.zeros_like(a)[None]])
    actions = a + moves
    costs = g(actions[None])[0].double()
    up, down, here = costs.split([len(a), len(a), 1])
    may_up, may_down, _ = C.contains(actions).cpu().split([len(a), len(a), 1])
    return Deviations(
        names,
        _numpy(steps),
        _numpy(up - here),
        _numpy(down - here),
        may_up.numpy(),
        may_down.numpy(),
    )


def _inputs(
    choice: Choice,
    g: Objective,
    a: Tensor,
    names: tuple[str | int, ...],
    x: Tensor,
    kept: KeptRows,
) -> InputEffects:
    """Inputs are the entries of the last axis of x that has several: columns, or steps."""
    shape = x.shape[1:]
    axis = max((i for i, size in enumerate(shape) if size > 1), default=0)
    count = shape[axis]
    typical = kept.x.median(0).values.to(x)
    changed = x.expand(count, *shape).clone()
    for j in range(count):
        changed[j].select(axis, j).copy_(typical.select(axis, j))
    others = choice.actions(changed, strict=False)
    expected = choice.objective(changed)(others[:, None])[:, 0].double()
    here = g(torch.cat([others, a[None]])[None])[0].double()
    return InputEffects(
        names=_names(choice.method.x_columns_, count),
        coordinates=names,
        change=_numpy(a - others),
        price=_numpy(here[:-1] - here[-1]),
        expected_change=_numpy(here[-1] - expected),
    )


def _names(columns: tuple[str, ...] | None, count: int) -> tuple[str | int, ...]:
    return columns if columns is not None and len(columns) == count else tuple(range(count))


def _numpy(t: Tensor) -> np.ndarray:
    array: np.ndarray = t.detach().double().cpu().numpy()
    return array
