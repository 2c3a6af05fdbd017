"""Fit on (x, y), then decide: x -> a in C."""

from costscape.methods.base import Method, ScenarioMethod
from costscape.methods.constant import Constant
from costscape.methods.df2 import DF2
from costscape.methods.loading import load
from costscape.methods.nearest import NearestNeighbours
from costscape.methods.two_stage import TwoStage

__all__ = ["DF2", "Constant", "Method", "NearestNeighbours", "ScenarioMethod", "TwoStage", "load"]
