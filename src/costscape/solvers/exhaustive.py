"""Try every action of a finite set."""

from dataclasses import dataclass
from typing import ClassVar, cast

import torch
from torch import Tensor

from costscape.sets import ConstraintSet, Finite
from costscape.solvers.solver import Objective, Solution, Solver


@dataclass(frozen=True)
class Exhaustive(Solver):
    """Exact on a Finite set: one evaluation of g for each action of the list."""

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
