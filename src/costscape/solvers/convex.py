"""Convex programs through cvxpy; the only solver that needs it installed."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, cast

import torch
from torch import Tensor

from costscape.scenarios import ExpectedCost
from costscape.sets import ConstraintSet, Finite, Whole
from costscape.solvers.solver import Objective, Solution, Solver

Limits = Callable[[Any], list[Any]]  # a cvxpy variable (d,) -> its constraints


@dataclass(frozen=True)
class Convex(Solver):
    """min_a sum_s w_s f(y_s, a) over C as one convex program for each x, solved by Clarabel.

    Exact to the tolerance of an interior-point method, on any convex set; about a millisecond and
    more for each x, so fit for hundreds of decisions, not millions. When all x share their
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
        return solve_programs(g, feasible, batch, feasible.describe, "CLARABEL")


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
    program = None
    rows = []
    for b in range(batch):
        if program is None or not g.scenarios.shared:
            program = _Program(g, limits, solver, values[b if len(values) > 1 else 0])
        rows.append(torch.as_tensor(program.solve(weights[b], b)))
    like = feasible.bounds[0]
    a = feasible.project(torch.stack(rows).to(like))
    with torch.no_grad():
        return Solution(a, g(a[:, None])[:, 0])


class _Program:
    def __init__(self, g: ExpectedCost, limits: Limits, solver: str, values: Any) -> None:
        import cvxpy as cp

        assert g.task.cvxpy is not None
        self.solver = solver
        self.a = cp.Variable((1, g.task.feasible.dim))
        self.w = cp.Parameter(len(values), nonneg=True)
        cost = cp.sum(cp.multiply(self.w, cp.reshape(g.task.cvxpy(values, self.a), (-1,), "C")))
        rows = limits(cp.reshape(self.a, (-1,), "C"))
        self.problem = cp.Problem(cp.Minimize(cost), rows)

    def solve(self, weights: Any, row: int) -> Any:
        import cvxpy as cp

        self.w.value = weights
        self.problem.solve(solver=self.solver)
        if self.problem.status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
            raise RuntimeError(
                f"The convex program of row {row} ended as {self.problem.status!r}. Check that "
                f"the cost given to cvxpy= is convex and equals cost(y, a), or try ProjectedAdam."
            )
        assert self.a.value is not None
        return self.a.value[0]
