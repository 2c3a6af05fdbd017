"""Problems whose set changes from row to row, solved by any solver.

    min_{a in C_b} g_b(a) = min_{u in base} g_b(offset_b + scale_b u)   for scaled copies of a base

The right-hand side has one set for all rows, so the solver takes all rows at once. Other sets are
solved in groups of rows with equal sets.
"""

from dataclasses import dataclass

from jaxtyping import Float, Int64
from torch import Tensor

from costscape.scenarios import ExpectedCost, Surface
from costscape.sets.row_sets import RowSets, ScaledRows
from costscape.solvers.auto import resolve
from costscape.solvers.solver import Objective, Solution, Solver


@dataclass(frozen=True)
class Scaled:
    """u -> g(x, offset + scale u), the objective on the base of ``ScaledRows``.

    Args:
        objective: actions (B, J, d) -> costs (B, J).
        offset: (B, d).
        scale: (B, d).
    """

    objective: Objective
    offset: Float[Tensor, "B d"]
    scale: Float[Tensor, "B d"]

    @property
    def separable(self) -> bool:
        return isinstance(self.objective, ExpectedCost | Surface) and self.objective.separable

    @property
    def convex(self) -> bool:
        return isinstance(self.objective, ExpectedCost | Surface) and self.objective.convex

    @property
    def shared(self) -> bool:
        return False  # points shared by all x are other actions for each x

    def __call__(self, u: Float[Tensor, "#B J d"]) -> Float[Tensor, "B J"]:
        return self.objective(self._actions(u))

    def terms(self, u: Float[Tensor, "#B J d"]) -> Float[Tensor, "B J d"]:
        assert isinstance(self.objective, ExpectedCost | Surface)
        return self.objective.terms(self._actions(u))

    def rows(self, i: slice) -> "Scaled":
        assert isinstance(self.objective, ExpectedCost | Surface)
        return Scaled(self.objective.rows(i), self.offset[i], self.scale[i])

    def _actions(self, u: Tensor) -> Tensor:
        return self.offset[:, None] + self.scale[:, None] * u


def minimise_rows(
    solver: Solver, objective: Objective, sets: RowSets, batch: int, start: Tensor | None
) -> Solution:
    """``solver.minimise`` for one set for each row."""
    if len(sets) != batch:
        raise ValueError(
            f"The sets need one row for each x, {batch} in all, but have {len(sets)}. Make them "
            f"from the same table as X."
        )
    if isinstance(sets, ScaledRows):
        scaled = Scaled(objective, sets.offset, sets.scale)
        chosen = resolve(solver, objective, sets.row(0))
        if chosen.refuses(scaled, sets.base) is None:
            first = None if start is None else sets.base.project(sets.shares(start))
            found = chosen.minimise(scaled, sets.base, batch, first)
            return Solution(sets.project(sets.actions(found.action)), found.cost, found.gap)
    action, cost = None, None
    for index, C in sets.groups():
        first = None if start is None else start[index]
        found = solver.minimise(_some(objective, index, batch), C, len(index), first)
        if action is None or cost is None:
            action = found.action.new_empty(batch, C.dim)
            cost = found.cost.new_empty(batch)
        action[index], cost[index] = found.action, found.cost
    assert action is not None
    assert cost is not None
    return Solution(action, cost)


def _some(objective: Objective, index: Int64[Tensor, "k"], batch: int) -> Objective:
    """The objective of some rows; one that knows no rows is evaluated for all of them."""
    if isinstance(objective, ExpectedCost):
        return objective.on(objective.scenarios.rows(index))

    def of_all(a: Float[Tensor, "#k J d"]) -> Float[Tensor, "k J"]:
        every = a.new_zeros(batch, *a.shape[1:])
        return objective(every.index_copy(0, index, a.expand(len(index), -1, -1)))[index]

    return of_all
