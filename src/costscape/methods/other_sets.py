"""What-if: another feasible set for a model that is fitted already."""

from typing import Any
from warnings import warn

from jaxtyping import Float
from torch import Tensor

from costscape.context import SetOfContext, like
from costscape.methods.training_range import OutOfRange
from costscape.sets import ConstraintSet, RowSets
from costscape.task import Task

SLACK = 1e-6  # of the width of the set of the fit, which counts as rounding


def other_sets(task: Task, x: Float[Tensor, "n ..."], feasible: Any) -> ConstraintSet:
    """The set for these rows, checked: of the task's dimension, with a row for each x if any.

    Args:
        task: bound, of a fitted model.
        x: rows to decide for.
        feasible: ConstraintSet, RowSets, or a function of the context of x.

    Warns where the set leaves the bounds of the task's set: there the model was fitted to no
    action.
    """
    lower, upper = task.feasible.bounds
    if not isinstance(feasible, ConstraintSet):
        if not callable(feasible) or isinstance(feasible, type):
            raise TypeError(
                f"feasible needs a set such as Box(0.0, caps), or a function of x that returns "
                f"one, but got {feasible!r:.60} of type {type(feasible).__name__}."
            )
        c = x if task.context is None else task.context.of(x)
        feasible = SetOfContext(feasible).to(lower).at(c)
    if isinstance(feasible, RowSets) and len(feasible) != len(x):
        raise ValueError(
            f"feasible needs one set for each of the {len(x)} rows of X, or one for all, but has "
            f"{len(feasible)} rows. Make it from the same table as X."
        )
    if feasible.dim != task.feasible.dim:
        raise ValueError(
            f"feasible needs actions of {task.feasible.dim} numbers, as in fit, but has "
            f"{feasible.dim}."
        )
    C = like(feasible, lower)
    low, high = C.bounds
    slack = SLACK * (upper - lower).max()
    beyond = ((low < lower - slack) | (high > upper + slack)).nonzero()
    if len(beyond):
        i = int(beyond[0, 0])
        warn(
            f"The set allows {float(low[i]):g} to {float(high[i]):g} for a_{i}, but the fit has "
            f"seen actions from {float(lower[i]):g} to {float(upper[i]):g} only ({len(beyond)} "
            f"such coordinates). Expected costs beyond are extrapolated: fit again with the wider "
            f"set.",
            OutOfRange,
            stacklevel=4,
        )
    return C
