"""argmin over C."""

from costscape.solvers.auto import Auto
from costscape.solvers.box_search import Separable
from costscape.solvers.convex import Convex
from costscape.solvers.cvxpy_layer import CvxpyLayer
from costscape.solvers.exhaustive import Exhaustive
from costscape.solvers.frank_wolfe import FrankWolfe
from costscape.solvers.implicit import Implicit
from costscape.solvers.layer import Layer
from costscape.solvers.mirror_descent import MirrorDescent
from costscape.solvers.projected_adam import ProjectedAdam
from costscape.solvers.solver import Objective, Solution, Solver

__all__ = [
    "Auto",
    "Convex",
    "CvxpyLayer",
    "Exhaustive",
    "FrankWolfe",
    "Implicit",
    "Layer",
    "MirrorDescent",
    "Objective",
    "ProjectedAdam",
    "Separable",
    "Solution",
    "Solver",
]
