"""Problem x method x seed."""

from costscape.experiments.catalog import METHODS, PROBLEMS, Problem

__all__ = ["METHODS", "PROBLEMS", "Problem"]
