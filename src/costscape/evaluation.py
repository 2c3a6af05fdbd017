"""The cost of decisions at the observed outcomes."""

import time
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from costscape.arrays import check_names, read_pairs
from costscape.block_bootstrap import at_least_two, block_length, standard_error
from costscape.data.dataset import check_count
from costscape.methods import Method
from costscape.scenarios import ExpectedCost, Scenarios
from costscape.sets import Box, ConstraintSet, Finite, RowSets, Whole
from costscape.solvers import Auto, Exhaustive, Separable, WholeSearch
from costscape.task import Task


@runtime_checkable
class Truth(Protocol):
    """Knows the law of y given x, as for synthetic data: gap = E[f(y, a) | x] - its minimum."""

    def gap(self, x: Tensor, a: Tensor) -> Tensor: ...


@dataclass(frozen=True)
class Evaluation:
    """The result of ``evaluate``: costs of decisions on the test rows, in the units of the cost.

    Attributes:
        cost: float. Mean of f(y, a) over the rows.
        standard_error: float. Of the mean cost over rows, by a moving-block bootstrap, since
            neighbouring rows are alike.
        regret: float. Mean of f(y, a) - min_a f(y, a); None where the hindsight optimum is not
            known.
        gap: float. The regret in expectation over y given x; None without the truth.
        rows: int. Number of test rows n.
        decide_seconds: float. Time to decide for all rows.
        fit_seconds: float. Time of the fit; None where the model does not know it.
        decisions: numpy array (n, d). The action of each row.
        costs: numpy array (n,). The cost of each row.
        regrets: numpy array (n,). The regret of each row, or None.
        gaps: numpy array (n,). The gap of each row, or None.

    >>> import costscape as cs
    >>> import torch
    >>> task = cs.SeparableTask(lambda y, a: (y - a).abs(), cs.Box(0.0, 1.0, dim=1))
    >>> x = torch.linspace(0, 1, 50)[:, None]
    >>> result = cs.evaluate(cs.Constant(task).fit(x, x), x, x)
    >>> result.rows, result.decisions.shape, round(result.cost, 2)
    (50, (50, 1), 0.26)
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
    gaps: np.ndarray | None = field(repr=False)

    @property
    def normalised_regret(self) -> float | None:
        """The sum of all regrets over the sum of the least costs in hindsight, without signs.

        A share of the cost, as papers on linear costs print it; None where regrets are not known.
        """
        if self.regrets is None:
            return None
        return float(self.regrets.sum() / np.abs(self.costs - self.regrets).sum())

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
    model: Method,
    X: Any,
    Y: Any,
    truth: Truth | None = None,
    task: Task | None = None,
    block: int | None = None,
) -> Evaluation:
    """Decide for every row of X and compute the cost of each decision at the outcome in Y.

    Args:
        model: a fitted method.
        X: features (n, ...), as in ``fit``.
        Y: outcomes (n, *y_shape).
        truth: the law of y given x, where it is known; gives the ``gap``.
        task: the task whose cost is computed; None for the model's. A copy in double precision
            computes regrets that are small beside costs to the last digit.
        block: rows of a block of the standard error; None for the cube root of n. If rows are
            windows that overlap, pass at least as many rows as share an outcome. Blocks are
            shortened to half of the rows.

    >>> import costscape as cs
    >>> task = cs.SeparableTask(lambda y, a: (y - a).abs(), cs.Box(0.0, 1.0, dim=1))
    >>> x = torch.linspace(0, 1, 50)[:, None]
    >>> model = cs.NearestNeighbours(task, k=1).fit(x, x)
    >>> cs.evaluate(model, x[:40], x[:40]).rows
    40
    """
    dtype = model.task.feasible.bounds[0].dtype
    check_names(X, "X", model.x_columns_)
    check_names(Y, "Y", model.columns_)
    x, y = (t.cpu() for t in read_pairs(X, Y, dtype))
    y = y.unsqueeze(-1) if y.ndim == 1 else y
    if block is not None:
        check_count("evaluate", "block", block)
    block = at_least_two(block_length(len(x)) if block is None else block, len(x))
    begin = time.perf_counter()
    a = model.decide(x).reshape(len(x), -1)
    seconds = time.perf_counter() - begin
    if tuple(y.shape[1:]) != model.y_shape_:
        raise ValueError(
            f"Y needs rows of shape {model.y_shape_}, as in fit, but has rows of shape "
            f"{tuple(y.shape[1:])}. Pass the outcomes the model was fitted for."
        )
    rows = x.unsqueeze(-1) if x.ndim == 1 else x
    task = (model.task if task is None else task).bound(rows, model.x_columns_)
    home = task.feasible.bounds[0]
    with torch.no_grad():
        joined = task.join(rows, y).to(home)
        costs = task.cost(joined, a.to(home))
        least = hindsight_cost(task, joined, task.sets(rows.to(home)))
    regrets = None if least is None else costs - least
    gaps = None if truth is None else truth.gap(x, a)
    return Evaluation(
        cost=float(costs.double().mean()),
        standard_error=standard_error(costs.double().cpu().numpy(), block),
        regret=None if regrets is None else float(regrets.double().mean()),
        gap=None if gaps is None else float(gaps.double().mean()),
        rows=len(x),
        decide_seconds=seconds,
        fit_seconds=model.fit_seconds_,
        decisions=a.cpu().numpy(),
        costs=costs.cpu().numpy(),
        regrets=None if regrets is None else regrets.cpu().numpy(),
        gaps=None if gaps is None else gaps.cpu().numpy(),
    )


def hindsight_cost(
    task: Task, y: Float[Tensor, "n ..."], sets: ConstraintSet | None = None
) -> Float[Tensor, "n"] | None:
    """min_a f(y, a) for each y, if ``task.hindsight`` or an exact solver gives it, or None.

    With a context y is joined to it, see ``Task.join``; ``sets`` is the set of these rows.
    """
    if task.hindsight is not None:
        return task.cost(y, _hindsight(task, y))
    g = ExpectedCost(task, Scenarios(y.new_ones(len(y), 1), y.unsqueeze(1), own=True))
    C = task.feasible if sets is None else sets
    one = C.row(0) if isinstance(C, RowSets) else C
    if isinstance(one, Finite):
        return Exhaustive().minimise(g, C, len(y)).cost
    if isinstance(one, Whole):
        found = Auto().pick(g, one)
        if isinstance(found, WholeSearch):
            return None  # it may miss the best action
        return found.minimise(g, C, len(y)).cost
    if task.separable and isinstance(one, Box):
        # the cost at a single outcome has kinks: search every basin of a fine grid
        return Separable(own_grid=1025).minimise(g, C, len(y)).cost
    return None


def _hindsight(task: Task, y: Tensor) -> Tensor:
    """The actions of ``task.hindsight``, which must be one of C for each y."""
    assert task.hindsight is not None
    a = task.hindsight(y)
    needed = (len(y), task.feasible.dim)
    if not isinstance(a, Tensor) or tuple(a.shape) != needed:
        came = f"shape {tuple(a.shape)}" if isinstance(a, Tensor) else type(a).__name__
        raise ValueError(
            f"hindsight(y) needs to return {needed}, one action for each of {len(y)} outcomes, "
            f"but returned {came}."
        )
    if not bool(task.feasible.contains(a).all()):
        worst = float(task.feasible.violation(a).max())
        raise ValueError(
            f"hindsight(y) needs to return actions of the feasible set, but some break a "
            f"constraint by {worst:g}. Project them, as with task.feasible.project(a)."
        )
    return a
