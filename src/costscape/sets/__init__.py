"""What may be chosen: the feasible set C."""

from costscape.sets.box import Box as Box
from costscape.sets.budget import Budget as Budget
from costscape.sets.constraint_set import ConstraintSet as ConstraintSet
from costscape.sets.finite import Finite as Finite
from costscape.sets.polytope import Polytope as Polytope
from costscape.sets.row_sets import RowSets as RowSets
from costscape.sets.samplers import BallWalk as BallWalk
from costscape.sets.samplers import HitAndRun as HitAndRun
from costscape.sets.samplers import OuterBox as OuterBox
from costscape.sets.simplex import Simplex as Simplex
from costscape.sets.whole import Whole as Whole
