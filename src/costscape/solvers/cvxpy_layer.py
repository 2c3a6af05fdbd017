"""The argmin as a convex program, differentiated as a cone program.

    minimise w . t   over (a, t)   subject to   f(y_s, a) <= t_s,   A a = b,   G a <= h

with parameters w (S) and y (S, *y_shape). The epigraph t keeps w and y apart: a product of two
parameters could not be compiled once for all their values. Agrawal et al., 2019 (cvxpylayers).
"""

from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from costscape.scenarios import ExpectedCost
from costscape.sets import Finite, Whole
from costscape.solvers.layer import Layer
from costscape.task import Refusal, Task

SOLVE = {"solve_method": "Clarabel"} | dict.fromkeys(
    ("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-10
)
# diffcp's own lsqr stops early: with it smooth gradients on a box were 3e-2 off, not 1e-6
DIFFERENTIATE = {"mode": "lsmr"}
FAITHFUL = 1e-3  # relative difference of costs put down to single precision
Programs = WeakKeyDictionary[Task, dict[tuple[int, ...], Any]]


@dataclass(frozen=True)
class CvxpyLayer(Layer):
    """Clarabel forward, diffcp backward, one program for each x, in double precision on the CPU.

    For any convex set and a convex cost written for cvxpy, whose ``cvxpy`` must also take y as a
    cvxpy parameter. Hundreds of times slower than ``Implicit``, and tested against it: the two
    share no code. A weight of exactly 0 leaves its t_s free, and has no reliable gradient.
    Programs are compiled once for each task and shape of y, and live as long as the layer and
    the task; a copied or unpickled layer compiles its own. This layer has no arguments.

    >>> import costscape as cs
    >>> import cvxpy as cp
    >>> import torch
    >>> f, program = lambda y, a: ((y - a) ** 2).sum(-1), lambda y, a: cp.sum((y - a) ** 2, axis=1)
    >>> task = cs.Task(f, cs.Box(0.0, 1.0, dim=2), convex=True, cvxpy=program)
    >>> y = torch.tensor([[[0.25, 0.5]]], requires_grad=True)
    >>> a = cs.CvxpyLayer()(cs.ExpectedCost(task, cs.Scenarios(torch.ones(1, 1), y)))
    >>> a.sum().backward()
    >>> y.grad.round(decimals=3)
    tensor([[[1., 1.]]])
    """

    _programs: Programs = field(
        default_factory=WeakKeyDictionary, init=False, repr=False, compare=False
    )

    def __reduce__(self) -> tuple[type["CvxpyLayer"], tuple[()]]:
        return CvxpyLayer, ()

    def refuses(self, task: Task) -> str | None:
        if find_spec("cvxpylayers") is None or find_spec("diffcp") is None:
            return "needs cvxpylayers, which is not installed (pip install 'costscape[convex]')"
        if isinstance(task.feasible, Finite | Whole):
            return "needs a convex set, and this set is a Finite list or Whole"
        if not task.convex:
            return "needs a convex cost, and this task was not made with convex=True"
        if task.cvxpy is None:
            return "needs the cost written for cvxpy, and this task was made without cvxpy="
        return None

    def _argmin(self, g: ExpectedCost) -> Tensor:
        w, y = g.scenarios.weights, g.scenarios.values
        shape = tuple(y.shape[1:])
        programs = self._programs.setdefault(g.task, {})
        if shape not in programs:
            programs[shape] = _compile(g.task, shape)
        differentiate = torch.is_grad_enabled() and (w.requires_grad or y.requires_grad)
        found, t = programs[shape](
            _plain(w),
            _plain(y[0] if g.scenarios.shared else y),
            solver_args=DIFFERENTIATE if differentiate else None,
        )
        a: Tensor = found[:, 0].to(w)
        # an interior point method ends 1e-8 off C; its derivative is already along C
        a = a + (g.task.feasible.project(a.detach()) - a.detach())
        _check_solved(g, a, (_plain(w) * t).sum(1))
        return a


def _compile(task: Task, shape: tuple[int, ...]) -> Any:
    import cvxpy as cp
    from cvxpylayers.torch.cvxpylayer import CvxpyLayer as Program

    assert task.cvxpy is not None
    w, y = cp.Parameter(shape[0], nonneg=True), cp.Parameter(shape)
    a, t = cp.Variable((1, task.feasible.dim)), cp.Variable(shape[0])
    try:
        limits = [cp.reshape(task.cvxpy(y, a), (-1,), "C") <= t]
    except (TypeError, ValueError, AttributeError) as error:
        raise Refusal(
            f"CvxpyLayer needs a cost whose cvxpy(y, a) takes y as a cvxpy parameter of shape "
            f"{shape}, but the call failed ({error}). Write it with cvxpy functions of y, or use "
            f"Implicit()."
        ) from error
    limits += task.feasible.describe(cp.reshape(a, (-1,), "C"))
    problem = cp.Problem(cp.Minimize(w @ t), limits)
    if not problem.is_dpp():
        raise Refusal(
            "CvxpyLayer needs a cost that is convex in a and affine in y within each of its cvxpy "
            "functions (disciplined parametrized programming), and this task's cvxpy(y, a) is "
            "not. Write it so, or use Implicit()."
        )
    return Program(problem, [w, y], [a, t], solver="DIFFCP", solver_args=SOLVE)


@torch.no_grad()
def _check_solved(g: ExpectedCost, a: Tensor, claimed: Tensor) -> None:
    """Diffcp says nothing of a Clarabel that gave up; then the program's cost is not g(a)."""
    cost = _plain(g(a[:, None])[:, 0])
    bad = ~((cost - claimed).abs() <= FAITHFUL * cost.abs().clamp(min=1))
    if bad.any():
        b = int(bad.nonzero()[0, 0])
        raise RuntimeError(
            f"The convex program of row {b} ended at cost {float(claimed[b]):g}, where the task's "
            f"own cost is {float(cost[b]):g} ({int(bad.sum())} such rows). Check that the "
            f"scenarios are finite and that the cost given to cvxpy= is convex and equals "
            f"cost(y, a)."
        )


def _plain(t: Tensor) -> Tensor:
    return t.double().cpu()
