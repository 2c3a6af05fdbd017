"""Output layers whose result lies in C: z in R^n -> a in C, for every z.

    Box              lower + (upper - lower) sigmoid(z)
    Simplex          total softmax(z)
    Budget, no caps  total softmax(z), with one more coordinate for the part not spent
    other sets       the point of C nearest to  centre + width z

z = 0 gives the middle of C, and every inner point has its z. The first three never quite reach
the boundary. A projection does, but its derivative is the projector onto the directions along the
active constraints: at a vertex it is zero, and the cost has no gradient in z. ``excess`` measures
how far z is beyond C, so that a loss can pull it back.
"""

from dataclasses import dataclass
from typing import cast

import torch
from jaxtyping import Float
from torch import Tensor

from costscape.sets import Box, Budget, ConstraintSet, Finite, Polytope, Simplex, Whole
from costscape.sets.row_sets import ScaledRows
from costscape.task import Refusal


@dataclass(frozen=True)
class Landing:
    """z (B, inputs) -> a (B, d) in C, to rounding, by a sigmoid or a softmax."""

    feasible: ConstraintSet

    @property
    def inputs(self) -> int:
        """How many numbers z has."""
        return self.feasible.dim + isinstance(self.feasible, Budget)

    def __call__(self, z: Float[Tensor, "B n"]) -> Float[Tensor, "B d"]:
        """The action, differentiable in z."""
        if isinstance(self.feasible, Box):
            return torch.lerp(self.feasible.lower, self.feasible.upper, z.sigmoid())
        total = cast(Simplex | Budget, self.feasible).total
        return total * z.softmax(-1)[:, : self.feasible.dim]

    def excess(self, z: Float[Tensor, "B n"], a: Float[Tensor, "B d"]) -> Float[Tensor, "B"]:
        """The squared distance from the point of z to its action a, in widths of C; 0 inside C."""
        return z.new_zeros(len(z))


@dataclass(frozen=True)
class Projected:
    """The point of C nearest to centre + width z; the set's ``project`` must be differentiable."""

    feasible: ConstraintSet

    @property
    def inputs(self) -> int:
        return self.feasible.dim

    def __call__(self, z: Float[Tensor, "B n"]) -> Float[Tensor, "B d"]:
        return self.feasible.project(self._point(z))

    def excess(self, z: Float[Tensor, "B n"], a: Float[Tensor, "B d"]) -> Float[Tensor, "B"]:
        lower, upper = self.feasible.bounds
        width = (upper - lower).max()  # one length for all coordinates, as in the projection
        # the gradient of the squared distance to C is that of the distance to a constant a
        away = (self._point(z) - a.detach()) / width.where(width > 0, 1.0)
        return away.square().sum(-1)

    def _point(self, z: Tensor) -> Tensor:
        lower, upper = self.feasible.bounds
        return _centre(self.feasible).to(z) + (upper - lower) * z


@dataclass(frozen=True)
class ScaledLanding:
    """The output layer of the base of ``ScaledRows``, and then row by row its copy."""

    feasible: ScaledRows

    @property
    def inputs(self) -> int:
        return landing(self.feasible.base).inputs

    def __call__(self, z: Float[Tensor, "B n"]) -> Float[Tensor, "B d"]:
        return self.feasible.actions(landing(self.feasible.base)(z))

    def excess(self, z: Float[Tensor, "B n"], a: Float[Tensor, "B d"]) -> Float[Tensor, "B"]:
        return landing(self.feasible.base).excess(z, self.feasible.shares(a))


def landing(feasible: ConstraintSet) -> Landing | Projected | ScaledLanding:
    """The output layer for that set; for whole units the layer of the set's base.

    >>> landing(Box(0.0, [1.0, 4.0]))(torch.zeros(1, 2))
    tensor([[0.5000, 2.0000]])
    """
    if isinstance(feasible, Finite):
        raise Refusal(
            f"An output layer needs a set one can move in, but this one is a Finite list of "
            f"{len(feasible.actions)} actions. Take a softmax over the list instead."
        )
    if isinstance(feasible, Whole):
        return landing(feasible.base)
    if isinstance(feasible, ScaledRows):
        return ScaledLanding(feasible)
    if feasible.by_row:
        raise Refusal(
            "An output layer needs sets that are scaled copies of one, such as Box(0.0, caps), "
            "and these sets differ in shape. Take DF2, which decides by a solver."
        )
    capped = isinstance(feasible, Budget) and bool((feasible.upper < feasible.total).any())
    smooth = isinstance(feasible, Box | Simplex | Budget) and not capped
    return Landing(feasible) if smooth else Projected(feasible)


def _centre(feasible: ConstraintSet) -> Tensor:
    """A point well inside C."""
    if isinstance(feasible, Polytope):
        return feasible.centre
    if isinstance(feasible, Budget):
        return feasible.upper * (feasible.total / feasible.upper.sum()).clamp(max=1) / 2
    lower, upper = feasible.bounds
    return (lower + upper) / 2
