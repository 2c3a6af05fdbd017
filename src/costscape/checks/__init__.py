"""The contracts, as functions: run them on your own set, task, solver or method.

Each returns None, or raises AssertionError with a sentence that says what was broken.
"""

from costscape.checks.methods import check_method
from costscape.checks.sets import check_set
from costscape.checks.solvers import check_solver
from costscape.checks.tasks import check_task

__all__ = ["check_method", "check_set", "check_solver", "check_task"]
