"""Try every action of a finite set."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, cast

import torch
from torch import Tensor

from costscape.scenarios import ExpectedCost, Surface
from costscape.sets import ConstraintSet, Finite, Whole
from costscape.solvers.solver import Objective, Solution, Solver

COSTS = 2**24  # in memory at once


@dataclass(frozen=True)
class Exhaustive(Solver):
    """Evaluates g at each action of a Finite or a small Whole set, and is exact.

    Args:
        most: int, default 100_000. Largest number of points of a Whole set that are tried.

    >>> import costscape as cs
    >>> import torch
    >>> task = cs.Task(lambda y, a: (y - a).abs().sum(-1), cs.Finite([[0.0], [1.0], [2.0]]))
    >>> g = cs.ExpectedCost(task, cs.Scenarios(torch.ones(1, 1), torch.tensor([[[1.2]]])))
    >>> cs.Exhaustive().minimise(g, task.feasible, 1).action
    tensor([[1.]])
    """

    quick: ClassVar[bool] = True

    most: int = 100_000

    def refuses(self, objective: Objective, feasible: ConstraintSet) -> str | None:
        if isinstance(feasible, Whole):
            few = feasible.points(self.most) is not None
            return None if few else f"needs a set of at most {self.most:,} points"
        if not isinstance(feasible, Finite):
            return f"needs a Finite list of actions, and this set is a {type(feasible).__name__}"
        return None

    def coarse(self) -> "Exhaustive":
        return self

    def _minimise(
        self, objective: Objective, feasible: ConstraintSet, batch: int, start: Tensor | None
    ) -> Solution:
        if isinstance(feasible, Whole):
            actions = cast(Tensor, feasible.points(self.most))
        else:
            actions = cast(Finite, feasible).actions
        least, at = [], []
        with torch.no_grad():
            for rows in _rows(objective, batch, len(actions)):
                cost, k = rows(actions[None]).min(1)
                least.append(cost)
                at.append(k)
        return Solution(actions[torch.cat(at)], torch.cat(least))


def _rows(objective: Objective, batch: int, actions: int) -> Iterator[Objective]:
    """The objective of a few x at a time, so that the costs of all actions fit memory."""
    if not isinstance(objective, ExpectedCost | Surface):
        yield objective
        return
    rows = max(1, COSTS // actions)
    for first in range(0, max(batch, 1), rows):
        yield objective if batch <= rows else objective.rows(slice(first, first + rows))
