"""Try every action of a finite set."""

from dataclasses import dataclass
from typing import ClassVar, cast

import torch
from torch import Tensor

from costscape.sets import ConstraintSet, Finite
from costscape.solvers.solver import Objective, Solution, Solver


@dataclass(frozen=True)
class Exhaustive(Solver):
    """Evaluates g at each action of a Finite set, and is exact. This solver has no arguments.

    >>> import costscape as cs
    >>> import torch
    >>> task = cs.Task(lambda y, a: (y - a).abs().sum(-1), cs.Finite([[0.0], [1.0], [2.0]]))
    >>> g = cs.ExpectedCost(task, cs.Scenarios(torch.ones(1, 1), torch.tensor([[[1.2]]])))
    >>> cs.Exhaustive().minimise(g, task.feasible, 1).action
    tensor([[1.]])
    """

    quick: ClassVar[bool] = True

    def refuses(self, objective: Objective, feasible: ConstraintSet) -> str | None:
        if not isinstance(feasible, Finite):
            return f"needs a Finite list of actions, and this set is a {type(feasible).__name__}"
        return None

    def coarse(self) -> "Exhaustive":
        return self

    def _minimise(
        self, objective: Objective, feasible: ConstraintSet, batch: int, start: Tensor | None
    ) -> Solution:
        actions = cast(Finite, feasible).actions
        with torch.no_grad():
            cost, k = objective(actions[None]).min(1)
        return Solution(actions[k], cost)
