"""a >= 0, sum(a) <= total, and where wanted a <= upper."""

from math import ceil

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float
from torch import Generator, Tensor

from costscape.sets.constraint_set import Polyhedral, Rows
from costscape.sets.simplex import onto_total
from costscape.sets.validation import (
    Numbers,
    as_numpy,
    as_tensors,
    as_vector,
    axes,
    brief,
    check_dim,
    check_total,
)

BLOCK = 2**22  # numbers proposed at once
SPARE = 64  # extra proposals: too few are accepted with a probability of about 1e-9


class Budget(Polyhedral):
    """C = {a : 0 <= a <= upper, sum(a) <= total}; samples are uniform.

    Args:
        total: a positive number, or (n,) with a total for each x; see ``RowSets``.
        dim: d.
        upper: cap of each coordinate, a number, a vector (d,), or (n, d) with a row for each x;
            None or inf for no cap.

    Without caps a uniform point is the first d coordinates of a flat Dirichlet in d + 1. With
    caps it is drawn by rejection: each a_i from the density exp(-t a_i / total) on [0, upper_i],
    accepted with probability exp(t (sum(a) / total - 1)) where sum(a) <= total. Every t >= 0
    gives the uniform law exactly; the t for which the mean sum is the total (0 where the cap box
    has less) accepts most, about 1 in 2.5 sqrt(d) at worst.

    >>> Budget(total=3.0, dim=3, upper=2.0).project(torch.tensor([4.0, 2.0, 0.0]))
    tensor([2., 1., 0.])
    """

    total: Tensor
    upper: Tensor
    tilt: Tensor

    def __new__(
        cls, *, total: Numbers = 1.0, dim: int = 1, upper: Numbers | None = None
    ) -> "Budget":
        """Return a Budget, or RowSets for several rows; copies are made without arguments."""
        if axes(total) == 0 and axes(upper) < 2:
            return super().__new__(cls)
        from costscape.sets.make_rows import budgets  # it imports this module

        return budgets(total, dim, upper)  # type: ignore[return-value]

    def __init__(self, *, total: Numbers, dim: int, upper: Numbers | None = None) -> None:
        super().__init__()
        check_dim("Budget", dim)
        caps: Numbers = float("inf") if upper is None else upper
        whole, cap = as_tensors("Budget", total=total, upper=caps)
        check_total("Budget", whole)
        cap = as_vector("Budget", "upper", cap, dim)
        if len(bad := (~(cap >= 0)).nonzero()):
            i = int(bad[0])
            raise ValueError(
                f"Budget needs upper >= 0 in every coordinate, but upper[{i}] is {cap[i]:g} "
                f"({len(bad)} such). Use 0 where nothing may be spent, inf where there is no cap."
            )
        self.dim = dim
        self.register_buffer("total", whole)
        self.register_buffer("upper", cap.minimum(whole))
        tilt = _tilt(self.upper, whole)
        self.register_buffer("tilt", whole.new_tensor(tilt))
        # plain bools: reading a tensor would make the CPU wait for the GPU at every draw
        self.capped, self.tilted = bool((self.upper < whole).any()), tilt > 0

    @property
    def bounds(self) -> tuple[Float[Tensor, "d"], Float[Tensor, "d"]]:
        return torch.zeros_like(self.upper), self.upper

    def sample(self, n: int, generator: Generator | None = None) -> Float[Tensor, "n d"]:
        if self.capped:
            most = max(1, int(BLOCK / self.dim / self._tries() - SPARE))
            parts = [min(most, n - i) for i in range(0, max(n, 1), most)]
            return torch.cat([self._sample_capped(part, generator) for part in parts])
        e = self.total.new_empty(n, self.dim + 1).exponential_(generator=generator)
        return self.total * e[:, :-1] / e.sum(-1, keepdim=True)

    def project(self, a: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
        """O(d log d) an action, computed in double precision; differentiable."""
        exact, upper, total = a.double(), self.upper.double(), self.total.double()
        inside = exact.clamp(torch.zeros_like(upper), upper)
        over = inside.sum(-1, keepdim=True) > total
        if over.any():
            inside = torch.where(over, onto_total(exact, upper, total), inside)
        return inside.to(a.dtype)

    def violation(self, a: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch"]:
        worst = torch.maximum(-a, a - self.upper).amax(-1)
        over = (a.double().sum(-1) - self.total.double()).to(a.dtype)
        return torch.maximum(worst, over).clamp(min=0)

    def rows(self) -> Rows:
        one = torch.ones_like(self.upper)
        eye = torch.diag_embed(one)
        G = torch.cat([eye, -eye, one[None]])
        h = torch.cat([self.upper, 0 * one, self.total[None]])
        return Rows(A=G[:0], b=h[:0], G=G, h=h)

    def extra_repr(self) -> str:
        cap = f", upper={brief(self.upper)}" if self.capped else ""
        return f"total={float(self.total):g}{cap}, dim={self.dim}"

    def _tries(self) -> float:
        """Proposals for one accepted point, at worst, and a fifth more."""
        return 1.2 * (2.5 * self.dim**0.5 if self.tilted else 2.0)

    def _sample_capped(self, n: int, generator: Generator | None) -> Tensor:
        """Draw enough proposals; should too few ever be accepted, some are used twice."""
        cap = self.upper / self.total
        rows = ceil((n + SPARE) * self._tries())
        u = cap.new_empty(rows, self.dim).uniform_(generator=generator)
        # the inverse of the distribution function; u * cap in the limit of no tilt
        a = -(u * (-self.tilt * cap).expm1()).log1p() / self.tilt if self.tilted else u * cap
        unspent = 1 - a.sum(-1)
        uniform = cap.new_empty(rows).uniform_(generator=generator)
        accepted = (unspent >= 0) & (uniform < (-self.tilt * unspent).exp())
        order = accepted.int().argsort(descending=True, stable=True)
        index = torch.arange(n, device=cap.device) % accepted.sum().clamp(min=1)
        return (self.total * a[order[index]]).minimum(self.upper)


def _tilt(upper: Tensor, total: Tensor) -> float:
    """The t >= 0 for which the mean sum is the total, or 0 where the untilted mean is less."""
    cap = as_numpy(upper.double() / total.double())
    if cap.sum() <= 2:
        return 0.0
    from scipy.optimize import brentq  # slow to import

    # the mean of one coordinate is less than 1 / t, so the root is less than d
    return float(brentq(lambda t: float((cap * _share(t * cap)).sum()) - 1, 0.0, 2.0 * len(cap)))


def _share(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The mean of the density exp(-x v) on [0, 1]: 1 / x - 1 / (exp(x) - 1)."""
    large = np.maximum(x, 1e-3)
    exact = 1 / large - np.exp(-large) / -np.expm1(-large)
    return np.where(x > 1e-3, exact, 0.5 - x / 12)
