"""The default target: g is fitted to how the costs change from action to action.

    mean_(x, y)  sum_i int ( dg_i/da (x, a) - df_i/da (y, a) )^2 da

A decision depends on g up to a constant in a only. What f(y, .) has in common over all actions is
noise to the decision, often most of the noise, and slopes are free of it. For f = |y - a| the
loss is the continuous ranked probability score (Matheson and Winkler, 1976). In one coordinate
its square root bounds the regret (docs/concepts/slopes.md).
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from costscape.data import Dataset
from costscape.scenarios import ExpectedCost, Scenarios
from costscape.sets import Box, Finite, RowSets, Whole
from costscape.sets.row_sets import ScaledRows
from costscape.task import SeparableTask, Task
from costscape.training.settings import Checked

LABELS = 1024  # training labels, evenly spread, from which the unit of the loss is computed
SHARED_ACTIONS, OWN_ACTIONS = 50, 12  # where all x share their outcomes, and where not
POINTS = 8  # sampled actions on each chord through C


class Target(Checked, ABC):
    """A frozen dataclass of settings: how far g is from the costs of the pairs of a batch."""

    least: int = 1  # actions it needs

    def check(self, actions: int | None) -> None:
        """Raise a ValueError where so many actions are too few."""
        if actions is not None and actions < self.least:
            raise ValueError(
                f"{type(self).__name__} compare actions with each other and need at least "
                f"{self.least}, but got actions={actions}. Take more, or target=Costs()."
            )

    @abstractmethod
    def actions(self, task: Task, rows: int, J: int, rng: Generator) -> Float[Tensor, "rows J_ d"]:
        """Fresh actions to compare g and f at: about J for each of ``rows`` pairs."""

    @abstractmethod
    def unit(self, task: Task, y: Float[Tensor, "n ..."], a: Float[Tensor, "1 J d"]) -> Tensor:
        """What the loss is divided by: one number, computed once from the training labels."""

    @abstractmethod
    def loss(
        self, g: ExpectedCost, y: Float[Tensor, "B ..."], a: Float[Tensor, "#B J d"]
    ) -> Float[Tensor, ""]:
        """The loss on a batch, with actions shared by all pairs or of each pair's own."""


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

    >>> Slopes()
    Slopes()
    """

    least = 2

    def actions(self, task: Task, rows: int, J: int, rng: Generator) -> Float[Tensor, "rows J_ d"]:
        C = task.feasible
        if _only_points(task):
            return sample(task, rows, J, rng)
        lower, upper = C.row_bounds if isinstance(C, RowSets) else C.bounds
        if isinstance(task, SeparableTask):
            a: Tensor = lower + _cells(rows, J, C.dim, lower, rng) * (upper - lower)
            return C.rounded(a) if isinstance(C, Whole) else a
        chords = max(1, J // POINTS)
        if isinstance(C, ScaledRows):
            return C.actions(self.actions(task.over(C.base), rows, J, rng).expand(len(C), -1, -1))
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
        self, g: ExpectedCost, y: Float[Tensor, "B ..."], a: Float[Tensor, "#B J d"]
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


def objectives_of(
    target: Target, task: Task, train: Dataset, outcome_share: float, seed: int
) -> list[Objective]:
    """The task's cost and, with ``outcome_share``, the absolute errors of the outcomes."""
    tasks = [(1.0, task)]
    if outcome_share > 0 and task.y_dims == 1:
        tasks.append((outcome_share, absolute_errors(train.y)))
    rng = Generator(train.y.device).manual_seed(seed)
    objectives = []
    for share, each in tasks:
        a = target.actions(each, 1, SHARED_ACTIONS, rng)
        unit = target.unit(each, each.join(train.x, train.y), a)
        objectives.append(Objective(each, share / unit))
    return objectives


def weighted_loss(
    target: Target,
    objectives: Sequence[Objective],
    scenarios: Scenarios,
    batch: Dataset,
    J: int | None,
    rows: int | None,
    rng: Generator,
) -> Tensor:
    """The sum of the losses, with J actions for each of ``rows`` pairs, or shared by all.

    Where each x has its own set, a scaled copy of one set, actions are those of its set. Other
    sets of x share the actions of the set that holds them all.
    """
    total = batch.y.new_zeros(())
    for objective in objectives:
        task, x = objective.task, batch.x
        if task.scaled:
            task = task.over(task.sets(x))
        g = ExpectedCost.at(task, x, scenarios)
        own = rows is not None or task.feasible.by_row
        usual = SHARED_ACTIONS if g.shared and not own else OWN_ACTIONS
        a = target.actions(task, rows or 1, J or usual, rng)
        total = total + objective.weight * target.loss(g, task.join(x, batch.y), a)
    return total


def absolute_errors(y: Float[Tensor, "n m"]) -> SeparableTask:
    """f(y, a) = sum_i |y_i - a_i| over the range of the labels.

    Its slopes loss is the continuous ranked probability score of each outcome.
    """
    lower, upper = y.amin(0), y.amax(0)
    box = Box.between(lower, upper.maximum(lower + 1e-6 * lower.abs().clamp(min=1.0)))
    return SeparableTask(lambda y, a: (y - a).abs(), box, convex=True)


def sample(task: Task, rows: int, J: int, rng: Generator) -> Tensor:
    if isinstance(C := task.feasible, ScaledRows):
        u = C.base.sample(rows * J, rng).unflatten(0, (rows, J))
        return C.actions(u.expand(len(C), -1, -1))
    a: Tensor = task.feasible.sample(rows * J, rng).unflatten(0, (rows, J))
    return a


def _only_points(task: Task) -> bool:
    """Whether no path leads from action to action, along which to take slopes."""
    whole = isinstance(task.feasible, Whole) and not isinstance(task, SeparableTask)
    return whole or isinstance(task.feasible, Finite)


def _cells(rows: int, J: int, d: int, like: Tensor, rng: Generator) -> Float[Tensor, "rows J2 d"]:
    """0, one number in each of J equal parts of (0, 1), and 1."""
    inside = torch.rand(rows, J, d, generator=rng, device=like.device, dtype=like.dtype)
    first = torch.arange(J, device=like.device, dtype=like.dtype)[:, None]
    ends = torch.zeros(rows, 1, d, device=like.device, dtype=like.dtype)
    parts: Tensor = torch.cat([ends, (first + inside) / max(J, 1), ends + 1], 1)
    return parts


def _squares(task: Task, r: Tensor, a: Tensor) -> Tensor:
    """The squared slopes of r (B, J) or (B, J, d) over the actions, as a sum over neighbours."""
    if _only_points(task):
        return (r - r.mean(1, keepdim=True)).square()
    if isinstance(task, SeparableTask):
        C = task.feasible
        lower, upper = C.row_bounds if isinstance(C, RowSets) else C.bounds
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
