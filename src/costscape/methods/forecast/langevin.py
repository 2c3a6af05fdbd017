"""Actions with an energy: p(a) = exp(-E(a)) / Z on C, its normaliser and draws from it.

On a Box, by importance: with a_i ~ q, i = 1..N,

    log Z  ~  log mean_i exp(-E(a_i)) / q(a_i),        d log Z  ~  -sum_i w_i dE(a_i),
    w_i = softmax_i( -E(a_i) - log q(a_i) ).

Where C has no density to divide by, such as a simplex, by projected Langevin dynamics:

    a  <-  project_C( a - (h w)^2 / 2  dE(a) / da  +  h w n ),      n ~ N(0, I)

with a step h that is a share of C's width w, its longest side.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import log, pi

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from costscape.sets import Box, ConstraintSet
from costscape.training.settings import Checked, Count, Positive


@dataclass(frozen=True)
class Weighted:
    """Actions (B, N, d) and the log density (B, N) of the law that drew them."""

    actions: Float[Tensor, "B N d"]
    log_q: Float[Tensor, "B N"]

    def log_normaliser(self, energy: Float[Tensor, "B N"]) -> Float[Tensor, "B"]:
        """log Z from the energies of the actions; its gradient is the one above."""
        return (-energy - self.log_q).logsumexp(1) - log(energy.shape[1])

    def weights(self, energy: Float[Tensor, "B N"]) -> Float[Tensor, "B N"]:
        """w_i: under them the actions stand for exp(-E) / Z."""
        return (-energy - self.log_q).softmax(1)


def around(
    centre: Float[Tensor, "B d"],
    box: Box,
    deviations: Float[Tensor, "k d"],
    n: int,
    rng: Generator,
) -> Weighted:
    """n draws for each centre from an equal mixture of k Gaussians there, truncated to the box.

    Truncation, not rejection: a centre in a corner of 12 dimensions would lose all but one draw in
    4096. The components take turns, and q counts the turns of each. Coordinates in which the box
    has no width keep their value, with density 1.
    """
    free = box.upper > box.lower
    sd = deviations.where(free, 1.0)  # (k, d)
    k, d = sd.shape
    low = torch.special.ndtr((box.lower - centre).unsqueeze(1) / sd)  # (B, k, d)
    mass = (torch.special.ndtr((box.upper - centre).unsqueeze(1) / sd) - low).where(free, 1.0)
    turn = torch.arange(n, device=sd.device) % k
    u = torch.rand(len(centre), n, d, generator=rng, device=sd.device, dtype=sd.dtype)
    rounding = torch.finfo(sd.dtype).eps  # the last numbers before 0 and 1, whose z is infinite
    p = (low[:, turn] + u * mass[:, turn]).clamp(rounding, 1 - rounding)
    a = box.project(centre.unsqueeze(1) + sd[turn] * torch.special.ndtri(p))
    z = (a - centre.unsqueeze(1)).unsqueeze(2) / sd  # (B, n, k, d)
    each = -0.5 * z.square() - (sd.log() + mass.log()).unsqueeze(1) - 0.5 * log(2 * pi)
    share = torch.bincount(turn, minlength=k).to(sd) / n
    return Weighted(a, (share.log() + each.where(free, 0.0).sum(-1)).logsumexp(-1))


@dataclass(frozen=True)
class Langevin(Checked):
    """Projected Langevin dynamics, which SOEBM samples actions with where C has no density.

    Args:
        steps: int, default 100, the paper's. Number of steps of a chain.
        step: float, default 0.05, the paper's. Step length h, as a share of the longest side of C.

    >>> import costscape as cs
    >>> cs.SOEBM(cs.problems.inventory(), langevin=cs.Langevin(steps=50)).langevin
    Langevin(steps=50, step=0.05)
    """

    steps: Count = 100
    step: Positive = 0.05

    def walk(
        self,
        energy: Callable[[Tensor], Tensor],
        start: Float[Tensor, "B J d"],
        feasible: ConstraintSet,
        rng: Generator,
    ) -> Float[Tensor, "B J d"]:
        """The ends of B x J chains in C; ``energy`` maps actions (B, J, d) to (B, J).

        No gradient flows back through the chain.
        """
        lower, upper = feasible.bounds
        length = self.step * (upper - lower).max()
        a = start.detach()
        for _ in range(self.steps):
            with torch.enable_grad():
                a = a.detach().requires_grad_()
                (slope,) = torch.autograd.grad(energy(a).sum(), a)
            with torch.no_grad():
                n = torch.randn(a.shape, generator=rng, device=a.device, dtype=a.dtype)
                a = feasible.project(a - length**2 / 2 * slope + length * n)
        return a.detach()
