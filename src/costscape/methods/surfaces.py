"""Methods that learn g(x, a): deciding is then the solver's work."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import is_dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor

from costscape.arrays import check_names, read, read_pairs
from costscape.chance import Chance
from costscape.methods.method import Method
from costscape.risk.measures import Risk
from costscape.scenarios import ExpectedCost, Scenarios
from costscape.sets import ConstraintSet
from costscape.solvers import Objective, Solution, Solver

S = TypeVar("S", bound="ScenarioMethod")
SOME_ROWS = 256  # that are always decided together
NUMBERS = 2**24  # of the scenarios in memory, where there are more rows


class SurfaceMethod(Method):
    """A method whose model gives the expected cost g(x, a) of every action.

    This base class has no constructor arguments. A subclass has the settings of Method and a
    solver.

    Attributes:
        solver: Solver. Minimises g(x, .) over the feasible set.

    >>> import numpy as np
    >>> import costscape as cs
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.random((40, 3)), rng.random((40, 2))
    >>> method = cs.NearestNeighbours(cs.problems.inventory(days=2), k=10).fit(X, Y)
    >>> method.expected_cost(X[:5], np.ones((5, 2))).shape
    (5,)
    """

    solver: Solver

    @abstractmethod
    def _surface(self, x: Tensor) -> Objective:
        """g(x, .), without gradients to the model."""

    def expected_cost(self, X: Any, a: Any, risk: Risk | None = None) -> Any:
        """g(x, a) for actions (B, d), one for each x, or (B or 1, J, d), J for each x.

        With ``risk``, the risk of the cost in place of its mean; it needs scenarios.
        """
        x, form = self._read(X)
        action = self._actions(a, len(x)).to(x)
        with torch.no_grad():
            g = self._surface(x) if risk is None else self._risk_surface(x, risk)
            if action.ndim == 2:
                return form.give(g(action[:, None])[:, 0], ("expected_cost",))
            return form.give(g(action), None)

    def surface(self, X: Any) -> Any:
        """g(x, .), the learned expected cost at each x, as torch speaks it."""
        return self._surface(self._read(X)[0])

    def solution(
        self, x: Tensor, start: Tensor | None = None, feasible: ConstraintSet | None = None
    ) -> Solution:
        """The decision for each x (a tensor on the model's device) and its expected cost.

        ``feasible`` is another set, or ``RowSets``; None for that of the task.
        """
        g, task = self._surface(x), self.task_
        assert task is not None
        C = task.sets(x) if feasible is None else feasible
        return self.solver.minimise(g, C, len(x), start)

    def _decide(self, x: Tensor) -> Tensor:
        parts = x.split(self._rows_at_once(x))
        return torch.cat([self.solution(part).action for part in parts])

    def _decide_in(self, x: Tensor, feasible: ConstraintSet) -> Tensor:
        rows = len(x) if feasible.by_row else self._rows_at_once(x)  # a set may belong to a row
        parts = x.split(rows)
        return torch.cat([self.solution(part, feasible=feasible).action for part in parts])

    def _rows_at_once(self, x: Tensor) -> int:
        """How many x are decided at a time, so that memory does not grow with their number."""
        if len(x) <= SOME_ROWS:
            return len(x)
        g = self._surface(x[:1])
        if not isinstance(g, ExpectedCost):
            return len(x)
        s = g.scenarios
        return max(SOME_ROWS, NUMBERS // (s.weights.numel() + (not s.shared) * s.values.numel()))

    def _risk_surface(self, x: Tensor, risk: Risk) -> Objective:
        from costscape.methods.risk_decisions import risk_surface  # few need it

        return risk_surface(self, x, risk)

    def _actions(self, a: Any, rows: int) -> Tensor:
        action, _ = read(a, "a", self.task.feasible.bounds[0].dtype)
        d = self._task().feasible.dim
        if d == 1 and action.ndim == 1:
            action = action.unsqueeze(-1)
        shape = tuple(action.shape)
        several = len(shape) == 3 and shape[0] in (1, rows) and shape[2] == d
        if shape != (rows, d) and not several:
            raise ValueError(
                f"a needs shape ({rows}, {d}), one action for each x, or ({rows}, J, {d}), but "
                f"has {shape}."
            )
        return action


class ScenarioMethod(SurfaceMethod):
    """A method whose model gives Scenarios: outcomes with weights, for each x.

    This base class has no constructor arguments. A subclass has the settings of SurfaceMethod. The
    expected cost is the weighted mean of the cost over the scenarios.

    >>> import numpy as np
    >>> import costscape as cs
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.random((40, 3)), rng.random((40, 2))
    >>> method = cs.NearestNeighbours(cs.problems.inventory(days=2), k=10).fit(X, Y)
    >>> method.scenarios(X[:5]).weights.shape
    torch.Size([5, 10])
    """

    def scenarios(self, X: Any) -> Scenarios:
        """What may happen at each x, as torch tensors: weights (B, S), values (1 or B, S, ...)."""
        x, _ = self._read(X)
        with torch.no_grad():
            s: Scenarios = self._fitted()(x)
        return Scenarios(s.weights.cpu(), s.values.cpu(), s.own)

    def cost_quantiles(self, X: Any, a: Any, levels: Sequence[float] = (0.1, 0.5, 0.9)) -> Any:
        """Quantiles (B, levels) of the cost of actions (B, d), recalibrated by ``calibrate``."""
        from costscape.methods.risk_decisions import cost_quantiles

        x, form = self._read(X)
        found = cost_quantiles(self, x, self._one_each(a, x), levels)
        return form.give(found, [f"{level:g}" for level in levels])

    def calibrate(
        self: S, X: Any, Y: Any, *, risk: Risk | None = None, chance: Chance | None = None
    ) -> S:
        """Learn from held-out rows how often the stated levels of cost and service occur.

        Pass rows from which the model has not learned, the latest, and the ``risk`` and ``chance``
        of the decisions (None: that of the task). ``cost_quantiles``, ``CVaR`` and ``Chance`` are
        then recalibrated; expected costs and plain decisions stay as they are.
        """
        from costscape.methods.risk_decisions import calibration_of

        self.calibration_ = calibration_of(self, *self._pairs(X, Y), risk, chance)
        return self

    def service(self, X: Any, a: Any, chance: Chance | None = None) -> Any:
        """P(h(y, a) <= 0 given x) of actions (B, d): (B) or (B, k), as h (None: the task's)."""
        from costscape.methods.risk_decisions import service_of

        x, form = self._read(X)
        return form.give(service_of(self, x, self._one_each(a, x), chance), None)

    def _pairs(self, X: Any, Y: Any) -> tuple[Tensor, Tensor]:
        x, _ = self._read(X)
        check_names(Y, "Y", self.columns_)
        _, y = read_pairs(X, Y, self.task.feasible.bounds[0].dtype)
        y = y.unsqueeze(-1) if y.ndim == 1 else y
        if tuple(y.shape[1:]) != self.y_shape_:
            raise ValueError(
                f"Y needs rows of shape {self.y_shape_}, as in fit, but has rows of shape "
                f"{tuple(y.shape[1:])}. Pass the outcomes the model was fitted for."
            )
        return x, y.to(x)

    def _one_each(self, a: Any, x: Tensor) -> Tensor:
        action = self._actions(a, len(x)).to(x)
        if action.ndim != 2:
            raise ValueError(f"a needs one action for each x, but has {tuple(action.shape)}.")
        return action

    def _surface(self, x: Tensor) -> ExpectedCost:
        model, task = self._fitted(), self.task_
        assert task is not None
        with torch.no_grad():
            return ExpectedCost.at(task, x, model(x))


def check_scenarios(owner: str, method: Method) -> None:
    """Raise a TypeError in the name of ``owner`` unless the method gives scenarios."""
    if not isinstance(method, Method) or not is_dataclass(method):
        raise TypeError(
            f"{owner} needs unfitted methods such as cs.TwoStage(task), but got "
            f"{type(method).__name__}. Pass the method itself."
        )
    if not isinstance(method, ScenarioMethod):
        raise TypeError(
            f"{owner} mixes scenarios, and {type(method).__name__} gives none. Take a method with "
            f"scenarios, such as cs.TwoStage, or fit {type(method).__name__} by itself."
        )
