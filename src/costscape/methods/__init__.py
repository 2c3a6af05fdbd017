"""Fit on (x, y), then decide: x -> a in C."""

from costscape.methods.base import Method
from costscape.methods.blend import Blend
from costscape.methods.blending import Greedy, SlopeWeights
from costscape.methods.cme import CME
from costscape.methods.constant import Constant
from costscape.methods.crossfit import CrossFit
from costscape.methods.df2 import DF2
from costscape.methods.dfl import DFL
from costscape.methods.direct import PlainNetwork
from costscape.methods.egl import EGL
from costscape.methods.energy import Langevin
from costscape.methods.forest import RandomForest
from costscape.methods.kernel import KernelSmoother
from costscape.methods.lancer import LANCER
from costscape.methods.loading import load
from costscape.methods.local_losses import (
    DirectedQuadratic,
    DirectedWeightedMSE,
    LossNetwork,
    Quadratic,
    WeightedMSE,
)
from costscape.methods.lodl import LODL
from costscape.methods.nearest import NearestNeighbours
from costscape.methods.policy_net import PolicyNet
from costscape.methods.so_ebm import SOEBM
from costscape.methods.surfaces import ScenarioMethod, SurfaceMethod
from costscape.methods.targets import Costs, Slopes
from costscape.methods.taskmet import TaskMet
from costscape.methods.two_stage import TwoStage

__all__ = [
    "CME",
    "DF2",
    "DFL",
    "EGL",
    "LANCER",
    "LODL",
    "SOEBM",
    "Blend",
    "Constant",
    "Costs",
    "CrossFit",
    "DirectedQuadratic",
    "DirectedWeightedMSE",
    "Greedy",
    "KernelSmoother",
    "Langevin",
    "LossNetwork",
    "Method",
    "NearestNeighbours",
    "PlainNetwork",
    "PolicyNet",
    "Quadratic",
    "RandomForest",
    "ScenarioMethod",
    "SlopeWeights",
    "Slopes",
    "SurfaceMethod",
    "TaskMet",
    "TwoStage",
    "WeightedMSE",
    "load",
]
