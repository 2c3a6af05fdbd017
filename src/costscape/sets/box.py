"""lower <= a <= upper."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from costscape.sets.tangent import Polyhedral, Rows
from costscape.sets.validation import (
    Numbers,
    as_numpy,
    as_tensors,
    as_vector,
    brief,
    check_dim,
    check_finite,
)


class Box(Polyhedral):
    """C = {a : lower <= a <= upper}; samples are uniform.

    Bounds are numbers or vectors; ``dim`` is needed only where both are numbers.

    >>> box = Box(0.0, [1.0, 2.0])
    >>> box.project(torch.tensor([0.5, 3.0]))
    tensor([0.5000, 2.0000])
    """

    lower: Tensor
    upper: Tensor

    def __init__(self, lower: Numbers, upper: Numbers, *, dim: int | None = None) -> None:
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
        self.register_buffer("lower", low)
        self.register_buffer("upper", high)

    @property
    def bounds(self) -> tuple[Float[Tensor, "d"], Float[Tensor, "d"]]:
        return self.lower, self.upper

    def sample(self, n: int, generator: Generator | None = None) -> Float[Tensor, "n d"]:
        u = self.lower.new_empty(n, self.dim).uniform_(generator=generator)
        return self.lower + u * (self.upper - self.lower)

    def project(self, a: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
        return a.clamp(self.lower, self.upper).to(a.dtype)

    def violation(self, a: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch"]:
        return torch.maximum(self.lower - a, a - self.upper).amax(-1).clamp(min=0)

    def describe(self, a: Any) -> list[Any]:
        return [a >= as_numpy(self.lower), a <= as_numpy(self.upper)]

    def rows(self) -> Rows:
        eye = torch.diag_embed(torch.ones_like(self.lower))
        G, h = torch.cat([eye, -eye]), torch.cat([self.upper, -self.lower])
        return Rows(A=G[:0], b=h[:0], G=G, h=h)

    def extra_repr(self) -> str:
        return f"lower={brief(self.lower)}, upper={brief(self.upper)}, dim={self.dim}"


def _dim(lower: Tensor, upper: Tensor, dim: int | None) -> int:
    if dim is not None:
        check_dim("Box", dim)
        return dim
    sizes = [len(v) for v in (lower, upper) if v.ndim == 1]
    if len(set(sizes)) > 1:
        raise ValueError(
            f"Box needs as many lower bounds as upper bounds, but got {sizes[0]} and {sizes[1]}. "
            f"Give one pair for each coordinate."
        )
    if sizes:
        check_dim("Box", sizes[0])
        return sizes[0]
    if lower.ndim == upper.ndim == 0:
        raise ValueError(
            f"Box needs dim where both bounds are numbers, but got lower {lower:g} and upper "
            f"{upper:g} alone. Write Box({lower:g}, {upper:g}, dim=7), or give vectors."
        )
    raise ValueError(
        f"Box needs numbers or vectors as bounds, but got lower of shape {tuple(lower.shape)} "
        f"and upper of shape {tuple(upper.shape)}. Flatten them."
    )
