"""What g is fitted to: the costs of sampled actions, or how they change from action to action.

    Costs     mean_(x, y)  mean_(a ~ C)  ( g(x, a) - f(y, a) )^2 / s(a)^2            (paper, Eq. 3)
    Slopes    mean_(x, y)  sum_i int ( dg_i/da (x, a) - df_i/da (y, a) )^2 da

A decision depends on g up to a constant in a only. What f(y, .) has in common over all actions is
noise to the decision, often most of the noise, and slopes are free of it. For f = |y - a| the
second is the continuous ranked probability score (Matheson and Winkler, 1976). In one coordinate
its square root bounds the regret (docs/concepts/slopes.md).
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from costscape.methods.scoring import spread_of
from costscape.scenarios import ExpectedCost
from costscape.sets import Box, Finite
from costscape.task import Cost, SeparableTask, Task

LABELS = 1024  # training labels, evenly spread, from which the unit of the loss is computed
POINTS = 8  # sampled actions on each chord through C


class Target(ABC):
    """A frozen dataclass of settings: how far g is from the costs of the pairs of a batch."""

    least: int = 1  # actions it needs

    @abstractmethod
    def actions(self, task: Task, rows: int, J: int, rng: Generator) -> Float[Tensor, "rows J_ d"]:
        """Fresh actions to compare g and f at: about J for each of ``rows`` pairs."""

    @abstractmethod
    def unit(self, task: Task, y: Float[Tensor, "n ..."], a: Float[Tensor, "1 J d"]) -> Tensor:
        """What the loss is divided by: one number, computed once from the training labels."""

    @abstractmethod
    def loss(
        self,
        g: ExpectedCost,
        y: Float[Tensor, "B ..."],
        a: Float[Tensor, "#B J d"],
    ) -> Float[Tensor, ""]:
        """The loss on a batch, with actions shared by all pairs or of each pair's own."""


@dataclass(frozen=True)
class Costs(Target):
    """The costs themselves, as in the paper.

    Arguments:
        weighting: divide each residual by s(a), the spread of f(., a) over the batch, so that the
            large costs of unrealistic actions do not dominate; otherwise s = 1. The paper has
            False.
        by_coordinate: fit each summand of a SeparableTask's cost by itself, without the noise of
            the other coordinates. The paper has False.
    """

    weighting: bool = True
    by_coordinate: bool = True

    def actions(self, task: Task, rows: int, J: int, rng: Generator) -> Float[Tensor, "rows J_ d"]:
        return _sample(task, rows, J, rng)

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


