"""Panel 3: the local quadratic model by which gradients pass a cost that is not convex.

    q(a) = g(a0) + g'(a0) (a - a0) + g''(a0) (a - a0)^2 / 2,    a0 = argmin of g

Where all outcomes move by t, the minimum of the model moves at one rate, da/dt. The minimum of g
may jump to another valley or to a bound.
"""

from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from costscape.bench.figure1.true_law import (
    DEVIATION,
    argmin,
    cost_of_normals,
    digits,
    known_parts,
    means,
    weights,
)
from costscape.bench.runs import Run, prepare
from costscape.problems import MixtureTruth
from costscape.solvers import Implicit
from costscape.task import SeparableTask

PROBLEM = "synthetic-nonconvex"
REACH = 1.5  # outcomes move by so much at most
MARGIN = 0.1  # to the bounds, which would hold the decision


def local(points: int, quick: bool = False) -> dict[str, Any]:
    """g and its model along the first action, and both minima while outcomes move by t.

    x is the first test row whose best action is inside C.
    """
    p = prepare(Run(PROBLEM, "constant", quick=quick)).problem
    task, truth = known_parts(p)
    lower, upper = (float(bound[0]) for bound in task.feasible.bounds)
    best = truth.best(p.data.test.x)[0]
    inside = (lower + MARGIN < best) & (best < upper - MARGIN)
    row = int(inside.all(-1).nonzero()[0])
    x = p.data.test.x[row : row + 1]
    model = LocalModel.at(task, truth, x)
    a = torch.linspace(lower, upper, points, dtype=torch.float64)
    t = torch.linspace(-REACH, REACH, points, dtype=torch.float64)
    curves = {
        **{"a": a, "g": model.g(a), "model": model.quadratic(a)},
        **{"t": t, "argmin": model.argmin(t)},
        "model_argmin": (model.point + model.rate * t).clamp(lower, upper),
    }
    return {
        "panel": "local",
        **{"problem": PROBLEM, "row": row, "x": [digits(v) for v in x[0].tolist()]},
        **{"point": digits(model.point), "rate": digits(model.rate)},
        **{name: [digits(v) for v in values.tolist()] for name, values in curves.items()},
    }


@dataclass(frozen=True)
class LocalModel:
    """The expected cost of the first action under the true law, and its quadratic model.

    - ``task``: the cost; ``means``: of the three Gaussians.
    - ``point``: the minimum; ``value``, ``slope``, ``curvature``: of g at the point.
    - ``rate``: how fast ``Implicit`` moves the minimum with all outcomes.
    """

    task: SeparableTask
    means: Float[Tensor, "3 d"]
    point: float
    value: float = 0.0
    slope: float = 0.0
    curvature: float = 0.0
    rate: float = 0.0

    @staticmethod
    def at(task: SeparableTask, truth: MixtureTruth, x: Float[Tensor, "1 p"]) -> "LocalModel":
        bare = LocalModel(task, means(truth, x)[0], float(truth.best(x)[0][0, 0]))
        a = torch.tensor([bare.point], dtype=torch.float64, requires_grad=True)
        g = bare.g(a)
        (slope,) = torch.autograd.grad(g.sum(), a, create_graph=True)
        (curvature,) = torch.autograd.grad(slope.sum(), a)
        return replace(
            bare,
            value=g.item(),
            slope=slope.item(),
            curvature=curvature.item(),
            rate=bare._implicit_rate(),
        )

    def g(self, a: Float[Tensor, "n"]) -> Float[Tensor, "n"]:
        """E[f(y, a) | x], the part of the first action."""
        assert self.task.normal is not None
        m = self.means[:, 0].expand(len(a), -1)
        cost = self.task.normal(m, torch.full_like(m, DEVIATION), a[:, None])
        return cost @ weights()

    def quadratic(self, a: Float[Tensor, "n"]) -> Float[Tensor, "n"]:
        e = a - self.point
        return self.value + self.slope * e + self.curvature * e**2 / 2

    def argmin(self, t: Float[Tensor, "n"]) -> Float[Tensor, "n"]:
        """The best first action when all outcomes move by t."""
        m = self.means + t[:, None, None]
        w = weights().expand(len(t), -1)
        return argmin(cost_of_normals(self.task, w, m, torch.full_like(m, DEVIATION)))[:, 0]

    def _implicit_rate(self) -> float:
        m = self.means[None].clone().requires_grad_()
        g = cost_of_normals(self.task, weights()[None], m, torch.full_like(m, DEVIATION))
        (grad,) = torch.autograd.grad(Implicit()(g)[0, 0], m)
        return float(grad[..., 0].sum())
