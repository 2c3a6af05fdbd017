"""argmin over C."""

from costscape.solvers.argmin_layer import argmin_layer as argmin_layer
from costscape.solvers.auto import Auto as Auto
from costscape.solvers.box_relaxation import BoxRelaxation as BoxRelaxation
from costscape.solvers.box_search import Separable as Separable
from costscape.solvers.convex import Convex as Convex
from costscape.solvers.coupled_rows import CoupledRows as CoupledRows
from costscape.solvers.cvxpy_layer import CvxpyLayer as CvxpyLayer
from costscape.solvers.exhaustive import Exhaustive as Exhaustive
from costscape.solvers.frank_wolfe import FrankWolfe as FrankWolfe
from costscape.solvers.implicit import Implicit as Implicit
from costscape.solvers.layer import Layer as Layer
from costscape.solvers.mirror_descent import MirrorDescent as MirrorDescent
from costscape.solvers.mixed_integer import MixedInteger as MixedInteger
from costscape.solvers.projected_adam import ProjectedAdam as ProjectedAdam
from costscape.solvers.ramp_limits import RampLimits as RampLimits
from costscape.solvers.shared_capacity import SharedCapacity as SharedCapacity
from costscape.solvers.soft_choice import SoftChoice as SoftChoice
from costscape.solvers.solver import Objective as Objective
from costscape.solvers.solver import Solution as Solution
from costscape.solvers.solver import Solver as Solver
from costscape.solvers.whole_search import WholeSearch as WholeSearch
from costscape.solvers.whole_separable import WholeSeparable as WholeSeparable
