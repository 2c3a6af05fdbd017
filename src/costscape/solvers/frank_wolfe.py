"""Steps towards the vertex of least slope, with a bound on the error.

    v = argmin_{v in C} <grad f(a), v>,    a <- a + t (v - a),    gap(a) = <grad f(a), a - v>

For convex f, f(a) - min f <= gap(a), whatever made a. Frank and Wolfe, 1956; Jaggi, 2013.
"""

from dataclasses import dataclass
from warnings import warn

import torch
from jaxtyping import Float
from torch import Tensor

from costscape.scenarios import ExpectedCost, Scenarios
from costscape.sets import ConstraintSet
from costscape.solvers.graph_replay import Replayed, value_and_slope
from costscape.solvers.slope_bound import has_vertices, lowest_vertex
from costscape.solvers.solver import Objective, Solution, Solver
from costscape.task import Refusal, Task
from costscape.training.settings import Count, NotNegative

SEARCH = 8  # most evaluations along one direction; a quadratic needs two
KINK = 0.01  # of the spread of the cost: slopes that lead farther down are no convergence
MANY = 100  # steps from which on a search is meant to converge; coarse ones are not
FLAT = 0.1  # a step is long enough when the slope along it has fallen to this share


@dataclass(frozen=True)
class FrankWolfe(Solver):
    """Minimises smooth costs on a Box, a Simplex or a Budget; a linear cost takes one step.

    Args:
        steps: int, default 100. The most steps.
        tol: float, default 1e-6. A row is done when gap <= tol x the smaller of |cost| and the
            spread, its difference between the start and the worst vertex there: a constant in the
            cost changes nothing. For a cost that is not convex, done means that no direction
            leads down, not that a is the global minimum.

    Every other step goes towards the projection of a gradient step, of the length of Barzilai and
    Borwein (Birgin, Martinez and Raydan, 2000): with vertices only, an optimum that is no vertex
    needs about 1 / tol steps. A step ends near the zero of the slope along it; values are not
    compared, since near the optimum they differ only by rounding. Returns the best point visited
    and, for a convex ExpectedCost, its ``gap``. Warns where slopes still lead down by 1 % of the
    spread after all steps, as at kinks: use ``ProjectedAdam``, ``Convex`` or more steps there.

    >>> import costscape as cs
    >>> import torch
    >>> target = torch.tensor([0.5, 0.3, 0.2])
    >>> smooth = lambda a: ((a - target) ** 2).sum(-1)
    >>> cs.FrankWolfe(steps=50).minimise(smooth, cs.Simplex(dim=3), 1).action.round(decimals=3)
    tensor([[0.5000, 0.3000, 0.2000]])
    """

    steps: Count = 100
    tol: NotNegative = 1e-6

    def refuses(self, objective: Objective, feasible: ConstraintSet) -> str | None:
        if not has_vertices(feasible):
            return (
                f"needs a Box, a Simplex or a Budget, whose best vertex is found by sorting, and "
                f"this feasible set is a {type(feasible).__name__}"
            )
        return None

    def coarse(self) -> "FrankWolfe":
        return FrankWolfe(max(1, self.steps // 5), self.tol * 10)

    @staticmethod
    def gap(
        objective: Objective, feasible: ConstraintSet, a: Float[Tensor, "B d"]
    ) -> Float[Tensor, "B"]:
        """<grad, a - v> at any a of C; f(a) is at most this much above the least of a convex f."""
        _, grad = value_and_slope(objective, a)
        return _dot(grad, a - lowest_vertex(feasible, grad))

    def hindsight(self, task: Task) -> "Hindsight":
        """y -> the best action had y been known, for ``task.hindsight``.

        The task's cost must be convex, or nearly so, for the answer to be the least.
        """
        if reason := self.refuses(lambda a: a.sum(-1), task.feasible):
            raise Refusal(f"FrankWolfe {reason}.")
        return Hindsight(task, self)

    def _minimise(
        self, objective: Objective, feasible: ConstraintSet, batch: int, start: Tensor | None
    ) -> Solution:
        lower, upper = feasible.bounds
        a = (lower + upper) / 2 if start is None else start
        a = feasible.project(a).expand(batch, -1)
        evaluate = Replayed(objective)
        cost, grad = evaluate(a)
        # the best point is that of the least cost, and of the least gap where costs are equal
        rate = torch.zeros_like(cost)
        best, least, bound = a, cost, _dot(grad, a - lowest_vertex(feasible, grad))
        spread = (evaluate(lowest_vertex(feasible, -grad))[0] - cost).abs()
        for step in range(self.steps):
            v = lowest_vertex(feasible, grad)
            waits = _dot(grad, a - v) <= self.tol * torch.minimum(cost.abs(), spread)
            if waits.all():
                break
            goal = v
            if step % 2:
                down = feasible.project(a - rate[:, None] * grad)
                goal = torch.where((rate > 0)[:, None], down, v)
            goal = torch.where(waits[:, None], a, goal)
            there, cost, slope = _search(evaluate, a, goal, grad)
            rate = _rate(there - a, slope - grad)
            a, grad = there, slope
            gap = _dot(grad, a - lowest_vertex(feasible, grad))
            won = (cost < least) | ((cost == least) & (gap < bound))
            best, least = torch.where(won[:, None], a, best), torch.where(won, cost, least)
            bound = torch.where(won, gap, bound)
        open_rows = int((bound > KINK * spread).sum())
        if open_rows and self.steps >= MANY:
            warn(
                f"FrankWolfe ended {open_rows} of {batch} rows after {self.steps} steps where "
                f"slopes still lead down by more than {KINK:.0%} of the spread of the cost, as at "
                f"kinks. Use ProjectedAdam, Convex or more steps.",
                stacklevel=3,
            )
        convex = isinstance(objective, ExpectedCost) and objective.convex
        return Solution(feasible.project(best), least, bound.clamp(min=0) if convex else None)


@dataclass(frozen=True)
class Hindsight:
    """y (*batch, *y_shape) -> a (*batch, d), one problem of one scenario for each y."""

    task: Task
    solver: FrankWolfe

    def __call__(self, y: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        shape = y.shape[y.ndim - self.task.y_dims :]
        flat = y.detach().reshape(-1, 1, *shape)
        g = ExpectedCost(self.task, Scenarios(flat.new_ones(len(flat), 1), flat))
        found = self.solver.minimise(g, self.task.feasible, len(flat))
        return found.action.reshape(*y.shape[: y.ndim - self.task.y_dims], -1)


def _dot(p: Tensor, q: Tensor) -> Tensor:
    return (p * q).sum(-1)


def _search(
    evaluate: Replayed, a: Tensor, goal: Tensor, grad: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """A point between a and ``goal`` where the slope is nearly 0, by the Illinois rule.

    The goal itself where the cost falls all along. Returns the point, its cost and its slope.
    """
    # stay where only rounding makes the direction one of descent
    goal = torch.where((_dot(grad, goal - a) < 0)[:, None], goal, a)
    move = goal - a
    at_low = _dot(grad, move)
    flat = FLAT * at_low.abs()
    low, high = torch.zeros_like(at_low), torch.ones_like(at_low)
    t, point = high, goal
    value, slope = evaluate(point)
    at_high = _dot(slope, move)
    done = at_high <= flat
    for _ in range(SEARCH):
        if done.all():
            break
        zero = low + (high - low) * (at_low / (at_low - at_high)).clamp(0, 1)
        t = torch.where(done, t, zero)
        point = torch.lerp(a, goal, t[:, None])  # exact at both ends
        value, slope = evaluate(point)
        now = _dot(slope, move)
        done = done | (now.abs() <= flat)
        left = now < 0
        # halve the slope of the end that stays, lest it stay for ever
        at_high = torch.where(left, at_high / 2, now)
        at_low = torch.where(left, now, at_low / 2)
        low, high = torch.where(left, t, low), torch.where(left, high, t)
    return point, value, slope


def _rate(step: Tensor, change: Tensor) -> Tensor:
    """<s, s> / <s, z>, the step of Barzilai and Borwein; 0 where the slope did not rise."""
    rise = _dot(step, change)
    usable = rise > torch.finfo(rise.dtype).tiny
    return torch.where(usable, _dot(step, step) / torch.where(usable, rise, 1), 0)
