"""The default solver: the strongest one that serves the problem."""

from dataclasses import dataclass

from torch import Tensor

from costscape.sets import ConstraintSet
from costscape.solvers.box_relaxation import BoxRelaxation
from costscape.solvers.box_search import Separable
from costscape.solvers.convex import Convex
from costscape.solvers.exhaustive import Exhaustive
from costscape.solvers.projected_adam import ProjectedAdam
from costscape.solvers.ramp_limits import RampLimits
from costscape.solvers.shared_capacity import SharedCapacity
from costscape.solvers.solver import Objective, Solution, Solver

STRONGEST_FIRST: tuple[Solver, ...] = (
    Separable(),
    Exhaustive(),
    SharedCapacity(),
    RampLimits(),
    BoxRelaxation(),
    Convex(),
    ProjectedAdam(),
)


@dataclass(frozen=True)
class Auto(Solver):
    """Solves each problem with the strongest solver that does not refuse it.

    The order is ``Separable``, ``Exhaustive``, ``SharedCapacity``, ``RampLimits``,
    ``BoxRelaxation``, ``Convex``, ``ProjectedAdam``: exact and fast solvers come first.
    ``pick`` returns the solver of a problem.

    Args:
        rough: bool, default False. True uses the coarse version of that solver, see ``coarse``.

    >>> from costscape.sets import Box
    >>> Auto().pick(lambda a: a.sum(-1), Box(0.0, 1.0, dim=2))
    ProjectedAdam(lr=0.05, steps=200, starts=2, seed=0, constant_rate=False)
    """

    rough: bool = False

    def pick(self, objective: Objective, feasible: ConstraintSet) -> Solver:
        """Return the solver that ``minimise`` uses for this objective and this set."""
        solver = next(s for s in STRONGEST_FIRST if s.refuses(objective, feasible) is None)
        return solver.coarse() if self.rough else solver

    def refuses(self, objective: Objective, feasible: ConstraintSet) -> str | None:
        return None  # Exhaustive takes every Finite set, and ProjectedAdam all others

    def coarse(self) -> "Auto":
        return Auto(rough=True)

    def _minimise(
        self, objective: Objective, feasible: ConstraintSet, batch: int, start: Tensor | None
    ) -> Solution:
        return self.pick(objective, feasible).minimise(objective, feasible, batch, start)


def resolve(solver: Solver, objective: Objective, feasible: ConstraintSet) -> Solver:
    """Return the solver itself, or the one that ``Auto`` picks for the problem."""
    return solver.pick(objective, feasible) if isinstance(solver, Auto) else solver
