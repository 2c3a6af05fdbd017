"""Tasks of the zoo, each with its best action in hindsight, and two kinds of limits."""

from functools import partial

import numpy as np
from torch import Tensor

from costscape.bench.zoo.zoo_costs import Priced, traded
from costscape.problems.hindsight import Hindsight
from costscape.problems.two_sided import TwoSided
from costscape.sets import Box, ConstraintSet, Finite, Polytope
from costscape.solvers import Auto, Exhaustive
from costscape.task import SeparableTask, Task
from costscape.task_arguments import Cost


def separable(terms: Cost, feasible: ConstraintSet, *, convex: bool = True) -> Task:
    """A sum over coordinates, each summand least at a_i = y_i, on any set.

    Sets other than a box or a list need a two-sided cost, for which hindsight is a convex program.
    """
    normal = terms.mean if isinstance(terms, TwoSided | Priced) else None
    task = SeparableTask(terms, feasible, convex=convex, normal=normal)
    if isinstance(feasible, Box):
        task.hindsight = feasible.project
    elif isinstance(feasible, Finite):
        task.hindsight = Hindsight(SeparableTask(terms, feasible), Exhaustive())
    else:
        assert isinstance(terms, TwoSided | Priced)
        task.hindsight = Hindsight(SeparableTask(terms, feasible, convex=True), Auto())
    return task


def listed(cost: Cost, feasible: Finite) -> Task:
    """Any cost on a finite list."""
    return Task(cost, feasible, hindsight=Hindsight(Task(cost, feasible), Exhaustive()))


def coupled(cost: Cost, feasible: ConstraintSet) -> Task:
    """A convex cost of all coordinates together.

    The best action in hindsight is the cost's ``hindsight(y)`` where it has one, otherwise the
    point of the set nearest to y.
    """
    best = getattr(cost, "hindsight", feasible.project)
    return Task(cost, feasible, convex=True, hindsight=best)


def battery(wear: float) -> Task:
    """Buy and sell in 8 hours at prices y above or below their mean; see ``traded``."""
    eye, level = np.eye(8), np.tril(np.ones((8, 8)))
    # power at most 1, and between 0 and 2 in store, from 1 on
    feasible = Polytope(G=np.concatenate([eye, -eye, level, -level]), h=np.ones(32))

    best = partial(_nearest, feasible, wear)
    return SeparableTask(partial(traded, wear=wear), feasible, convex=True, hindsight=best)


def _nearest(feasible: Polytope, wear: float, y: Tensor) -> Tensor:
    """argmin of y . a + wear |a|^2."""
    return feasible.project(-y / (2 * wear))


def ramp_limits(dim: int, upper: float, limit: float) -> Polytope:
    """0 <= a_i <= upper and |a_i - a_(i+1)| <= limit."""
    eye, change = np.eye(dim), np.diff(np.eye(dim), axis=0)
    G = np.concatenate([eye, -eye, change, -change])
    h = np.repeat([upper, 0.0, limit, limit], [dim, dim, dim - 1, dim - 1])
    return Polytope(G=G, h=h)
