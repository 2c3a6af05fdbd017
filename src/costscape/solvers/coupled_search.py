"""What the solvers share for a cost that is a sum over coordinates, on a set that couples them.

minimise  g(x, a) = sum_i g_i(x, a_i)  over  C = {lower <= a <= upper, and linear rows}
"""

from abc import abstractmethod
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from costscape.scenarios import ExpectedCost, Surface
from costscape.sets import Box, ConstraintSet
from costscape.sets.constraint_set import Polyhedral
from costscape.solvers.solver import Objective, Solver

Grid = Float[Tensor, "B d J"]


@dataclass(frozen=True)
class CoupledSearch(Solver):
    """Base of the solvers for a SeparableTask on a set with coupling rows.

    Args:
        grid: int. Points in a window, odd.
        halvings: int, default 17. Actions are within 2^-halvings of the interval.
    """

    quick: ClassVar[bool] = True

    grid: int
    halvings: int = 17

    needs_convex: ClassVar[bool]

    def refuses(self, objective: Objective, feasible: ConstraintSet) -> str | None:
        if not isinstance(objective, ExpectedCost | Surface) or not objective.separable:
            return "needs a SeparableTask, whose cost is a sum over coordinates"
        if self.needs_convex and not objective.convex:
            return "needs a cost that is convex in a, promised by convex=True of the task"
        if not isinstance(feasible, Polyhedral) or isinstance(feasible, Box):
            return f"needs linear rows that couple coordinates, not a {type(feasible).__name__}"
        return self._refuses_rows(feasible)

    @abstractmethod
    def _refuses_rows(self, feasible: Polyhedral) -> str | None:
        """Why the rows of this set cannot be taken, or None."""


def in_double(g: Surface) -> Surface:
    """The same g in double precision; g itself where it is no ExpectedCost.

    Evaluating it raises a RuntimeError where f multiplies by a tensor of its own in single
    precision that is no buffer of the task.
    """
    if not isinstance(g, ExpectedCost) or g.scenarios.weights.dtype == torch.float64:
        return g
    s, task = g.scenarios, g.task
    tensors = [*task.named_buffers(), *task.named_parameters()]
    if any(v.is_floating_point() and not name.startswith("feasible.") for name, v in tensors):
        task = deepcopy(task).double()
    double = replace(s, weights=s.weights.double(), values=s.values.double())
    return ExpectedCost(task, double, g.memory)
