"""Distilling: a small network that imitates the decisions of a method, where no search fits.

    minimise  mean_x | (policy(x) - decide(x)) / width |^2

over training rows, with the output layer of the set (``models.feasible_output``), so that every
decision is feasible. The loss in cost is measured on the latest fifth of the rows, from which the
policy does not learn.
"""

from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from onnx import helper
from torch import Generator, Tensor, nn

from costscape.methods.export.traced import Graph, NotTraced, Part, traced
from costscape.methods.fitted_method import FittedMethod
from costscape.methods.method import seeded
from costscape.models import MLP, Standardise
from costscape.models.feasible_output import Landing, landing
from costscape.sets import Budget, ConstraintSet, Polytope, Whole
from costscape.sets.simplex import onto_total
from costscape.task import Refusal

ROWS, FEWEST = 2000, 50  # rows that are decided at most, and that are needed
HELD_OUT = 0.2
STEPS, BATCH, RATE, WIDTH = 1000, 128, 3e-3, 64


class Policy(nn.Module):
    """x -> a in C.

    Args:
        x: (n, ...). Training rows, for the scaling.
        feasible: ConstraintSet. Simplex, Budget or Box.
    """

    def __init__(self, x: Float[Tensor, "n ..."], feasible: ConstraintSet) -> None:
        super().__init__()
        self.scaler = Standardise(x)
        self.net = MLP(x[0].numel(), WIDTH, layers=2)
        self.feasible, self.land = feasible, landing(feasible)
        self.head = nn.Linear(WIDTH, self.land.inputs)

    def forward(self, x: Float[Tensor, "B ..."]) -> Float[Tensor, "B d"]:
        z = self.head(self.net(self.scaler(x)))
        if isinstance(self.feasible, Budget) and not isinstance(self.land, Landing):
            return onto_budget(z, self.feasible)
        a: Tensor = self.land(z)
        return a


def distilled(method: FittedMethod, reason: str | None) -> tuple[Graph, Policy, dict[str, float]]:
    """The graph of a policy, the policy, and its loss in cost; Refusal where there is none.

    Args:
        method: a fitted method with kept training rows.
        reason: why the exact search does not fit.
    """
    name, C, kept = type(method).__name__, method._task().feasible, method.rows_
    start = f"{name} cannot be exported: {reason}"
    if isinstance(C, Whole | Polytope) or not hasattr(C, "rows"):
        raise Refusal(f"{start}, and a network has no output layer for a {type(C).__name__}.")
    if kept is None or len(kept.x) < FEWEST:
        came = 0 if kept is None else len(kept.x)
        raise Refusal(f"{start}, and a network needs {FEWEST} kept training rows, not {came}.")
    k = -(-len(kept.x) // ROWS)
    x, y = (part[::k].to(C.bounds[0]) for part in (kept.x, kept.y))
    a = torch.as_tensor(method.decide(x)).reshape(len(x), C.dim).to(x)
    cut = round(len(x) * (1 - HELD_OUT))
    policy = _fit(x[:cut], a[:cut], C, method.seed)
    try:
        (part,) = traced([Part(policy, [x[:7]], [{0: "rows"}])])
    except NotTraced as error:
        raise Refusal(f"{start}, and its set has no form in ONNX ({error}).") from error
    graph = Graph(np.float64)
    (decision,) = graph.call(part, "x")
    graph.nodes.append(helper.make_node("Identity", [decision], ["decision"]))
    with torch.no_grad():
        return graph, policy, _loss(method, policy, x[cut:], y[cut:], a[cut:])


def _fit(x: Tensor, a: Tensor, C: ConstraintSet, seed: int) -> Policy:
    lower, upper = C.bounds
    width = torch.where(upper > lower, upper - lower, 1.0)
    with seeded(seed):
        policy = Policy(x, C).to(x)
    optimiser = torch.optim.Adam(policy.parameters(), RATE)
    schedule: Any = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, STEPS)
    rng = Generator().manual_seed(seed)
    for _ in range(STEPS):
        i = torch.randint(len(x), (min(BATCH, len(x)),), generator=rng)
        loss = ((policy(x[i]) - a[i]) / width).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
    return policy.eval()


def _loss(
    method: FittedMethod, policy: Policy, x: Tensor, y: Tensor, a: Tensor
) -> dict[str, float]:
    """The mean cost of both decisions at the outcomes of held-out rows."""
    task = method._task()
    outcomes = task.join(x, y)
    model, own = (task.cost(outcomes, action).double() for action in (a, policy(x)))
    return {
        "rows": float(len(x)),
        "model_cost": float(model.mean()),
        "policy_cost": float(own.mean()),
        "standard_error": float((own - model).std() / len(x) ** 0.5),
    }


def onto_budget(z: Tensor, C: Budget) -> Tensor:
    """The point of the budget nearest to centre + width z, without a branch on numbers."""
    upper, total = C.upper.double(), C.total.double()
    centre = upper * (total / upper.sum()).clamp(max=1) / 2
    point = centre + upper * z.double()
    inside = point.clamp(torch.zeros_like(upper), upper)
    over = inside.sum(-1, keepdim=True) > total
    # within the caps where their sum is less than the total, which ``onto_total`` does not take
    full = onto_total(point, upper, torch.minimum(total, upper.sum()))
    return torch.where(over, full, inside).to(z.dtype)
