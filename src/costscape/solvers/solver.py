"""The contract of a solver."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from costscape.sets import Box, ConstraintSet, RowSets
from costscape.task import Refusal
from costscape.training.settings import Checked

Objective = Callable[[Tensor], Tensor]  # actions (B or 1, J, d) -> costs (B, J)


@dataclass(frozen=True)
class Solution:
    """The action found for each context, and its cost.

    ``gap`` bounds how far each cost is above the least one, up to the accuracy of the relaxed
    problem; None where the solver knows no bound.
    """

    action: Float[Tensor, "B d"]
    cost: Float[Tensor, "B"]
    gap: Float[Tensor, "B"] | None = None


class Solver(Checked, ABC):
    """Finds, for each of B contexts, an action of C with the least objective.

    The base of all solvers. A solver is a frozen dataclass of settings, without state between
    calls; this base has no settings. Row b of the answer depends only on row b of the objective.
    ``quick`` says that a decision takes few evaluations of f, so that a fit can score many rows.

    >>> import costscape as cs
    >>> corners = cs.Finite([[0.0, 0.0], [1.0, 1.0]])
    >>> cs.Exhaustive().minimise(lambda a: (a - 0.8).abs().sum(-1), corners, 1).action
    tensor([[1., 1.]])
    """

    quick: ClassVar[bool] = False
    delegates: ClassVar[bool] = False  # to ``minimise`` of another solver, which checks answers

    def minimise(
        self,
        objective: Objective,
        feasible: ConstraintSet,
        batch: int,
        start: Float[Tensor, "B d"] | None = None,
    ) -> Solution:
        """Solve ``batch`` independent problems at once.

        Args:
            objective: actions (B or 1, J, d) -> costs (B, J).
            feasible: the set C, or ``RowSets``, with a set for each row.
            batch: int, B.
            start: (B, d), where an iterative solver may begin, such as the last decision; or None.

        Every answer is checked to lie in C, and its cost to be finite.
        """
        if feasible.by_row:
            from costscape.solvers.row_problems import minimise_rows  # it imports this module

            assert isinstance(feasible, RowSets)
            solution = minimise_rows(self, objective, feasible, batch, start)
            check_feasible(solution.action, feasible, type(self).__name__)
            return solution
        if reason := self.refuses(objective, feasible):
            raise Refusal(f"{type(self).__name__} {reason}. solver=Auto() picks one that serves.")
        solution = self._minimise(objective, feasible, batch, start)
        if self.delegates:
            return solution
        check_feasible(solution.action, feasible, type(self).__name__)
        _check_finite(solution.cost, type(self).__name__)
        return solution

    @abstractmethod
    def refuses(self, objective: Objective, feasible: ConstraintSet) -> str | None:
        """Why this solver cannot take the problem, or None if it can."""

    @abstractmethod
    def coarse(self) -> "Solver":
        """A cheaper solver of the same kind, good enough to rank the epochs of a fit."""

    @abstractmethod
    def _minimise(
        self, objective: Objective, feasible: ConstraintSet, batch: int, start: Tensor | None
    ) -> Solution:
        """``minimise``, once the problem is known to fit."""


def better(a: Tensor, now: Tensor, best: Tensor, cost: Tensor) -> tuple[Tensor, Tensor]:
    """The cheaper of two points, and its cost, for each problem."""
    won = now < cost
    return torch.where(won[..., None], a, best), torch.where(won, now, cost)


def check_feasible(a: Tensor, feasible: ConstraintSet, name: str) -> None:
    if isinstance(feasible, Box) and torch.equal(feasible.project(a), a):
        return  # faster than a violation; NaN equals nothing
    bad = ~feasible.contains(a)  # NaN is in no set
    if bad.any():
        i = int(bad.nonzero()[0, 0])
        violation = feasible.violation(a)
        raise RuntimeError(
            f"{name} returned a decision outside the feasible set: row {i} breaks a constraint "
            f"by {float(violation[i]):g}, which is more than rounding ({int(bad.sum())} such "
            f"rows). Check that the cost is finite on the whole set, or choose another solver."
        )


def _check_finite(cost: Tensor, name: str) -> None:
    if isfinite(float(cost.sum())):  # then all are; else it may be too large
        return
    bad = ~cost.isfinite()
    if bad.any():
        i = int(bad.nonzero()[0, 0])
        raise RuntimeError(
            f"{name} found no decision of finite cost: the best of row {i} costs "
            f"{float(cost[i])} ({int(bad.sum())} such rows). Guard divisions, logarithms and "
            f"roots in the cost, and check the model that gives the scenarios."
        )
