"""a >= 0, sum(a) = total."""

from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Generator, Tensor

from costscape.sets.simplex_projection import onto_total
from costscape.sets.tangent import Polyhedral, Rows
from costscape.sets.validation import Numbers, as_tensors, check_dim, check_total


class Simplex(Polyhedral):
    """C = {a : a >= 0, sum(a) = total}; samples are uniform (total times a flat Dirichlet).

    >>> Simplex(dim=3).project(torch.tensor([1.0, 1.0, -5.0]))
    tensor([0.5000, 0.5000, 0.0000])
    """

    total: Tensor

    def __init__(self, *, total: Numbers = 1.0, dim: int) -> None:
        super().__init__()
        check_dim("Simplex", dim)
        (whole,) = as_tensors("Simplex", total=total)
        check_total("Simplex", whole)
        self.dim = dim
        self.register_buffer("total", whole)

    @property
    def bounds(self) -> tuple[Float[Tensor, "d"], Float[Tensor, "d"]]:
        upper = self.total.repeat(self.dim)
        return upper if self.dim == 1 else torch.zeros_like(upper), upper

    def sample(self, n: int, generator: Generator | None = None) -> Float[Tensor, "n d"]:
        e = self.total.new_empty(n, self.dim).exponential_(generator=generator)
        return self.total * e / e.sum(-1, keepdim=True)

    def project(self, a: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
        """O(d log d) an action, computed in double precision; differentiable."""
        total = self.total.double()
        return onto_total(a.double(), total.repeat(self.dim), total).to(a.dtype)

    def violation(self, a: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch"]:
        unequal = (a.sum(-1) - self.total).abs()
        return torch.maximum((-a).amax(-1), unequal).clamp(min=0)

    def describe(self, a: Any) -> list[Any]:
        return [a >= 0, np.ones(self.dim) @ a == float(self.total)]

    def rows(self) -> Rows:
        one = torch.ones_like(self.bounds[1])
        return Rows(A=one[None], b=self.total[None], G=-torch.diag_embed(one), h=0 * one)

    def extra_repr(self) -> str:
        return f"total={float(self.total):g}, dim={self.dim}"
