"""The contract of a feasible set."""

from abc import ABC, abstractmethod
from typing import Any

from jaxtyping import Bool, Float
from torch import Generator, Tensor, nn


class ConstraintSet(nn.Module, ABC):
    """A bounded, non-empty feasible set C in R^d: sampled, projected onto, tested.

    Bounds are buffers, so a set follows its owner through ``.to(device)`` and into files.
    Numbers and numpy arrays become torch's default dtype, tensors keep theirs; ``.double()``
    makes a set exact to double precision. Subclasses are final;
    ``costscape.checks.check_set`` tests the contract.
    """

    dim: int

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
    def tolerance(self) -> float:
        """Violation put down to rounding: 1e-5 (float32) or 1e-9 (float64) of C's numbers.

        C's numbers are measured by the largest absolute bound, and by 1 where that is less.
        """
        lower, upper = self.bounds
        size = max(1.0, float(lower.abs().max()), float(upper.abs().max()))
        return size * (1e-9 if lower.element_size() == 8 else 1e-5)

    def contains(
        self, a: Float[Tensor, "*batch d"], tol: float | None = None
    ) -> Bool[Tensor, "*batch"]:
        return self.violation(a) <= (self.tolerance if tol is None else tol)
