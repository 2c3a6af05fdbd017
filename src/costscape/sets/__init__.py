"""What may be chosen: the feasible set C."""

from costscape.sets.box import Box
from costscape.sets.budget import Budget
from costscape.sets.constraint_set import ConstraintSet
from costscape.sets.finite import Finite
from costscape.sets.polytope import Polytope
from costscape.sets.samplers import BallWalk, HitAndRun, OuterBox
from costscape.sets.simplex import Simplex

__all__ = [
    "BallWalk",
    "Box",
    "Budget",
    "ConstraintSet",
    "Finite",
    "HitAndRun",
    "OuterBox",
    "Polytope",
    "Simplex",
]
