"""The differentiable argmin that fits a feasible set."""

from costscape.sets import ConstraintSet, Finite
from costscape.solvers.implicit import Implicit
from costscape.solvers.layer import Layer
from costscape.solvers.soft_choice import SoftChoice
from costscape.solvers.solver import Solver


def argmin_layer(feasible: ConstraintSet, solver: Solver) -> Layer:
    """Return ``SoftChoice()`` for a Finite list, where nothing moves along a face, else
    ``Implicit(solver)``.
    """
    return SoftChoice() if isinstance(feasible, Finite) else Implicit(solver)
