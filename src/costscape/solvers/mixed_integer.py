"""Piecewise linear convex costs on whole units, as mixed-integer programs solved by HiGHS."""

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, cast

import numpy as np
from torch import Tensor

from costscape.scenarios import ExpectedCost
from costscape.sets import ConstraintSet, Whole
from costscape.sets.validation import as_numpy
from costscape.solvers.convex import limits_of, solve_programs
from costscape.solvers.solver import Objective, Solution, Solver


@dataclass(frozen=True)
class MixedInteger(Solver):
    """min_a sum_s w_s f(y_s, a) over a Whole set as one mixed-integer program for each x.

    Exact, to HiGHS's relative gap of 1e-4, for a cost that the task's ``cvxpy`` writes as convex
    and piecewise linear, on the whole points of any Polytope. It takes about 10 ms and more for
    each x. This solver has no arguments; it needs cvxpy.

    >>> import costscape as cs
    >>> import cvxpy as cp
    >>> import torch
    >>> f, program = lambda y, a: (y - a).abs().sum(-1), lambda y, a: cp.sum(cp.abs(y - a), axis=1)
    >>> C = cs.Whole(cs.Budget(total=5.0, dim=2))
    >>> task = cs.Task(f, C, convex=True, cvxpy=program)
    >>> g = cs.ExpectedCost(task, cs.Scenarios(torch.ones(1, 1), torch.tensor([[[1.7, 2.2]]])))
    >>> cs.MixedInteger().minimise(g, task.feasible, 1).action
    tensor([[2., 2.]])
    """

    def refuses(self, objective: Objective, feasible: ConstraintSet) -> str | None:
        if find_spec("cvxpy") is None:
            return "needs cvxpy, which is not installed (pip install 'costscape[convex]')"
        if not isinstance(feasible, Whole):
            return f"needs a Whole set, and this feasible set is a {type(feasible).__name__}"
        if not isinstance(objective, ExpectedCost):
            return "needs an ExpectedCost, to write it down as a program"
        if not objective.task.convex or objective.task.cvxpy is None:
            return "needs a task made with convex=True and cvxpy="
        if not _piecewise_linear(objective, feasible.dim):
            return "needs a piecewise linear cost, and that given to cvxpy= is not"
        return None

    def coarse(self) -> "MixedInteger":
        return self

    def _minimise(
        self, objective: Objective, feasible: ConstraintSet, batch: int, start: Tensor | None
    ) -> Solution:
        c = cast(Whole, feasible)
        # scipy brings HiGHS along; cvxpy multiplies 0 by the infinite bounds of its variables
        with np.errstate(invalid="ignore"):
            return solve_programs(cast(ExpectedCost, objective), c, batch, _limits(c), "SCIPY")


def _limits(c: Whole) -> Any:
    """The constraints of the base, and a_i = origin_i + k_i step_i with whole k_i."""
    at = (c.step > 0).nonzero()[:, 0].tolist()
    step, origin = as_numpy(c.step[at].double()), as_numpy(c.origin[at].double())

    base = limits_of(c.base)

    def limits(a: Any) -> list[Any]:
        import cvxpy as cp

        k = cp.Variable(len(at), integer=True)
        # in steps, so that units do not matter
        return [*base(a), cp.multiply(1 / step, a[at]) == origin / step + k]

    return limits


def _piecewise_linear(g: ExpectedCost, dim: int) -> bool:
    import cvxpy as cp

    assert g.task.cvxpy is not None
    one = g.scenarios.values[:1, :1]
    cost = g.task.cvxpy(as_numpy(one.detach()).reshape(one.shape[1:]), cp.Variable((1, dim)))
    return bool(cost.is_pwl())
