"""What the decisions cost once y is known."""

import time
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from costscape.arrays import read
from costscape.methods import Method
from costscape.scenarios import ExpectedCost, Scenarios
from costscape.sets import Box, Finite
from costscape.solvers import Exhaustive, Separable
from costscape.tasks import SeparableTask, Task


@runtime_checkable
class Truth(Protocol):
    """Knows the law of y given x, as for made-up data: gap(x, a) = E[f(y, a)|x] - its least."""

    def gap(self, x: Tensor, a: Tensor) -> Tensor: ...


@dataclass(frozen=True)
class Evaluation:
    """Means over the test rows, in the units of the cost.

    ``regret`` is f(y, a) - min_a f(y, a), None where the hindsight optimum is not known; ``gap``
    is the same in expectation over y, None without the truth. ``standard_error`` is that of the
    mean cost over rows, which are taken as independent.
    """

    cost: float
    standard_error: float
    regret: float | None
    gap: float | None
    rows: int
    decide_seconds: float
    fit_seconds: float | None
    decisions: np.ndarray = field(repr=False)
    costs: np.ndarray = field(repr=False)
    regrets: np.ndarray | None = field(repr=False)

    def __str__(self) -> str:
        parts = [f"cost {self.cost:.6g} (standard error {self.standard_error:.2g})"]
        if self.regret is not None:
            parts.append(f"regret {self.regret:.6g}")
        if self.gap is not None:
            parts.append(f"gap {self.gap:.4g}")
        parts.append(f"{self.rows} rows decided in {self.decide_seconds:.3g} s")
        if self.fit_seconds is not None:
            parts.append(f"fitted in {self.fit_seconds:.3g} s")
        return ", ".join(parts)


def evaluate(
    model: Method, X: Any, Y: Any, truth: Truth | None = None, task: Task | None = None
) -> Evaluation:
    """Decide for every row of X, and pay for it at the outcome in Y.

    ``task`` is the one that pays, the model's own by default. Its copy in double precision pays
    to the last digit where regrets are small beside costs.
    """
    dtype = model.task.feasible.bounds[0].dtype
    x, y = read(X, "X", dtype)[0].cpu(), read(Y, "Y", dtype)[0].cpu()
    if len(x) != len(y):
        raise ValueError(
            f"X and Y need the same number of rows, but have {len(x)} and {len(y)}. Each row of X "
            f"goes with the outcome that followed it."
        )
    if y.ndim == 1:
        y = y.unsqueeze(-1)
    begin = time.perf_counter()
    a = model.decide(x).reshape(len(x), -1)
    seconds = time.perf_counter() - begin
    if tuple(y.shape[1:]) != model.y_shape_:
        raise ValueError(
            f"Y needs rows of shape {model.y_shape_}, as in fit, but has rows of shape "
            f"{tuple(y.shape[1:])}. Pass the outcomes the model was fitted for."
        )
    payer = model.task if task is None else task
    home = payer.feasible.bounds[0]
    with torch.no_grad():
        costs = payer.cost(y.to(home), a.to(home))
        least = hindsight_cost(payer, y.to(home))
    regrets = None if least is None else costs - least
    return Evaluation(
        cost=float(costs.double().mean()),
        standard_error=float(costs.double().std(correction=0) / len(costs) ** 0.5),
        regret=None if regrets is None else float(regrets.double().mean()),
        gap=None if truth is None else float(truth.gap(x, a).double().mean()),
        rows=len(x),
        decide_seconds=seconds,
        fit_seconds=model.fit_seconds_,
        decisions=a.cpu().numpy(),
        costs=costs.cpu().numpy(),
        regrets=None if regrets is None else regrets.cpu().numpy(),
    )


def hindsight_cost(task: Task, y: Float[Tensor, "n ..."]) -> Float[Tensor, "n"] | None:
    """min_a f(y, a) for each y, where the task tells it or an exact solver finds it."""
    if task.hindsight is not None:
        return task.cost(y, task.hindsight(y))
    g = ExpectedCost(task, Scenarios(y.new_ones(len(y), 1), y.unsqueeze(1), own=True))
    if isinstance(task.feasible, Finite):
        return Exhaustive().minimise(g, task.feasible, len(y)).cost
    if isinstance(task, SeparableTask) and isinstance(task.feasible, Box):
        # one outcome alone is all kinks: look at every basin of a fine grid
        return Separable(own_grid=1025).minimise(g, task.feasible, len(y)).cost
    return None
