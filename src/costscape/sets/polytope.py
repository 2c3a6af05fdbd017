"""A a = b, G a <= h."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from costscape.sets.constraint_set import Polyhedral, Rows
from costscape.sets.projection import nearest
from costscape.sets.samplers import Chart, HitAndRun, Sampler
from costscape.sets.validation import Numbers, as_numpy, axes, read_rows


class Polytope(Polyhedral):
    """C = {a : A a = b, G a <= h}, bounded; it may be flat or a single point.

    Args:
        A: equalities, (e, d); None for none.
        b: their right-hand sides, (e,) or a number.
        G: inequalities, (m, d); None for none.
        h: their right-hand sides, (m,), a number, or (n, m) with a row for each x; see
            ``RowSets``.
        sampler: gives the law of samples; None for HitAndRun(), which is near uniform.

    The constructor solves 2d + 2 linear programs, which find the bounds, refuse an empty or
    unbounded set, and find inequalities that hold as equalities all over C. Those join A; rows
    that follow from others are dropped.

    >>> square = Polytope(G=[[1, 0], [0, 1], [-1, 0], [0, -1]], h=[1, 1, 0, 0])
    >>> square.project(torch.tensor([2.0, 0.5]))
    tensor([1.0000, 0.5000])
    """

    A: Tensor
    b: Tensor
    G: Tensor
    h: Tensor
    lower: Tensor
    upper: Tensor
    centre: Tensor
    frame: Tensor
    free: Tensor
    corner: Tensor

    def __new__(cls, *, h: Numbers | None = None, **others: Any) -> "Polytope":
        """Return a Polytope, or RowSets for rows of h; copies are made without arguments."""
        if axes(h) < 2:
            return super().__new__(cls)
        from costscape.sets.make_rows import polytopes  # it imports this module

        return polytopes(h, **others)  # type: ignore[return-value, arg-type]

    def __init__(
        self,
        *,
        A: Numbers | None = None,
        b: Numbers | None = None,
        G: Numbers | None = None,
        h: Numbers | None = None,
        sampler: Sampler | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(sampler, Sampler | None):
            raise TypeError(
                f"Polytope needs a sampler such as HitAndRun(), BallWalk() or OuterBox(), but got "
                f"{sampler!r}. Pass an object, with its brackets."
            )
        self.sampler = HitAndRun() if sampler is None else sampler
        A_, b_, G_, h_ = read_rows(A, b, G, h)
        tol = max(1e-10, 10 * torch.finfo(A_.dtype).eps)
        from costscape.sets.polytope_geometry import hull  # scipy is slow to import

        shape = hull(as_numpy(A_), as_numpy(b_), as_numpy(G_), as_numpy(h_), tol)
        equal, flat, live = (torch.from_numpy(v) for v in (shape.equal, shape.flat, shape.live))
        self.dim = A_.shape[1]
        self.register_buffer("A", torch.cat([A_[equal], G_[flat]]))
        self.register_buffer("b", torch.cat([b_[equal], h_[flat]]))
        self.register_buffer("G", G_[live])
        self.register_buffer("h", h_[live])
        for name in ("lower", "upper"):
            self.register_buffer(name, torch.from_numpy(getattr(shape, name)).to(A_))
        for name in ("centre", "frame", "free", "corner"):
            self.register_buffer(name, torch.from_numpy(getattr(shape, name)).to(A_.device))

    @property
    def bounds(self) -> tuple[Float[Tensor, "d"], Float[Tensor, "d"]]:
        return self.lower, self.upper

    def sample(self, n: int, generator: Generator | None = None) -> Float[Tensor, "n d"]:
        c, _ = self._chart()
        if self.frame.shape[1] == 0:
            return c.centre.repeat(n, 1).to(self.lower.dtype)
        a: Tensor = self.sampler.draw(c, n, generator)
        return a.to(self.lower.dtype)

    def project(self, a: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
        """Exact (a dual active-set method), computed in double precision; differentiable.

        An action costs about one move of O(d (m + d)) for each row that holds its projection.
        """
        c, basis = self._chart()
        if basis.shape[1] == 0:
            return c.centre.expand(a.shape).to(a.dtype)
        size = c.frame.norm()  # about the size of C, which makes the tolerances relative
        G, h = self.G.double(), self.h.double()
        H, s = G @ basis, (h - G @ c.centre) / size
        H, s = H / H.norm(dim=1, keepdim=True), s / H.norm(dim=1)
        exact = a.double().reshape(-1, self.dim)
        q = (exact - c.centre) @ basis / size
        outside = ~(q.detach() @ H.T <= s).all(-1)
        z, W = nearest(q.detach()[outside], H, s)
        if q.requires_grad:
            z = z + _along(q[outside] - q[outside].detach(), H, W)
        z = q.index_put((outside,), z)
        p: Tensor = c.centre + size * z @ basis.T
        if basis.shape[1] == self.dim:  # points of C stay as they are
            p = torch.where(outside[:, None], p, exact)
        return p.to(a.dtype).reshape(a.shape)

    def violation(self, a: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch"]:
        """Each row divided by its largest coefficient, so that its units are those of a."""
        A, b, G, h = (v.double() for v in (self.A, self.b, self.G, self.h))
        unequal = (a.double() @ A.T - b).abs() / A.abs().amax(1)
        over = (a.double() @ G.T - h) / G.abs().amax(1)
        return torch.cat([unequal, over], -1).amax(-1).clamp(min=0).to(a.dtype)

    def rows(self) -> Rows:
        """Those in use: without rows that follow from others, flat inequalities in A."""
        return Rows(self.A, self.b, self.G, self.h)

    def extra_repr(self) -> str:
        return (
            f"equalities={len(self.A)}, inequalities={len(self.G)}, dim={self.dim}, "
            f"sampler={self.sampler}"
        )

    def _chart(self) -> tuple[Chart, Tensor]:
        """C without its equalities, and an orthonormal basis of its hull, both as columns.

        The hull follows from A, b, G and h as they now are: where ``.float()`` has rounded all
        buffers, centre and frame are brought back onto it.
        """
        A, b, G, h = (v.double() for v in (self.A, self.b, self.G, self.h))
        centre, frame = self.centre.double(), self.frame.double()
        basis = torch.eye(self.dim, dtype=G.dtype, device=G.device)
        if len(A):
            length = A.norm(dim=1)
            U, S, V = torch.linalg.svd(A / length[:, None])
            across = V[: len(A)].T
            centre = centre - across @ (U.T @ ((A @ centre - b) / length) / S)
            frame = frame - across @ (across.T @ frame)
            basis = V[len(A) :].T
        H = G @ frame / (h - G @ centre).clamp(min=1e-30)[:, None]
        lower, upper = self.lower.double(), self.upper.double()
        return Chart(centre, frame, H, lower, upper, self.free, self.corner), basis


def _along(move: Tensor, H: Tensor, W: Tensor) -> Tensor:
    """The part of each move along the rows W that hold its point: the projection's derivative."""
    rows = H * W[..., None]
    inverse: Tensor = torch.linalg.pinv(rows)
    return move - (inverse @ (rows @ move[..., None]))[..., 0]
