"""The strongest solver that serves."""

from costscape.sets import ConstraintSet
from costscape.solvers.base import Objective, Solver
from costscape.solvers.box_search import Separable
from costscape.solvers.convex import Convex
from costscape.solvers.exhaustive import Exhaustive
from costscape.solvers.projected_adam import ProjectedAdam

STRONGEST_FIRST: tuple[Solver, ...] = (Exhaustive(), Separable(), Convex(), ProjectedAdam())


def choose(objective: Objective, feasible: ConstraintSet) -> Solver:
    """The first of exhaustive, exact separable, convex and projected Adam that does not refuse.

    >>> from costscape.sets import Box
    >>> choose(lambda a: a.sum(-1), Box(0.0, 1.0, dim=2))
    ProjectedAdam(lr=0.05, steps=200, starts=2, seed=0, constant_rate=False)
    """
    return next(s for s in STRONGEST_FIRST if s.refuses(objective, feasible) is None)
