"""What g is fitted to: the costs of sampled actions, or how they change from action to action.

    Costs     mean_(x, y)  mean_(a ~ C)  ( g(x, a) - f(y, a) )^2 / s(a)^2            (paper, Eq. 3)
    Slopes    mean_(x, y)  sum_i int ( dg_i/da (x, a) - df_i/da (y, a) )^2 da

A decision sees g up to a constant in a only. What f(y, .) has in common over all actions is noise
to it, often most of the noise, and slopes are free of it. For f = |y - a| the second is the
continuous ranked probability score (Matheson and Winkler, 1976).
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from costscape.distributed import gather_rows, own_rows
from costscape.methods.by_rows import ByRows
from costscape.methods.scoring import spread_of, spread_over
from costscape.scenarios import ExpectedCost
from costscape.tasks import SeparableTask
from costscape.tasks.base import Cost


class Target(ABC):
    """A frozen dataclass of settings; how far g is from the costs of the pairs of a batch."""

    least: int = 1  # actions it needs

    @abstractmethod
    def loss(
        self, g: ExpectedCost | ByRows, y: Float[Tensor, "B ..."], a: Float[Tensor, "#B J d"]
    ) -> Float[Tensor, ""]:
        """Of actions shared by all pairs, or of each pair's own."""


@dataclass(frozen=True)
class Costs(Target):
    """The paper's. Its plain squares are Costs(weighting=False, by_coordinate=False).

    - ``weighting``: divide each residual by s(a), the spread of f(., a) over the batch, so that
      the large costs of absurd actions do not drown the ones that matter; otherwise s = 1.
    - ``by_coordinate``: fit each summand of a SeparableTask's cost on its own, which leaves the
      noise of the other coordinates out of it.
    """

    weighting: bool = True
    by_coordinate: bool = True

    def loss(
        self, g: ExpectedCost | ByRows, y: Float[Tensor, "B ..."], a: Float[Tensor, "#B J d"]
    ) -> Float[Tensor, ""]:
        if self.by_coordinate and isinstance(g.task, SeparableTask):
            f: Cost = g.task.terms
            learned = g.terms(a)
        else:
            f, learned = g.task.cost, g(a)
        paid = f(y.unsqueeze(1), a)  # (B, J), or (B, J, d) by coordinate
        residual = learned - paid
        if self.weighting:
            residual = residual / _spread(f, y, a, paid)
        return residual.square().mean()


@dataclass(frozen=True)
class Slopes(Target):
    """Differences between neighbours among the sampled actions, coordinate by coordinate.

    The integral is a sum over the sorted actions, (change of g - change of f)^2 / distance, no
    distance counting as less than half of C's width over J: a jump of f stays finite. A cost that
    is not a sum over coordinates has no neighbours: there the residuals are taken from their mean
    over the actions. Both are divided by what they are for g = 0.
    """

    least = 2

    def loss(
        self, g: ExpectedCost | ByRows, y: Float[Tensor, "B ..."], a: Float[Tensor, "#B J d"]
    ) -> Float[Tensor, ""]:
        if not isinstance(g.task, SeparableTask):
            paid, learned = (
                c - c.mean(1, keepdim=True) for c in (g.task.cost(y[:, None], a), g(a))
            )
            return (learned - paid).square().mean() / _size(paid.square())
        a = a.sort(1).values
        lower, upper = g.task.feasible.bounds
        apart = a.diff(dim=1).maximum((upper - lower) / (2 * a.shape[1])).clamp(min=1e-12)
        paid = g.task.terms(y.unsqueeze(1), a).diff(dim=1)
        learned = g.terms(a).diff(dim=1)
        return ((learned - paid).square() / apart).mean() / _size(paid.square() / apart)


def _size(squares: Float[Tensor, "B ..."]) -> Tensor:
    """Their mean over the whole batch."""
    return gather_rows(squares.detach().flatten(1).mean(1)).mean().clamp(min=1e-30)


def _spread(f: Cost, y: Tensor, a: Tensor, paid: Tensor) -> Tensor:
    """The spread of f(., a) over the batch.

    Actions of their own for each pair are priced at 16 outcomes of the batch, not at all of them.
    """
    with torch.no_grad():
        if len(a) == 1:
            return spread_of(paid)
        costs = f(gather_rows(y)[:16, None, None], a)  # (16, B, J), or (16, B, J, d)
        return own_rows(spread_over(gather_rows(costs, 1)))
