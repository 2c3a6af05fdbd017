"""Convex programs through cvxpy; the only solver that needs it installed."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from costscape.scenarios import ExpectedCost
from costscape.sets import ConstraintSet, Finite, Whole
from costscape.sets.constraint_set import Polyhedral
from costscape.sets.validation import as_numpy
from costscape.solvers.solver import Objective, Solution, Solver

PROBES = 16  # actions from which the size of g is estimated
# outcomes enter the program in their own units, so that its rows may differ by many powers of ten
SETTINGS: dict[str, dict[str, Any]] = {
    "CLARABEL": {
        "equilibrate_max_iter": 50,
        "equilibrate_min_scaling": 1e-12,
        "equilibrate_max_scaling": 1e12,
        "static_regularization_constant": 1e-12,
        "tol_gap_abs": 1e-10,
        "tol_gap_rel": 1e-10,
        "tol_infeas_abs": 1e-18,  # C is not empty: large units are no sign of it
        "tol_infeas_rel": 1e-18,
    }
}

Limits = Callable[[Any], list[Any]]  # a cvxpy variable (d,) -> its constraints


@dataclass(frozen=True)
class Convex(Solver):
    """min_a sum_s w_s f(y_s, a) over C as one convex program for each x, solved by Clarabel.

    Exact to the tolerance of an interior-point method, on any convex set; about a millisecond and
    more for each x, so fit for hundreds of decisions, not millions. Actions and costs are scaled
    to about 1, so that units do not change a decision. When all x share their
    outcomes the program is compiled once and the weights are its parameter. This solver has no
    arguments; it needs cvxpy, and the ``cvxpy`` of the task.

    >>> import costscape as cs
    >>> import cvxpy as cp
    >>> import torch
    >>> f, program = lambda y, a: (y - a).abs().sum(-1), lambda y, a: cp.sum(cp.abs(y - a), axis=1)
    >>> task = cs.Task(f, cs.Budget(total=1.0, dim=2), convex=True, cvxpy=program)
    >>> g = cs.ExpectedCost(task, cs.Scenarios(torch.ones(1, 1), torch.tensor([[[0.25, 0.5]]])))
    >>> cs.Convex().minimise(g, task.feasible, 1).action.round(decimals=3)
    tensor([[0.2500, 0.5000]])
    """

    def refuses(self, objective: Objective, feasible: ConstraintSet) -> str | None:
        if find_spec("cvxpy") is None:
            return "needs cvxpy, which is not installed (pip install 'costscape[convex]')"
        if isinstance(feasible, Finite | Whole):
            return "needs a convex set, and this set is a Finite list or Whole"
        if not isinstance(objective, ExpectedCost):
            return "needs an ExpectedCost, to write it down as a convex program"
        if not objective.task.convex:
            return "needs a convex cost, and this task was not made with convex=True"
        if objective.task.cvxpy is None:
            return "needs the cost written for cvxpy, and this task was made without cvxpy="
        return None

    def coarse(self) -> "Convex":
        return self

    def _minimise(
        self, objective: Objective, feasible: ConstraintSet, batch: int, start: Tensor | None
    ) -> Solution:
        g = cast(ExpectedCost, objective)
        return solve_programs(g, feasible, batch, limits_of(feasible), "CLARABEL")


def limits_of(feasible: ConstraintSet) -> Limits:
    """The constraints of C, each linear row divided by its size over the box around C."""
    if not isinstance(feasible, Polyhedral):
        return feasible.describe
    rows = feasible.rows()
    lower, upper = (as_numpy(end.double()) for end in feasible.bounds)
    parts = []
    for matrix, side in ((rows.A, rows.b), (rows.G, rows.h)):
        M, v = as_numpy(matrix.double()), as_numpy(side.double())
        size = np.maximum((np.abs(M) * (upper - lower)).max(1, initial=0.0), 1e-300)
        flat = size <= 1e-300  # rows of coordinates without width hold as they are
        size = np.where(flat, np.abs(M).max(1, initial=1e-300), size)
        parts.append((M / size[:, None], v / size))
    (A, b), (G, h) = parts

    def limits(a: Any) -> list[Any]:
        return [A @ a == b] * (len(A) > 0) + [G @ a <= h] * (len(G) > 0)

    return limits


def solve_programs(
    g: ExpectedCost, feasible: ConstraintSet, batch: int, limits: Limits, solver: str
) -> Solution:
    """Solve one program for each x; it is compiled once where all x share their outcomes.

    Args:
        g: the expected cost, of a task with ``cvxpy``.
        feasible: the set C, onto which answers are projected, against rounding.
        batch: int, B.
        limits: the constraints on a cvxpy variable (d,).
        solver: cvxpy's name of the solver.
    """
    values = g.scenarios.values.detach().double().cpu().numpy()
    weights = g.scenarios.weights.detach().double().cpu().numpy()
    weights = weights / _spread(g, feasible)[:, None]  # tolerances are for costs of about size 1
    lower, upper = (as_numpy(end.double()) for end in feasible.bounds)
    width = np.where(upper > lower, upper - lower, 1.0)
    program = None
    rows = []
    for b in range(batch):
        if program is None or not g.scenarios.shared:
            program = _Program(g, limits, solver, values[b if len(values) > 1 else 0], width)
        rows.append(torch.as_tensor(program.solve(weights[b], b)))
    like = feasible.bounds[0]
    a = feasible.project(torch.stack(rows).to(like))
    with torch.no_grad():
        return Solution(a, g(a[:, None])[:, 0])


class _Program:
    """The program in shares u of the intervals, a = lower + width u, with costs of about 1."""

    def __init__(
        self, g: ExpectedCost, limits: Limits, solver: str, values: Any, width: Any
    ) -> None:
        import cvxpy as cp

        assert g.task.cvxpy is not None
        self.solver = solver
        lower = as_numpy(g.task.feasible.bounds[0].double())
        u = cp.Variable((1, g.task.feasible.dim))
        self.a = lower[None] + cp.multiply(width[None], u)
        self.w = cp.Parameter(len(values), nonneg=True)
        cost = cp.sum(cp.multiply(self.w, cp.reshape(g.task.cvxpy(values, self.a), (-1,), "C")))
        rows = limits(cp.reshape(self.a, (-1,), "C"))
        self.problem = cp.Problem(cp.Minimize(cost), rows)

    def solve(self, weights: Any, row: int) -> Any:
        import cvxpy as cp

        self.w.value = weights
        self.problem.solve(solver=self.solver, **SETTINGS.get(self.solver, {}))
        if self.problem.status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
            raise RuntimeError(
                f"The convex program of row {row} ended as {self.problem.status!r}. Check that "
                f"the cost given to cvxpy= is convex and equals cost(y, a), or try ProjectedAdam."
            )
        assert self.a.value is not None
        return self.a.value[0]


def _spread(g: ExpectedCost, feasible: ConstraintSet) -> Any:
    """How much g(x, .) differs over a few actions, for each x."""
    rng = torch.Generator(feasible.bounds[0].device).manual_seed(0)
    with torch.no_grad():
        cost = g(feasible.sample(PROBES, rng)[None]).double()
    spread = as_numpy(cost.amax(1) - cost.amin(1))
    return np.where(spread > 0, spread, np.maximum(as_numpy(cost.abs().amax(1)), 1e-300))
