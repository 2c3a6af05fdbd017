"""The default solver: the strongest one that serves the problem."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from costscape.sets import ConstraintSet
from costscape.solvers.convex import Convex
from costscape.solvers.coupled_rows import CoupledRows
from costscape.solvers.exhaustive import Exhaustive
from costscape.solvers.mixed_integer import MixedInteger
from costscape.solvers.projected_adam import ProjectedAdam
from costscape.solvers.solver import Objective, Solution, Solver
from costscape.solvers.whole_search import CONTINUOUS, WholeSearch
from costscape.solvers.whole_separable import WholeSeparable

FEW = 2_000  # points of a Whole set that are tried in every epoch of a fit

# solvers of continuous actions refuse lists and whole units, and the others refuse the rest
STRONGEST_FIRST: tuple[Solver, ...] = (
    *CONTINUOUS,
    WholeSeparable(),
    Exhaustive(),
    MixedInteger(),
    WholeSearch(),
)
COARSE_FIRST: tuple[Solver, ...] = (
    # several rows are scored by BoxRelaxation as ever, so that fits keep their bits
    *(s.coarse() for s in CONTINUOUS if not isinstance(s, CoupledRows)),
    WholeSeparable().coarse(),
    Exhaustive(most=FEW),
    WholeSearch().coarse(),
)


@dataclass(frozen=True)
class Auto(Solver):
    """Solves each problem with the strongest solver that does not refuse it.

    The order is ``Exhaustive`` on a Finite list; ``WholeSeparable``, ``Exhaustive``,
    ``MixedInteger``, ``WholeSearch`` on a Whole set; ``Separable``, ``SharedCapacity``,
    ``RampLimits``, ``CoupledRows``, ``BoxRelaxation``, ``Convex``, ``ProjectedAdam`` on others:
    exact and fast solvers come first. ``pick`` returns the solver of a problem.

    Args:
        rough: bool, default False. True uses the coarse version of that solver, see ``coarse``.

    >>> from costscape.sets import Box
    >>> Auto().pick(lambda a: a.sum(-1), Box(0.0, 1.0, dim=2))
    ProjectedAdam(lr=0.05, steps=200, starts=2, seed=0, constant_rate=False)
    """

    delegates: ClassVar[bool] = True

    rough: bool = False

    def pick(self, objective: Objective, feasible: ConstraintSet) -> Solver:
        """Return the solver that ``minimise`` uses for this objective and this set."""
        solvers = COARSE_FIRST if self.rough else STRONGEST_FIRST
        return next(s for s in solvers if s.refuses(objective, feasible) is None)

    def refuses(self, objective: Objective, feasible: ConstraintSet) -> str | None:
        return None  # Exhaustive takes lists, WholeSearch whole units, ProjectedAdam all others

    def coarse(self) -> "Auto":
        return Auto(rough=True)

    def _minimise(
        self, objective: Objective, feasible: ConstraintSet, batch: int, start: Tensor | None
    ) -> Solution:
        return self.pick(objective, feasible).minimise(objective, feasible, batch, start)


def without_programs(solver: Solver) -> Solver:
    """The solver, or a faster search in place of one that solves a program for each x."""
    if isinstance(solver, Convex):
        return ProjectedAdam()
    return WholeSearch() if isinstance(solver, MixedInteger) else solver


def resolve(solver: Solver, objective: Objective, feasible: ConstraintSet) -> Solver:
    """Return the solver itself, or the one that ``Auto`` picks for the problem."""
    return solver.pick(objective, feasible) if isinstance(solver, Auto) else solver
