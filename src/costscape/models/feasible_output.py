"""Layers that land in C: z in R^n -> a in C, for every z.

    Box              lower + (upper - lower) sigmoid(z)
    Simplex          total softmax(z)
    Budget, no caps  total softmax(z), one more coordinate for what is not spent
    other sets       the point of C nearest to  centre + width z

z = 0 lands in the middle of C, and every inner point has its z. The first three never quite reach
the boundary. A projection does, but its derivative is the projector onto the directions along the
constraints that hold it: zero at a vertex, where z then gets no word from the cost. ``excess``
says how far z is beyond C, so that a loss may call it back.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from costscape.sets import Box, Budget, ConstraintSet, Finite, Polytope, Simplex
from costscape.task import Refusal


class Landing(ABC):
    """z (B, inputs) -> a (B, d) in C, to rounding; it holds no tensors but those of the set."""

    @property
    @abstractmethod
    def inputs(self) -> int:
        """How many numbers z has."""

    @abstractmethod
    def __call__(self, z: Float[Tensor, "B n"]) -> Float[Tensor, "B d"]:
        """The action, differentiable in z."""

    @abstractmethod
    def excess(self, z: Float[Tensor, "B n"], a: Float[Tensor, "B d"]) -> Float[Tensor, "B"]:
        """The squared way, in widths of C, from where z points to its action a; 0 within C."""


def landing(feasible: ConstraintSet) -> Landing:
    """The layer for that set.

    >>> landing(Box(0.0, [1.0, 4.0]))(torch.zeros(1, 2))
    tensor([[0.5000, 2.0000]])
    """
    if isinstance(feasible, Finite):
        raise Refusal(
            f"A landing layer needs a set one can move in, but this one is a Finite list of "
            f"{len(feasible.actions)} actions. Take a softmax over the list instead."
        )
    if isinstance(feasible, Box):
        return IntoBox(feasible)
    if isinstance(feasible, Simplex):
        return IntoSimplex(feasible)
    if isinstance(feasible, Budget) and bool((feasible.upper >= feasible.total).all()):
        return IntoBudget(feasible)
    return Projected(feasible)


@dataclass(frozen=True)
class IntoBox(Landing):
    """lower + (upper - lower) sigmoid(z)."""

    feasible: Box

    @property
    def inputs(self) -> int:
        return self.feasible.dim

    def __call__(self, z: Float[Tensor, "B n"]) -> Float[Tensor, "B d"]:
        return torch.lerp(self.feasible.lower, self.feasible.upper, z.sigmoid())

    def excess(self, z: Float[Tensor, "B n"], a: Float[Tensor, "B d"]) -> Float[Tensor, "B"]:
        return z.new_zeros(len(z))


@dataclass(frozen=True)
class IntoSimplex(Landing):
    """total softmax(z)."""

    feasible: Simplex

    @property
    def inputs(self) -> int:
        return self.feasible.dim

    def __call__(self, z: Float[Tensor, "B n"]) -> Float[Tensor, "B d"]:
        return self.feasible.total * z.softmax(-1)

    def excess(self, z: Float[Tensor, "B n"], a: Float[Tensor, "B d"]) -> Float[Tensor, "B"]:
        return z.new_zeros(len(z))


@dataclass(frozen=True)
class IntoBudget(Landing):
    """The first d coordinates of total softmax(z); the last is what is not spent."""

    feasible: Budget

    @property
    def inputs(self) -> int:
        return self.feasible.dim + 1

    def __call__(self, z: Float[Tensor, "B n"]) -> Float[Tensor, "B d"]:
        return self.feasible.total * z.softmax(-1)[:, :-1]

    def excess(self, z: Float[Tensor, "B n"], a: Float[Tensor, "B d"]) -> Float[Tensor, "B"]:
        return z.new_zeros(len(z))


@dataclass(frozen=True)
class Projected(Landing):
    """The point of C nearest to centre + width z; the set's ``project`` must be differentiable."""

    feasible: ConstraintSet

    @property
    def inputs(self) -> int:
        return self.feasible.dim

    def __call__(self, z: Float[Tensor, "B n"]) -> Float[Tensor, "B d"]:
        return self.feasible.project(self._aim(z))

    def excess(self, z: Float[Tensor, "B n"], a: Float[Tensor, "B d"]) -> Float[Tensor, "B"]:
        # the slope of the squared distance to C is that of the distance to a as it stands
        return ((self._aim(z) - a.detach()) / self._width()).square().sum(-1)

    def _aim(self, z: Tensor) -> Tensor:
        lower, upper = self.feasible.bounds
        return _centre(self.feasible).to(z) + (upper - lower) * z

    def _width(self) -> Tensor:
        """One length for all coordinates, as the projection has it."""
        lower, upper = self.feasible.bounds
        width = (upper - lower).max()
        return width.where(width > 0, 1.0)


def _centre(feasible: ConstraintSet) -> Tensor:
    """A point well inside C."""
    if isinstance(feasible, Polytope):
        return feasible.centre
    if isinstance(feasible, Budget):
        return feasible.upper * (feasible.total / feasible.upper.sum()).clamp(max=1) / 2
    lower, upper = feasible.bounds
    return (lower + upper) / 2
