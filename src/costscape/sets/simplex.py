"""a >= 0, sum(a) = total, and the projection onto it, also with caps u.

    p_i = clip(a_i - tau, 0, u_i)   with tau such that   sum_i p_i = total

is the Euclidean projection onto {0 <= p <= u, sum p = total}; tau is the multiplier of the sum.
The sum is piecewise linear and falls in tau, with breaks at a_i - u_i and a_i: a binary search
over the 2d sorted breaks finds the piece, and on a piece tau is a division.
"""

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from costscape.sets.constraint_set import Polyhedral, Rows
from costscape.sets.validation import Numbers, as_tensors, axes, check_dim, check_total


class Simplex(Polyhedral):
    """C = {a : a >= 0, sum(a) = total}; samples are uniform (total times a flat Dirichlet).

    Args:
        total: a positive number, default 1; or (n,) with a total for each x, see ``RowSets``.
        dim: d.

    >>> Simplex(dim=3).project(torch.tensor([1.0, 1.0, -5.0]))
    tensor([0.5000, 0.5000, 0.0000])
    """

    total: Tensor

    def __new__(cls, *, total: Numbers = 1.0, dim: int = 1) -> "Simplex":
        """Return a Simplex, or RowSets for several totals; copies are made without arguments."""
        if axes(total) == 0:
            return super().__new__(cls)
        from costscape.sets.make_rows import simplexes  # it imports this module

        return simplexes(total, dim)  # type: ignore[return-value]

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

    def rows(self) -> Rows:
        one = torch.ones_like(self.bounds[1])
        return Rows(A=one[None], b=self.total[None], G=-torch.diag_embed(one), h=0 * one)

    def extra_repr(self) -> str:
        return f"total={float(self.total):g}, dim={self.dim}"


def onto_total(
    a: Float[Tensor, "*batch d"], upper: Float[Tensor, "d"], total: Float[Tensor, ""]
) -> Float[Tensor, "*batch d"]:
    """The nearest point with 0 <= p <= upper and sum p = total, where sum upper >= total.

    O(d log d) an action, differentiable. The projection does not change when all of ``a`` is
    shifted, so a second search from the shifted point removes the rounding of the first.
    """
    for _ in range(2):
        a = a - _shift(a, upper, total)
    return _clipped(a, upper)


def _shift(a: Tensor, upper: Tensor, total: Tensor) -> Tensor:
    breaks = torch.cat([a - upper, a], -1).sort(-1).values
    low = torch.zeros_like(a[..., :1], dtype=torch.long)
    high = torch.full_like(low, breaks.shape[-1])
    for _ in range((breaks.shape[-1] - 1).bit_length()):
        middle = (low + high) // 2
        enough = _clipped(a - breaks.gather(-1, middle), upper).sum(-1, keepdim=True) >= total
        low, high = middle.where(enough, low), high.where(enough, middle)
    tau, end = breaks.gather(-1, low), breaks.gather(-1, low + 1)
    over = _clipped(a - tau, upper).sum(-1, keepdim=True) - total
    free = ((a - upper <= tau) & (tau < a)).sum(-1, keepdim=True)
    # a piece without slope where the sum is too large: a_i - u_i has been rounded to a_i
    return torch.where((free == 0) & (over > 0), end, tau + over / free.clamp(min=1))


def _clipped(a: Tensor, upper: Tensor) -> Tensor:
    return a.clamp(torch.zeros_like(upper), upper)
