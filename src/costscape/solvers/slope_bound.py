"""A lower bound on a convex cost, from the points and slopes that a descent has met.

    g(a)  >=  sum_k l_k ( g(a_k) + <s_k, a - a_k> )        for weights l_k >= 0 of sum 1

The right side is linear in a: its least value over C is found at a vertex, which sorting finds,
or on a Polytope the projection of a distant point. One slope at a kink says little. The weighted
mean of slopes from both sides of the kink is nearly that of the best action. Nedic and Ozdaglar,
2009, Section 3, show it for steps of one length.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from costscape.sets import Box, Budget, ConstraintSet, Polytope, Simplex

FAR = 1e8  # widths of C: the projection of so distant a point is a lowest one, but for 1 / FAR
LATE = 0.75  # of the steps: from here on, points of a smooth cost are near the best one


def has_vertices(feasible: ConstraintSet) -> bool:
    """Whether ``lowest_vertex`` knows the set."""
    return isinstance(feasible, Box | Simplex | Budget)


def has_bound(feasible: ConstraintSet) -> bool:
    """Whether ``least_on_line`` knows the set."""
    return has_vertices(feasible) or isinstance(feasible, Polytope)


def lowest_vertex(feasible: ConstraintSet, slope: Float[Tensor, "... d"]) -> Tensor:
    """argmin_{v in C} <slope, v>, on a Box, a Simplex or a Budget."""
    lower, upper = feasible.bounds
    if isinstance(feasible, Box):
        return torch.where(slope < 0, upper, lower)
    assert isinstance(feasible, Simplex | Budget)
    return _fill(slope, upper.expand_as(slope), feasible.total, isinstance(feasible, Simplex))


def least_on_line(feasible: ConstraintSet, slope: Float[Tensor, "... d"]) -> Float[Tensor, "..."]:
    """min_{v in C} <slope, v>, or a little less, on a Box, a Simplex, a Budget or a Polytope.

    The projection p of c - t slope has <c - t slope - p, v - p> <= 0 for every v of C, so that
    <slope, v> >= <slope, p> - |c - p| |v - p| / t. Both lengths are at most the box's diagonal.
    """
    if has_vertices(feasible):
        return (slope * lowest_vertex(feasible, slope)).sum(-1)
    lower, upper = (bound.double() for bound in feasible.bounds)
    diagonal, steep = (upper - lower).norm(), slope.double().norm(dim=-1, keepdim=True)
    way = torch.where(steep > 0, slope / steep, 0.0)
    p = feasible.project((lower + upper) / 2 - FAR * diagonal * way)
    least: Tensor = (slope * p).sum(-1) - steep[..., 0] * diagonal / FAR
    return least


def _fill(slope: Tensor, room: Tensor, total: Tensor, all_of_it: bool) -> Tensor:
    """Give ``total`` to the lowest slopes first, to each at most its room."""
    order = slope.argsort(-1)
    room = room if all_of_it else torch.where(slope < 0, room, 0)
    room = room.gather(-1, order)
    before = room.cumsum(-1) - room
    filled = torch.minimum(room, (total - before).clamp(min=0))
    return torch.zeros_like(filled).scatter(-1, order, filled)


class SlopeBound:
    """Collects two weighted means of lines: of all steps by their length, and of the last ones.

    The first bounds costs with kinks, the second smooth ones. Sums are in double precision.

    Args:
        steps: int. How many points each descent has.
    """

    def __init__(self, steps: int) -> None:
        self.late = int(LATE * steps)
        self.seen = 0
        self.weights = torch.zeros(2, dtype=torch.float64)
        self.slopes: list[Tensor | float] = [0.0, 0.0]
        self.levels: list[Tensor | float] = [0.0, 0.0]

    def add(
        self,
        a: Float[Tensor, "B J d"],
        cost: Float[Tensor, "B J"],
        slope: Float[Tensor, "B J d"],
        length: float,
    ) -> None:
        """Add the line at a, of weight ``length`` in the first mean."""
        slope = slope.double()
        level = cost.double() - (slope * a).sum(-1)
        for k, weight in enumerate((length, float(self.seen >= self.late))):
            if weight:
                self.weights[k] += weight
                self.slopes[k] = self.slopes[k] + weight * slope
                self.levels[k] = self.levels[k] + weight * level
        self.seen += 1

    def least(self, feasible: ConstraintSet) -> Float[Tensor, "B"]:
        """No action of C costs less; -inf where a slope was not finite."""
        bounds = []
        for weight, slope, level in zip(self.weights, self.slopes, self.levels, strict=True):
            assert isinstance(slope, Tensor)
            mean = slope / weight.item()
            bounds.append(level / weight.item() + least_on_line(feasible, mean))
        best = torch.stack(bounds)
        return torch.where(best.isfinite(), best, -torch.inf).amax(-1).amax(0)