@dataclass(frozen=True)
class Slopes(Target):
    """Differences between neighbours among sampled actions.

    A SeparableTask is compared coordinate by coordinate, on the interval of each coordinate: one
    action in each of J equal cells, and both bounds. Any other cost is compared along chords, from
    one sampled action to another, with POINTS actions on each. The integral is then the sum over
    neighbours of (change of g - change of f)^2 / distance. No distance counts as less than half
    a cell, so a jump of f stays finite: it enters with at most 2 J (jump)^2 / width. A Finite set
    has no chords; there the residuals are taken from their mean over the actions.

    Its unit is the loss of g = 0 over the training labels.
    """

    least = 2

    def actions(self, task: Task, rows: int, J: int, rng: Generator) -> Float[Tensor, "rows J_ d"]:
        C = task.feasible
        if isinstance(C, Finite):
            return _sample(task, rows, J, rng)
        lower, upper = C.bounds
        if isinstance(task, SeparableTask):
            a: Tensor = lower + _cells(rows, J, C.dim, lower, rng) * (upper - lower)
            return a
        chords = max(1, J // POINTS)
        start, end = C.sample(2 * rows * chords, rng).unflatten(0, (2, rows, chords, 1))
        t = _cells(rows * chords, min(J, POINTS) - 2, 1, lower, rng).unflatten(0, (rows, chords))
        points: Tensor = start + t * (end - start)
        return points.flatten(1, 2)

    def unit(self, task: Task, y: Float[Tensor, "n ..."], a: Float[Tensor, "1 J d"]) -> Tensor:
        some = y[:: max(1, len(y) // LABELS)].unsqueeze(1)
        with torch.no_grad():
            f = task.terms(some, a) if isinstance(task, SeparableTask) else task.cost(some, a)
            return _squares(task, f, a).mean().clamp(min=1e-30)

    def loss(
        self,
        g: ExpectedCost,
        y: Float[Tensor, "B ..."],
        a: Float[Tensor, "#B J d"],
    ) -> Float[Tensor, ""]:
        if isinstance(g.task, SeparableTask):
            residual = g.terms(a) - g.task.terms(y.unsqueeze(1), a)
        else:
            residual = g(a) - g.task.cost(y.unsqueeze(1), a)
        return _squares(g.task, residual, a).mean()


@dataclass(frozen=True, eq=False)
class Objective:
    """A cost whose slopes are learned, and what its loss is multiplied by."""

    task: Task
    weight: Tensor


def absolute_errors(y: Float[Tensor, "n m"]) -> SeparableTask:
    """f(y, a) = sum_i |y_i - a_i| over the range of the labels.

    Its slopes loss is the continuous ranked probability score of each outcome.
    """
    lower, upper = y.amin(0), y.amax(0)
    box = Box(lower, upper.maximum(lower + 1e-6 * lower.abs().clamp(min=1.0)))
    return SeparableTask(lambda y, a: (y - a).abs(), box, convex=True)


def _sample(task: Task, rows: int, J: int, rng: Generator) -> Tensor:
    a: Tensor = task.feasible.sample(rows * J, rng).unflatten(0, (rows, J))
    return a


def _cells(rows: int, J: int, d: int, like: Tensor, rng: Generator) -> Float[Tensor, "rows J2 d"]:
    """0, one number in each of J equal parts of (0, 1), and 1."""
    inside = torch.rand(rows, J, d, generator=rng, device=like.device, dtype=like.dtype)
    first = torch.arange(J, device=like.device, dtype=like.dtype)[:, None]
    ends = torch.zeros(rows, 1, d, device=like.device, dtype=like.dtype)
    parts: Tensor = torch.cat([ends, (first + inside) / max(J, 1), ends + 1], 1)
    return parts


def _squares(task: Task, r: Tensor, a: Tensor) -> Tensor:
    """The squared slopes of r (B, J) or (B, J, d) over the actions, as a sum over neighbours."""
    if isinstance(task.feasible, Finite):
        return (r - r.mean(1, keepdim=True)).square()
    if isinstance(task, SeparableTask):
        lower, upper = task.feasible.bounds
        distance, cell = a.diff(dim=1), (upper - lower) / (a.shape[1] - 2)
        squares: Tensor = r.diff(dim=1).square() / distance.maximum(cell / 2).clamp(min=1e-12)
        return squares
    points = min(a.shape[1], POINTS)
    a, r = a.unflatten(1, (-1, points)), r.unflatten(1, (-1, points))
    whole = (a[:, :, -1] - a[:, :, 0]).norm(dim=-1)[..., None]
    distance = a.diff(dim=2).norm(dim=-1)
    cell = whole / max(points - 2, 1)
    along: Tensor = r.diff(dim=2).square() / distance.maximum(cell / 2).clamp(min=1e-12)
    return along


def _spread(f: Cost, y: Tensor, a: Tensor, observed: Tensor) -> Tensor:
    """The spread of f(., a) over the batch.

    Actions of each pair's own are evaluated at 16 outcomes of the batch, not at all of them.
    """
    with torch.no_grad():
        if len(a) == 1:
            return spread_of(observed)
        return spread_of(f(y[:16, None, None], a))  # costs (16, B, J), or (16, B, J, d)
