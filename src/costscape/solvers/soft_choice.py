"""A choice from a list that changes smoothly with the outcomes.

    p_i(x) proportional to exp(-g(x, a_i) / t),    a(x) = sum_i p_i(x) a_i

t is a share of the standard deviation of g(x, a_1), ..., g(x, a_K), so that the unit of the cost
does not matter. As t goes to 0, a(x) becomes the best action of the list, whose derivative is 0.
This is the minimum of g plus t times the negative entropy of p, for a cost linear in a; Xie, Dai,
Chen, Dai, Zhao, Zha, Wei and Pfister, Differentiable Top-k with Optimal Transport, NeurIPS 2020,
have it for one or more actions out of a list.
"""

from dataclasses import dataclass

from torch import Tensor

from costscape.scenarios import ExpectedCost
from costscape.sets import Finite
from costscape.solvers.layer import Layer
from costscape.task import Task
from costscape.training.settings import Positive

LEAST = 1e-12  # of the standard deviation: where all actions cost the same, all weigh the same


@dataclass(frozen=True)
class SoftChoice(Layer):
    """Means of the actions of a Finite list, the cheap ones weighted most.

    The cost at a mean is the mean of the costs only where f is linear in a, as it is for paths and
    for one of several resources. Elsewhere the cost at the mean is an approximation.

    Args:
        temperature: float, default 0.1. t over the standard deviation of the costs.

    Cost: g at each of the K actions.

    >>> import costscape as cs
    >>> import torch
    >>> task = cs.Task(lambda y, a: -(y * a).sum(-1), cs.Finite(torch.eye(3)))
    >>> y = torch.tensor([[[1.0, 2.0, 2.1]]], requires_grad=True)
    >>> a = cs.SoftChoice()(cs.ExpectedCost(task, cs.Scenarios(torch.ones(1, 1), y)))
    >>> a.detach().round(decimals=2)
    tensor([[0.0000, 0.1200, 0.8800]])
    >>> a[0, 2].backward()
    >>> bool(y.grad[0, 0, 2] > 0)
    True
    """

    temperature: Positive = 0.1

    def refuses(self, task: Task) -> str | None:
        if not isinstance(task.feasible, Finite):
            return (
                f"needs a Finite list of actions, and this feasible set is a "
                f"{type(task.feasible).__name__}"
            )
        return None

    def _argmin(self, g: ExpectedCost) -> Tensor:
        feasible = g.task.feasible
        assert isinstance(feasible, Finite)
        costs = g(feasible.actions[None])
        spread = costs.detach().std(1, correction=0, keepdim=True).clamp(min=LEAST)
        weights: Tensor = (-costs / (self.temperature * spread)).softmax(1)
        return weights @ feasible.actions
