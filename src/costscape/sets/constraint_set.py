"""The contract of a feasible set, and what all sets made of linear constraints have in common.

With R the rows of A and the active rows of G at a, the face of C around a is a + null(R), and

    P = I - R^+ R

is the orthogonal projector onto null(R): the identity inside a box, zero at a corner.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Float
from torch import Generator, Tensor, nn

from costscape.sets.validation import as_numpy

DEPENDENT = 1e-10  # a squared sine between unit rows that counts as rounding


class ConstraintSet(nn.Module, ABC):
    """The base of all feasible sets C in R^d, which are bounded and not empty.

    A set samples its points, projects actions onto itself and tests whether actions lie in it.
    Bounds are buffers, so a set follows its owner through ``.to(device)`` and into files.
    Numbers and numpy arrays become torch's default dtype, tensors keep theirs; ``.double()``
    makes a set exact to double precision. The base has no arguments. Subclasses are final;
    ``costscape.checks.check_set`` tests the contract.

    >>> import costscape as cs
    >>> isinstance(cs.Box(0.0, 1.0, dim=2), cs.ConstraintSet)
    True
    """

    dim: int
    by_row: ClassVar[bool] = False  # whether each row has its own set, see ``RowSets``

    @property
    @abstractmethod
    def bounds(self) -> tuple[Float[Tensor, "d"], Float[Tensor, "d"]]:
        """The least box around C, as (lower, upper)."""

    @abstractmethod
    def sample(self, n: int, generator: Generator | None = None) -> Float[Tensor, "n d"]:
        """Draw n points of C. The generator lives on the device of the set."""

    @abstractmethod
    def project(self, a: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
        """The point of C nearest to ``a`` in Euclidean distance."""

    @abstractmethod
    def violation(self, a: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch"]:
        """How far ``a`` breaks its worst constraint, in the units of a; 0 inside C."""

    @abstractmethod
    def describe(self, a: Any) -> list[Any]:
        """The constraints on a cvxpy variable ``a`` of shape (d,), without importing cvxpy."""

    @property
    def by_coordinate(self) -> bool:
        """Whether each coordinate may be chosen without regard to the others, as in a Box."""
        return False

    @property
    def tolerance(self) -> float:
        """Violation that counts as rounding: the largest of ``tolerances``."""
        return max(float(self.tolerances.max()), 1e-35)

    @property
    def tolerances(self) -> Float[Tensor, "d"]:
        """Distance to the bounds of C that counts as rounding, for each coordinate.

        1e-5 (float32) or 1e-9 (float64) of the width of the coordinate, or of its size where that
        is less, so that units of actions do not matter. Rounding of the numbers themselves is the
        least: 2e-6 (float32) or 1e-9 of their size, and 1e-9 of the largest coordinate.
        """
        lower, upper = (end.double() for end in self.bounds)
        double = self.bounds[0].element_size() == 8
        size = torch.maximum(lower.abs(), upper.abs())
        width = (1e-9 if double else 1e-5) * torch.minimum(size, upper - lower)
        least = torch.maximum((1e-9 if double else 2e-6) * size, 1e-9 * size.max())
        return torch.maximum(width, least)

    def contains(
        self, a: Float[Tensor, "*batch d"], tol: float | None = None
    ) -> Bool[Tensor, "*batch"]:
        if a.ndim == 0 or a.shape[-1] != self.dim:
            raise ValueError(
                f"contains needs actions of {self.dim} numbers, but got the shape "
                f"{tuple(a.shape)}."
            )
        if tol is not None:
            return self.violation(a) <= tol
        return (self.violation(a) <= self.tolerance) & self._near_bounds(a)

    def _near_bounds(self, a: Tensor) -> Tensor:
        """Whether each coordinate is between its bounds, to its own tolerance."""
        lower, upper = (end.double() for end in self.bounds)
        near = self.tolerances
        return ((a >= lower - near) & (a <= upper + near)).all(-1)


@dataclass(frozen=True)
class Rows:
    """{a : A a = b, G a <= h}; A or G may have no rows."""

    A: Float[Tensor, "e d"]
    b: Float[Tensor, "e"]
    G: Float[Tensor, "m d"]
    h: Float[Tensor, "m"]


def couples(rows: Float[Tensor, "m d"]) -> Bool[Tensor, "m"]:
    """Which rows look at more than one coordinate; the others are bounds."""
    return (rows != 0).sum(1) > 1


class Polyhedral(ConstraintSet):
    """A set made by linear constraints, so that its faces are flat."""

    @abstractmethod
    def rows(self) -> Rows:
        """The constraints as A a = b and G a <= h; no row is all zeros."""

    def describe(self, a: Any) -> list[Any]:
        # stacked rows: of bounds written one by one a backend of cvxpylayers drops some
        rows = self.rows()
        A, b, G, h = (as_numpy(v) for v in (rows.A, rows.b, rows.G, rows.h))
        return [A @ a == b] * (len(A) > 0) + [G @ a <= h] * (len(G) > 0)

    def tangent(self, a: Float[Tensor, "B d"], tol: float | None = None) -> Float[Tensor, "B d d"]:
        """The projector P of each action; a row within ``tol`` of holding with equality is active.

        ``tol`` is a distance, in the units of a (None: the set's ``tolerance``). Computed in
        double precision: O(d^2 (m + d)) an action.
        """
        rows = self.rows()
        A, G, h = rows.A.double(), rows.G.double(), rows.h.double()
        A, length = A / A.norm(dim=1, keepdim=True), G.norm(dim=1)
        slack = (h - a.double() @ G.T) / length
        active = (slack <= (self.tolerance if tol is None else tol)).double()
        G = G / length[:, None]
        gram = A.T @ A + torch.einsum("bm,mi,mj->bij", active, G, G)
        size, V = torch.linalg.eigh(gram)
        V = V * (size <= DEPENDENT)[:, None]
        P: Tensor = V @ V.mT
        return P.to(a.dtype)
