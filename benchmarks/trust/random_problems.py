"""Random sets, each with its definition in numpy, and random costs, in any unit.

A set is made twice: by the library, and as plain arrays that a few lines of numpy compare actions
with. Nothing of the library is used in the comparison.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np
import torch

import costscape as cs


@dataclass(frozen=True)
class Definition:
    """{lower <= a <= upper, G a <= h, A a = b}, of multiples of a step or of listed points."""

    lower: np.ndarray
    upper: np.ndarray
    G: np.ndarray
    h: np.ndarray
    A: np.ndarray
    b: np.ndarray
    step: float = 0.0
    points: np.ndarray | None = None

    def broken(self, a):
        """How far each action is outside, as a share of the size of what it breaks."""
        if self.points is not None:
            apart = np.abs(a[:, None] - self.points[None]).max(-1).min(1)
            return apart / np.abs(self.points).max()
        size = np.maximum(np.abs(self.lower), np.abs(self.upper))
        far = np.maximum(self.lower - a, a - self.upper) / np.where(size > 0, size, size.max())
        worst = far.max(1)
        for rows, right, equal in ((self.G, self.h, False), (self.A, self.b, True)):
            if len(rows):
                over = a @ rows.T - right
                over = np.abs(over) if equal else over
                worst = np.maximum(worst, (over / (np.abs(rows) * size).max(1)).max(1))
        if self.step:
            off = np.abs(a / self.step - np.round(a / self.step)).max(1) * self.step
            worst = np.maximum(worst, off / size.max())
        return worst


def _none(d):
    return np.zeros((0, d)), np.zeros(0)


def _box(rng, d, u):
    lower = u * rng.uniform(-1, 1, d)
    upper = lower + u * rng.uniform(0.1, 2, d)
    made = lambda t: cs.Box(t(lower), t(upper))  # noqa: E731
    return made, Definition(lower, upper, *_none(d), *_none(d))


def _simplex(rng, d, u):
    total = u * rng.uniform(0.5, 2)
    d = max(d, 2)
    ones = np.ones((1, d))
    made = lambda t: cs.Simplex(total=t(total), dim=d)  # noqa: E731
    return made, Definition(0 * ones[0], total * ones[0], *_none(d), ones, np.array([total]))


def _budget(rng, d, u):
    total = u * rng.uniform(0.5, 2)
    ones = np.ones((1, d))
    made = lambda t: cs.Budget(total=t(total), dim=d)  # noqa: E731
    return made, Definition(0 * ones[0], total * ones[0], ones, np.array([total]), *_none(d))


def _capped(rng, d, u):
    total, caps = u * rng.uniform(0.5, 2), u * rng.uniform(0.1, 1.5, d)
    ones = np.ones((1, d))
    made = lambda t: cs.Budget(total=t(total), dim=d, upper=t(caps))  # noqa: E731
    return made, Definition(0 * caps, caps, ones, np.array([total]), *_none(d))


def _polytope(rng, d, u):
    """A box with two more rows around an inner point."""
    d = max(d, 2)
    inner, rows = rng.uniform(0.2, 0.8, d), rng.normal(size=(2, d))
    h = rows @ inner + 0.2
    eye = np.eye(d)
    G = np.concatenate([eye, -eye, rows])
    right = u * np.concatenate([np.ones(d), np.zeros(d), h])
    made = lambda t: cs.Polytope(G=t(G), h=t(right))  # noqa: E731
    return made, Definition(np.zeros(d), u * np.ones(d), rows, u * h, *_none(d))


def _finite(rng, d, u):
    points = u * rng.uniform(-1, 1, (int(rng.integers(1, 40)), d))
    made = lambda t: cs.Finite(t(points))  # noqa: E731
    return made, Definition(points.min(0), points.max(0), *_none(d), *_none(d), points=points)


def _whole_box(rng, d, u):
    most = rng.integers(1, 12, d)
    made = lambda t: cs.Box(t(np.zeros(d)), t(u * most), step=t(u))  # noqa: E731
    return made, Definition(np.zeros(d), u * most, *_none(d), *_none(d), step=u)


def _whole_budget(rng, d, u):
    total = float(rng.integers(2, 9)) * u
    ones = np.ones((1, d))
    made = lambda t: cs.Whole(cs.Budget(total=t(total), dim=d), step=t(u))  # noqa: E731
    return made, Definition(
        0 * ones[0], total * ones[0], ones, np.array([total]), *_none(d), step=u
    )


SETS = {
    "Box": _box,
    "Simplex": _simplex,
    "Budget": _budget,
    "Budget with caps": _capped,
    "Polytope": _polytope,
    "Finite": _finite,
    "Whole box": _whole_box,
    "Whole budget": _whole_budget,
}


def random_set(name, rng, u, dtype):
    """(the library's set, its definition), of about the size u."""
    d = int(rng.integers(1, 5))
    made, definition = SETS[name](rng, d, u)
    return made(lambda v: torch.tensor(v, dtype=dtype)), definition


def _linear(u, money):
    return lambda y, a: money / u * y * a / u


def _square(u, money):
    return lambda y, a: money * ((y - a) / u) ** 2


def _kinks(u, money):
    return lambda y, a: money / u * (3 * (y - a).relu() + (a - y).relu())


def _waves(u, money):
    return lambda y, a: money * (torch.sin(7 * a / u) + ((y - a) / u) ** 2)


def _jumps(u, money):
    return lambda y, a: money * ((y - a).abs() / u + (a > y / 2).to(a.dtype))


TERMS = {
    "linear": _linear,
    "square": _square,
    "kinks": _kinks,
    "waves": _waves,
    "jumps": _jumps,
}
CONVEX = {"linear", "square", "kinks"}
KINDS = list(product(SETS, TERMS, (True, False)))


def random_problem(name, cost, apart, rng, u, money, dtype, rows, outcomes=5):
    """(objective, set, its definition): a sum over coordinates, or a cost of all at once."""
    C, definition = random_set(name, rng, u, dtype)
    terms = TERMS[cost](u, money)
    if apart:
        task = cs.SeparableTask(terms, C, convex=cost in CONVEX)
    else:
        task = cs.Task(
            lambda y, a: terms(y, a).sum(-1) + money * (a.sum(-1) / u - 1) ** 2,
            C,
            convex=cost in CONVEX,
        )
    shared = bool(rng.integers(2))
    y = u * rng.uniform(-1, 2, (1 if shared else rows, outcomes, C.dim))
    w = rng.dirichlet(np.ones(outcomes), rows)
    scenarios = cs.Scenarios(
        torch.tensor(w, dtype=dtype), torch.tensor(y, dtype=dtype), own=not shared
    )
    return cs.ExpectedCost(task, scenarios), C, definition
