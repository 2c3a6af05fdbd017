"""argmin over C."""

from costscape.solvers.auto import Auto
from costscape.solvers.base import Objective, Solution, Solver
from costscape.solvers.box_relaxation import BoxRelaxation
from costscape.solvers.box_search import Separable
from costscape.solvers.convex import Convex
from costscape.solvers.cvxpy_layer import CvxpyLayer
from costscape.solvers.exhaustive import Exhaustive
from costscape.solvers.frank_wolfe import FrankWolfe
from costscape.solvers.implicit import Implicit
from costscape.solvers.layer import Layer
from costscape.solvers.mirror_descent import MirrorDescent
from costscape.solvers.projected_adam import ProjectedAdam
from costscape.solvers.ramp_limits import RampLimits
from costscape.solvers.shared_capacity import SharedCapacity

__all__ = [
    "Auto",
    "BoxRelaxation",
    "Convex",
    "CvxpyLayer",
    "Exhaustive",
    "FrankWolfe",
    "Implicit",
    "Layer",
    "MirrorDescent",
    "Objective",
    "ProjectedAdam",
    "RampLimits",
    "Separable",
    "SharedCapacity",
    "Solution",
    "Solver",
]
