"""Problem x method x seed."""

from costscape.experiments.catalog import FAMILIES, METHODS, method_of
from costscape.experiments.problems import PROBLEMS, Problem

__all__ = ["FAMILIES", "METHODS", "PROBLEMS", "Problem", "method_of"]
