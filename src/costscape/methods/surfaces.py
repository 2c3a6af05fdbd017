"""Methods that learn g(x, a): deciding is then the solver's work."""

from abc import abstractmethod
from dataclasses import is_dataclass
from typing import Any

import torch
from torch import Tensor

from costscape.arrays import read
from costscape.methods.method import Method
from costscape.scenarios import ExpectedCost, Scenarios
from costscape.sets import ConstraintSet
from costscape.solvers import Objective, Solution, Solver


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

    def expected_cost(self, X: Any, a: Any) -> Any:
        """g(x, a) for actions (B, d), one for each x, or (B or 1, J, d), J for each x."""
        x, form = self._read(X)
        action = self._actions(a, len(x)).to(x)
        with torch.no_grad():
            if action.ndim == 2:
                return form.give(self._surface(x)(action[:, None])[:, 0], ("expected_cost",))
            return form.give(self._surface(x)(action), None)

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
        return self.solution(x).action

    def _decide_in(self, x: Tensor, feasible: ConstraintSet) -> Tensor:
        return self.solution(x, feasible=feasible).action

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
