"""Three samplers of a polytope C = {a : A a = b, G a <= h}.

All work in coordinates that leave the equalities out,

    a = centre + frame u,   u in R^k,   C = {u : H u <= 1},

where the centre is an inner point and the frame makes C round: the unit ball of u is Dikin's
ellipsoid at the analytic centre, which lies inside C.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Generator, Tensor

BLOCK = 2**22  # numbers proposed at once


@dataclass(frozen=True)
class Chart:
    """C without its equalities, in double precision.

    The ``free`` coordinates determine the others; the ``corner`` rows of H meet in one point.
    """

    centre: Float[Tensor, "d"]
    frame: Float[Tensor, "d k"]
    H: Float[Tensor, "m k"]
    lower: Float[Tensor, "d"]
    upper: Float[Tensor, "d"]
    free: Int[Tensor, "k"]
    corner: Int[Tensor, "k"]

    def actions(self, u: Float[Tensor, "n k"]) -> Float[Tensor, "n d"]:
        return self.centre + u @ self.frame.T


class Sampler(ABC):
    """A law on a polytope."""

    @abstractmethod
    def draw(self, c: Chart, n: int, generator: Generator | None) -> Float[Tensor, "n d"]:
        """n actions, in double precision; k >= 1."""


@dataclass(frozen=True)
class HitAndRun(Sampler):
    """Samples near uniformly: each point ends its own chain, which starts at the centre of C.

    Args:
        steps: int, default 20. Steps of a chain.

    A move goes to a uniform point of the chord of C along a line (Smith 1984); every choice of
    lines that does not look at the present point has the uniform law as its limit. A step is
    k + 1 moves: one along each edge of a corner of C, in random order, then one in a random
    direction. Random directions alone need about k^2 moves: with edges, after 10 steps the
    variances on a simplex, a box and a capped budget in 47 dimensions, and on the 5 x 5
    assignment polytope, were within 3 % of their limit. Cost: O(steps n m k).

    >>> import costscape as cs
    >>> G, h = [[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]], [1.0, 1.0, 0.0]
    >>> triangle = cs.Polytope(G=G, h=h, sampler=cs.HitAndRun(steps=10))
    >>> bool(triangle.contains(triangle.sample(100)).all())
    True
    """

    steps: int = 20

    def __post_init__(self) -> None:
        _check_steps("HitAndRun", self.steps)

    def draw(self, c: Chart, n: int, generator: Generator | None) -> Float[Tensor, "n d"]:
        k = c.frame.shape[1]
        edges = torch.linalg.inv(c.H[c.corner]).T
        rates = edges @ c.H.T
        # a rate that is 0 up to rounding must not count as a wall
        rates = rates.where(rates.abs() > 1e-12 * rates.abs().amax(1, keepdim=True), 0.0)
        u, room = c.H.new_zeros(n, k), c.H.new_ones(n, len(c.H))  # room = 1 - H u
        for _ in range(self.steps):
            t = torch.empty_like(u)
            for i in torch.randperm(k, generator=generator, device=u.device).tolist():
                t[:, i : i + 1], room = _along_chord(room, rates[i], generator)
            move = torch.randn(n, k, generator=generator, dtype=u.dtype, device=u.device)
            far, room = _along_chord(room, move @ c.H.T, generator)
            u = u + t @ edges + far * move
        # a point that rounding leaves outside moves towards the centre
        return c.actions(u / (u @ c.H.T).amax(-1, keepdim=True).clamp(min=1))


@dataclass(frozen=True)
class BallWalk(Sampler):
    """Samples near uniformly: each point ends its own chain, which starts at the centre of C.

    Args:
        steps: int, default None. Steps of a chain; None for 100 + 2 k^2, after which the variances
            on a simplex are within 3 % of their limit.
        radius: float, default 1. Radius of the ball where C is made round: at 1 the first step
            always stays inside.

    A step goes to a uniform point of a ball around the present one, or stays where that leads
    out of C (Lovasz and Simonovits 1990). It mixes more slowly than HitAndRun. Cost: O(steps n m
    k).

    >>> import costscape as cs
    >>> G, h = [[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]], [1.0, 1.0, 0.0]
    >>> triangle = cs.Polytope(G=G, h=h, sampler=cs.BallWalk(steps=50))
    >>> bool(triangle.contains(triangle.sample(100)).all())
    True
    """

    steps: int | None = None
    radius: float = 1.0

    def __post_init__(self) -> None:
        if self.steps is not None:
            _check_steps("BallWalk", self.steps)
        if not 0 < self.radius < float("inf"):
            raise ValueError(
                f"BallWalk needs a positive radius, but got radius={self.radius:g}. Try 1.0."
            )

    def draw(self, c: Chart, n: int, generator: Generator | None) -> Float[Tensor, "n d"]:
        k = c.frame.shape[1]
        u = c.H.new_zeros(n, k)
        for _ in range(100 + 2 * k**2 if self.steps is None else self.steps):
            move = torch.randn(n, k, generator=generator, dtype=u.dtype, device=u.device)
            share = torch.rand(n, 1, generator=generator, dtype=u.dtype, device=u.device)
            to = u + move * (self.radius * share ** (1 / k) / move.norm(dim=-1, keepdim=True))
            u = to.where((to @ c.H.T <= 1).all(-1, keepdim=True), u)
        return c.actions(u)


@dataclass(frozen=True)
class OuterBox(Sampler):
    """Samples each free coordinate uniformly between its bounds; A a = b determines the others.

    Args:
        keep_outside: bool, default False. False draws a point that breaks an inequality again,
            which makes the law uniform on C, exactly; the cost grows with the share of the box
            outside C. True keeps all points: the law is the relaxed one, and ``sample`` may leave
            C.
        tries: int, default 1000. More draws for each point raise RuntimeError.

    The paper's sampler (Constrained Sampling): the bounds are 2d linear programs. A point meets
    the equalities but may break inequalities.

    >>> import costscape as cs
    >>> G, h = [[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]], [1.0, 1.0, 0.0]
    >>> triangle = cs.Polytope(G=G, h=h, sampler=cs.OuterBox())
    >>> bool(triangle.contains(triangle.sample(100)).all())
    True
    """

    keep_outside: bool = False
    tries: int = 1000

    def __post_init__(self) -> None:
        if self.tries < 1:
            raise ValueError(
                f"OuterBox needs at least one try a point, but got tries={self.tries}. Try 1000."
            )

    def draw(self, c: Chart, n: int, generator: Generator | None) -> Float[Tensor, "n d"]:
        if self.keep_outside:
            return c.actions(self._propose(c, n, generator))
        accepted, drawn, most = c.H.new_empty(0, len(c.free)), 0, self.tries * max(n, 100)
        rows = 2 * n
        while (have := len(accepted)) < n:
            if drawn:
                rows = 2 * rows if have == 0 else int(1.2 * (n - have) * drawn / have) + 16
            rows = min(rows, max(1, BLOCK // len(c.H)), most - drawn)
            if rows <= 0:
                raise RuntimeError(
                    f"OuterBox found {have} points of C in {drawn} draws from its outer box, but "
                    f"{n} were asked for. Use HitAndRun(), which does not depend on the box, "
                    f"or OuterBox(keep_outside=True) for points that break inequalities."
                )
            u = self._propose(c, rows, generator)
            accepted = torch.cat([accepted, u[(u @ c.H.T <= 1).all(-1)]])
            drawn += rows
        return c.actions(accepted[:n])

    def _propose(self, c: Chart, n: int, generator: Generator | None) -> Tensor:
        low, high = c.lower[c.free], c.upper[c.free]
        share = torch.rand(n, len(low), generator=generator, dtype=low.dtype, device=low.device)
        offset = low + share * (high - low) - c.centre[c.free]
        u: Tensor = torch.linalg.solve(c.frame[c.free], offset.T).T
        return u


def _along_chord(room: Tensor, rate: Tensor, generator: Generator | None) -> tuple[Tensor, Tensor]:
    """t, uniform on {t : t rate <= room} in each row, and the room it leaves."""
    # the first wall ahead is the one with the largest rate for its room; 0 / 0 is no wall
    behind, ahead = (rate / room.clamp(min=1e-300)).aminmax(dim=-1, keepdim=True)
    share = torch.rand(len(room), 1, generator=generator, dtype=room.dtype, device=room.device)
    t = share / ahead + (1 - share) / behind
    return t, room - t * rate


def _check_steps(owner: str, steps: int) -> None:
    if steps < 1:
        raise ValueError(
            f"{owner} needs at least one step, but got steps={steps}. Leave steps out for enough."
        )
