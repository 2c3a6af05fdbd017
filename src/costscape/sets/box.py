"""lower <= a <= upper."""

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from costscape.sets.constraint_set import Polyhedral, Rows
from costscape.sets.validation import (
    Numbers,
    as_tensors,
    as_vector,
    axes,
    brief,
    check_dim,
    check_finite,
)


class Box(Polyhedral):
    """C = {a : lower <= a <= upper}; samples are uniform.

    Args:
        lower: a number, a vector (d,), or (n, d) with a row for each x; see ``RowSets``.
        upper: a number, a vector (d,), or (n, d) with a row for each x.
        dim: d, needed only where both bounds are numbers.
        step: a positive number or a vector (d,), default None. Where given, the call returns a
            ``Whole`` set of the values lower, lower + step, lower + 2 step and so on; a coordinate
            whose entry is None is continuous.

    >>> box = Box(0.0, [1.0, 2.0])
    >>> box.project(torch.tensor([0.5, 3.0]))
    tensor([0.5000, 2.0000])
    """

    lower: Tensor
    upper: Tensor

    def __new__(
        cls,
        lower: Numbers = 0.0,
        upper: Numbers = 0.0,
        *,
        dim: int | None = None,
        step: Numbers | None = None,
    ) -> "Box":
        """Return a Box, a Whole set (``step``) or RowSets; copies are made without arguments."""
        if max(axes(lower), axes(upper)) > 1:
            from costscape.sets.make_rows import boxes  # it imports this module

            return boxes(lower, upper, dim, step)  # type: ignore[return-value]
        if step is None:
            return super().__new__(cls)
        from costscape.sets.whole import Whole  # it imports this module

        return Whole(Box(lower, upper, dim=dim), step, origin=lower)  # type: ignore[return-value]

    def __init__(
        self,
        lower: Numbers,
        upper: Numbers,
        *,
        dim: int | None = None,
        step: Numbers | None = None,
    ) -> None:
        super().__init__()
        low, high = as_tensors("Box", lower=lower, upper=upper)
        self.dim = _dim(low, high, dim)
        low = as_vector("Box", "lower", low, self.dim)
        high = as_vector("Box", "upper", high, self.dim)
        hint = "Samples are drawn from C, so bound it by numbers no sensible action passes."
        check_finite("Box", "lower", low, hint)
        check_finite("Box", "upper", high, hint)
        if len(bad := (low > high).nonzero()):
            i = int(bad[0])
            raise ValueError(
                f"Box needs lower <= upper in every coordinate, but coordinate {i} has "
                f"lower {low[i]:g} > upper {high[i]:g} ({len(bad)} such). Swap the two bounds."
            )
        self._set_bounds(low, high)

    @classmethod
    def between(cls, lower: Float[Tensor, "d"], upper: Float[Tensor, "d"]) -> "Box":
        """A Box of two vectors that were computed, lower <= upper, which are not checked again."""
        box = Polyhedral.__new__(cls)
        Polyhedral.__init__(box)
        box._set_bounds(lower, upper)
        return box

    def _set_bounds(self, lower: Tensor, upper: Tensor) -> None:
        self.dim = len(lower)
        self.register_buffer("lower", lower)
        self.register_buffer("upper", upper)

    @property
    def bounds(self) -> tuple[Float[Tensor, "d"], Float[Tensor, "d"]]:
        return self.lower, self.upper

    @property
    def by_coordinate(self) -> bool:
        return True

    def sample(self, n: int, generator: Generator | None = None) -> Float[Tensor, "n d"]:
        u = self.lower.new_empty(n, self.dim).uniform_(generator=generator)
        return self.lower + u * (self.upper - self.lower)

    def project(self, a: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
        return a.clamp(self.lower, self.upper).to(a.dtype)

    def violation(self, a: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch"]:
        return torch.maximum(self.lower - a, a - self.upper).amax(-1).clamp(min=0)

    def rows(self) -> Rows:
        eye = torch.diag_embed(torch.ones_like(self.lower))
        G, h = torch.cat([eye, -eye]), torch.cat([self.upper, -self.lower])
        return Rows(A=G[:0], b=h[:0], G=G, h=h)

    def extra_repr(self) -> str:
        return f"lower={brief(self.lower)}, upper={brief(self.upper)}, dim={self.dim}"


def _dim(lower: Tensor, upper: Tensor, dim: int | None) -> int:
    if dim is None:
        sizes = {len(bound) for bound in (lower, upper) if bound.ndim == 1}
        if len(sizes) != 1 or max(lower.ndim, upper.ndim) > 1:
            raise ValueError(
                f"Box needs vectors of one length, or numbers and dim, but got lower of shape "
                f"{tuple(lower.shape)} and upper of shape {tuple(upper.shape)}. Write "
                f"Box(0.0, 3.0, dim=7), say, or give vectors."
            )
        (dim,) = sizes
    check_dim("Box", dim)
    return dim
