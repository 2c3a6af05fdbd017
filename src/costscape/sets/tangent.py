"""The directions in which an action can move while the constraints that hold it still hold it.

With R the rows of A and the active rows of G at a, the face of C around a is a + null(R), and

    P = I - R^+ R

is the orthogonal projector onto null(R): the identity inside a box, zero at a corner.
"""

from abc import abstractmethod
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from costscape.sets.constraint_set import ConstraintSet

DEPENDENT = 1e-10  # a squared sine between unit rows that is put down to rounding


@dataclass(frozen=True)
class Rows:
    """{a : A a = b, G a <= h}; A or G may have no rows."""

    A: Float[Tensor, "e d"]
    b: Float[Tensor, "e"]
    G: Float[Tensor, "m d"]
    h: Float[Tensor, "m"]


class Polyhedral(ConstraintSet):
    """A set made by linear constraints alone, so that its faces are flat."""

    @abstractmethod
    def rows(self) -> Rows:
        """The constraints as A a = b and G a <= h; no row is all zeros."""

    def tangent(self, a: Float[Tensor, "B d"], tol: float | None = None) -> Float[Tensor, "B d d"]:
        """The projector P of each action; a row within ``tol`` of holding with equality is active.

        ``tol`` is a distance, in the units of a (None: the set's ``tolerance``). Computed in
        double precision: O(d^2 (m + d)) an action.
        """
        rows = self.rows()
        A, G, h = rows.A.double(), rows.G.double(), rows.h.double()
        A, length = A / A.norm(dim=1, keepdim=True), G.norm(dim=1)
        room = (h - a.double() @ G.T) / length
        active = (room <= (self.tolerance if tol is None else tol)).double()
        G = G / length[:, None]
        gram = A.T @ A + torch.einsum("bm,mi,mj->bij", active, G, G)
        size, V = torch.linalg.eigh(gram)
        V = V * (size <= DEPENDENT)[:, None]
        P: Tensor = V @ V.mT
        return P.to(a.dtype)
