"""Fit on (x, y), then decide: x -> a in C."""

from costscape.methods.base import Method
from costscape.methods.blend import Blend
from costscape.methods.crossfit import CrossFit
from costscape.methods.df2.df2 import DF2
from costscape.methods.df2.targets import Costs, Slopes
from costscape.methods.forecast.dfl import DFL
from costscape.methods.forecast.egl import EGL
from costscape.methods.forecast.lancer import LANCER
from costscape.methods.forecast.langevin import Langevin
from costscape.methods.forecast.local_losses import (
    DirectedQuadratic,
    DirectedWeightedMSE,
    LossNetwork,
    Quadratic,
    WeightedMSE,
)
from costscape.methods.forecast.lodl import LODL
from costscape.methods.forecast.so_ebm import SOEBM
from costscape.methods.forecast.taskmet import TaskMet
from costscape.methods.forecast.two_stage import TwoStage
from costscape.methods.loading import load
from costscape.methods.plain_network import PlainNetwork
from costscape.methods.policy_net import PolicyNet
from costscape.methods.selection import Greedy, SlopeWeights
from costscape.methods.surfaces import ScenarioMethod, SurfaceMethod
from costscape.methods.weighted.cme import CME
from costscape.methods.weighted.constant import Constant
from costscape.methods.weighted.kernel_smoother import KernelSmoother
from costscape.methods.weighted.nearest_neighbours import NearestNeighbours
from costscape.methods.weighted.random_forest import RandomForest

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
