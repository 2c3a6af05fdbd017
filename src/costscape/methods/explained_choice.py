"""How the decision that is explained was chosen: in which set, by which risk and service level."""

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from costscape.chance import Chance
from costscape.methods.risk_decisions import decide_at_risk
from costscape.methods.surfaces import ScenarioMethod
from costscape.risk.measures import Risk
from costscape.sets import ConstraintSet, RowSets
from costscape.solvers import Objective


@dataclass(frozen=True, eq=False)
class Choice:
    """Decides as ``decide`` with the same arguments does.

    Args:
        method: fitted.
        feasible: ConstraintSet. Another set, for every x; None for that of the task.
        risk: Risk. Minimised in place of the expected cost; None for the latter.
        chance: Chance. A service level to keep; None for that of the task.
    """

    method: ScenarioMethod
    feasible: ConstraintSet | None
    risk: Risk | None
    chance: Chance | None

    @classmethod
    def at(
        cls,
        method: ScenarioMethod,
        x: Tensor,
        feasible: Any,
        risk: Risk | None,
        chance: Chance | None,
    ) -> "Choice":
        """The choice for a single x, whose set is taken where ``feasible`` has rows."""
        C = None if feasible is None else _single(method._sets(x, feasible))
        return cls(method, C, risk, method.task.chance if chance is None else chance)

    def actions(self, x: Tensor, strict: bool = True) -> Tensor:
        """The decision for each x; ``strict=False`` takes the safest where no level is kept."""
        if self.risk is not None or self.chance is not None:
            return decide_at_risk(
                self.method, x, self.risk, self.chance, self.feasible, strict=strict
            )
        if self.feasible is None:
            return self.method._decide(x)
        return self.method._decide_in(x, self.feasible)

    def objective(self, x: Tensor) -> Objective:
        """What the decision minimises at each x: the expected cost, or the risk."""
        if self.risk is None:
            return self.method._surface(x)
        return self.method._risk_surface(x, self.risk)

    def set(self, x: Tensor) -> ConstraintSet:
        """The set in which the decision for a single x was taken."""
        assert self.method.task_ is not None
        return _single(self.method.task_.sets(x)) if self.feasible is None else self.feasible


def _single(C: ConstraintSet) -> ConstraintSet:
    return C.row(0) if isinstance(C, RowSets) else C
