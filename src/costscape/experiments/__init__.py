"""Problem x method x seed."""

from costscape.experiments.catalog import FAMILIES, METHODS, PROBLEMS, Problem, method_of

__all__ = ["FAMILIES", "METHODS", "PROBLEMS", "Problem", "method_of"]
