"""g(x, a) as a network on the code q(x) and a, without a model of the outcomes.

    u   = (2 a - lower - upper) / (upper - lower)             a in about [-1, 1]
    h_1 = s( U_1 u + b_1(q) )
    h_2 = s( W h_1 + U_2 u + b_2(q) )
    g   = level + scale ( w_1(q) . h_1 + w_2(q) . h_2 + v(q) . u + c(q) )

with b, w, v and c linear in the code. ``Free`` has s = SiLU. ``InputConvex`` is convex in a for
every x: s is softplus, convex and increasing, and W, w_1 and w_2 pass through softplus, hence are
positive, while U, b, v and c may have any sign. This is the partially input-convex network of
Amos, Xu and Kolter, Input Convex Neural Networks, ICML 2017.

Where f is a sum over coordinates so may g be: d networks, of which number i sees a_i alone and
which share U and W. Below, G is their number (d, or 1) and e what each sees of a (1, or d).
"""

from dataclasses import dataclass
from math import log

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import linear, silu, softplus

from costscape.sets import ConstraintSet

SHARP = 5.0  # activations bend within about 2 / SHARP of 0, a fifth of C


class Head(nn.Module):
    """Two hidden layers of ``hidden`` units, for G networks at once."""

    convex = False

    def __init__(self, code: int, groups: int, seen: int, hidden: int) -> None:
        super().__init__()
        self.groups = groups
        self.sizes = [hidden, hidden, hidden, hidden, seen, 1]
        self.from_code = nn.Linear(code, groups * sum(self.sizes))
        self.first = nn.Linear(seen, hidden, bias=False)
        self.skip = nn.Linear(seen, hidden, bias=False)
        self.inner = nn.Linear(hidden, hidden, bias=False)
        nn.init.normal_(self.first.weight)
        with torch.no_grad():  # the bends start spread over C
            self.from_code.bias.view(groups, -1)[:, : 2 * hidden].uniform_(-1, 1)
        if self.convex:
            nn.init.normal_(self.inner.weight, 0.0, 1 / hidden)

    def context(self, code: Float[Tensor, "B k"]) -> Float[Tensor, "B 1 G m"]:
        """Everything that depends on x only, computed once for many actions."""
        c: Tensor = self.from_code(code).unflatten(-1, (1, self.groups, -1))
        return c

    def forward(
        self, context: Float[Tensor, "B 1 G m"], u: Float[Tensor, "#B J G e"]
    ) -> Float[Tensor, "B J G"]:
        b1, b2, w1, w2, v, c = context.split(self.sizes, -1)
        W = self.inner.weight
        if self.convex:
            # a sharp softplus: W starts at about 0.7 / hidden and then moves as a plain weight
            W, w1, w2 = softplus(W, beta=len(W)), softplus(w1), softplus(w2)
        h1 = self._activation(self.first(u) + b1)
        h2 = self._activation(linear(h1, W) + self.skip(u) + b2)
        out = w1 * h1 + w2 * h2
        g: Tensor = out.sum(-1) / self.sizes[0] ** 0.5 + (v * u).sum(-1) + c[..., 0]
        return g

    def _activation(self, h: Tensor) -> Tensor:
        if self.convex:  # 0 at 0: positive weights would add up what all units have in common
            return softplus(h, beta=SHARP) - log(2) / SHARP
        return silu(SHARP * h) / SHARP


class Free(Head):
    """Any surface."""


class InputConvex(Head):
    """Surfaces that are convex in a, for every x."""

    convex = True


class Surface(nn.Module):
    """x, a in the user's units -> g(x, a) in the user's units.

    ``level`` and ``scale`` are those of f, or of its G summands, over labels and sampled actions.
    """

    def __init__(
        self,
        scaler: nn.Module,
        encoder: nn.Module,
        head: Head,
        feasible: ConstraintSet,
        level: Float[Tensor, "G"],
        scale: Float[Tensor, "G"],
    ) -> None:
        super().__init__()
        self.scaler = scaler
        self.encoder = encoder
        self.head = head
        lower, upper = feasible.bounds
        reach = (upper - lower) / 2
        self.register_buffer("middle", (lower + upper) / 2)
        self.register_buffer("reach", reach.where(reach > 0, 1.0))
        self.register_buffer("level", level.clone())
        self.register_buffer("scale", scale.clone())
        self.middle: Tensor
        self.reach: Tensor
        self.level: Tensor
        self.scale: Tensor

    def forward(self, x: Float[Tensor, "B ..."]) -> "SurfaceAt":
        return SurfaceAt(self, self.head.context(self.encoder(self.scaler(x))))


@dataclass(frozen=True)
class SurfaceAt:
    """g(x, .) for a batch of x: call it with actions (B or 1, J, d) for costs (B, J)."""

    surface: Surface
    context: Float[Tensor, "B 1 G m"]

    def __len__(self) -> int:
        return len(self.context)

    @property
    def separable(self) -> bool:
        return self.surface.head.groups == len(self.surface.middle)

    @property
    def convex(self) -> bool:
        return self.surface.head.convex

    @property
    def shared(self) -> bool:
        return False

    def rows(self, i: slice) -> "SurfaceAt":
        return SurfaceAt(self.surface, self.context[i])

    def __call__(self, a: Float[Tensor, "#B J d"]) -> Float[Tensor, "B J"]:
        return self.terms(a).sum(-1)

    def terms(self, a: Float[Tensor, "#B J d"]) -> Float[Tensor, "B J G"]:
        """The G summands of g(x, a)."""
        s = self.surface
        u = ((a - s.middle) / s.reach).unflatten(-1, (s.head.groups, -1))
        g: Tensor = s.head(self.context, u)
        return s.level + s.scale * g
