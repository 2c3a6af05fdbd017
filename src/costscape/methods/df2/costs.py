"""The paper's target: g is fitted to the costs of sampled actions.

mean_(x, y)  mean_(a ~ C)  ( g(x, a) - f(y, a) )^2 / s(a)^2            (paper, Eq. 3)
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from costscape.methods.cost_scale import spread_of
from costscape.methods.df2.slopes import Target, sample
from costscape.scenarios import ExpectedCost
from costscape.task import SeparableTask, Task
from costscape.task_arguments import Cost


@dataclass(frozen=True)
class Costs(Target):
    """Fits g to the costs themselves, as in the paper.

    Args:
        weighting: bool, default True. Divide each residual by s(a), the spread of f(., a) over the
            batch, so that the large costs of unrealistic actions do not dominate; otherwise s = 1.
            The paper has False.
        by_coordinate: bool, default True. Fit each summand of the cost of a SeparableTask by
            itself, without the noise of the other coordinates. The paper has False.

    >>> import costscape as cs
    >>> cs.DF2(cs.problems.inventory(), target=cs.Costs(weighting=False)).target
    Costs(weighting=False, by_coordinate=True)
    """

    weighting: bool = True
    by_coordinate: bool = True

    def actions(self, task: Task, rows: int, J: int, rng: Generator) -> Float[Tensor, "rows J_ d"]:
        return sample(task, rows, J, rng)

    def unit(self, task: Task, y: Float[Tensor, "n ..."], a: Float[Tensor, "1 J d"]) -> Tensor:
        return torch.ones_like(a[0, 0, 0])

    def loss(
        self,
        g: ExpectedCost,
        y: Float[Tensor, "B ..."],
        a: Float[Tensor, "#B J d"],
    ) -> Float[Tensor, ""]:
        if self.by_coordinate and isinstance(g.task, SeparableTask):
            f: Cost = g.task.terms
            learned = g.terms(a)
        else:
            f, learned = g.task.cost, g(a)
        observed = f(y.unsqueeze(1), a)  # (B, J), or (B, J, d) by coordinate
        residual = learned - observed
        if self.weighting:
            residual = residual / _spread(f, y, a, observed)
        return residual.square().mean()


def _spread(f: Cost, y: Tensor, a: Tensor, observed: Tensor) -> Tensor:
    """The spread of f(., a) over the batch.

    Actions of each pair's own are evaluated at 16 outcomes of the batch, not at all of them.
    """
    with torch.no_grad():
        if len(a) == 1:
            return spread_of(observed)
        return spread_of(f(y[:16, None, None], a))  # costs (16, B, J), or (16, B, J, d)
