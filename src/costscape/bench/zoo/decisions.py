"""Decisions of the zoo: a task with its hindsight, and a precise minimiser of expected costs."""

from dataclasses import dataclass
from functools import partial

import numpy as np
from torch import Tensor

from costscape.bench.zoo.lattice import minimise_on_lattice
from costscape.bench.zoo.sampled_truth import Minimiser
from costscape.problems.two_sided import TwoSided
from costscape.scenarios import ExpectedCost, Scenarios
from costscape.sets import Box, ConstraintSet, Finite, Polytope
from costscape.solvers import Exhaustive, FrankWolfe, ProjectedAdam, Separable
from costscape.task import Cost, SeparableTask, Task

SCALES = 3  # of the lattice for expected costs, which are smooth
HINDSIGHT_SCALES = 9  # for the cost of one outcome, which has kinks
SMOOTH = FrankWolfe(steps=200, tol=1e-7)
KINKED = ProjectedAdam(steps=200, starts=1)
REFINE = ProjectedAdam(lr=0.01, steps=60, starts=1)


@dataclass(frozen=True)
class Decision:
    """A task, and ``best``, which minimises an expected cost of it over its set."""

    task: Task
    best: Minimiser


@dataclass(frozen=True)
class Hindsight:
    """y (*batch, d) -> the best action had y been known, by a minimiser of expected costs."""

    task: Task
    best: Minimiser

    def __call__(self, y: Tensor) -> Tensor:
        flat = y.detach().reshape(-1, 1, y.shape[-1])
        g = ExpectedCost(self.task, Scenarios(flat.new_ones(len(flat), 1), flat, own=True))
        return self.best(g, None).reshape(*y.shape[:-1], -1)


def separable(
    terms: Cost, feasible: ConstraintSet, *, convex: bool = True, ramp: float | None = None
) -> Decision:
    """A sum over coordinates on any set; ``ramp`` is the limit of ``ramp_limits``.

    Each summand is least at a_i = y_i, so that on a box the best action in hindsight is y,
    clipped. Sets other than a box or a list need convex summands.
    """
    normal = terms.mean if isinstance(terms, TwoSided) else getattr(terms, "mean", None)
    task = SeparableTask(terms, feasible, convex=convex, normal=normal)
    if isinstance(feasible, Box):
        task.hindsight = feasible.project
        return Decision(task, _by_coordinate)
    if isinstance(feasible, Finite):
        return listed(task)
    task.hindsight = Hindsight(task, partial(_on_lattice, ramp, HINDSIGHT_SCALES))
    return Decision(task, partial(_on_lattice, ramp, SCALES))


def listed(task: Task) -> Decision:
    """A task on a finite list, decided by enumeration."""
    task.hindsight = Hindsight(task, _by_enumeration)
    return Decision(task, _by_enumeration)


def coupled(cost: Cost, feasible: ConstraintSet) -> Decision:
    """A convex cost of all coordinates together: any on a Box, smooth on a Budget or a Simplex.

    The best action in hindsight is the cost's ``hindsight(y)`` where it has one, otherwise the
    point of the set nearest to y.
    """
    task = Task(cost, feasible, convex=True)
    task.hindsight = getattr(cost, "hindsight", feasible.project)
    return Decision(task, _with_kinks if isinstance(feasible, Box) else _without_kinks)


def ramp_limits(dim: int, upper: float, limit: float) -> Polytope:
    """0 <= a_i <= upper and |a_i - a_(i+1)| <= limit.

    A limit that is a multiple of upper / 64 lies on the points of the precise minimiser.
    """
    eye, change = np.eye(dim), np.diff(np.eye(dim), axis=0)
    G = np.concatenate([eye, -eye, change, -change])
    h = np.repeat([upper, 0.0, limit, limit], [dim, dim, dim - 1, dim - 1])
    return Polytope(G=G, h=h)


def storage_limits(dim: int, power: float, start: float, capacity: float) -> Polytope:
    """|a_i| <= power and 0 <= start + a_1 + ... + a_i <= capacity."""
    eye, level = np.eye(dim), np.tril(np.ones((dim, dim)))
    G = np.concatenate([eye, -eye, level, -level])
    return Polytope(G=G, h=np.repeat([power, power, capacity - start, start], dim))


def _by_coordinate(g: ExpectedCost, start: Tensor | None) -> Tensor:
    return Separable().minimise(g, g.task.feasible, len(g)).action


def _by_enumeration(g: ExpectedCost, start: Tensor | None) -> Tensor:
    return Exhaustive().minimise(g, g.task.feasible, len(g)).action


def _without_kinks(g: ExpectedCost, start: Tensor | None) -> Tensor:
    return SMOOTH.minimise(g, g.task.feasible, len(g), start).action


def _with_kinks(g: ExpectedCost, start: Tensor | None) -> Tensor:
    solver = KINKED if start is None else REFINE
    return solver.minimise(g, g.task.feasible, len(g), start).action


def _on_lattice(ramp: float | None, scales: int, g: ExpectedCost, start: Tensor | None) -> Tensor:
    a = minimise_on_lattice(g, start, ramp=ramp, scales=scales)
    return g.task.feasible.project(a.to(g.scenarios.values.dtype))
