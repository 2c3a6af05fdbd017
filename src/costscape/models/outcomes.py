"""The forms of the outcomes v_s, and of their weights.

    Absolute      v_s(x) = v_s                       the paper's
    Anchored      v_s(x) = m(x) + r(x) v_s           location m and positive scale r of the encoder
    LocationScale v_s(x) = m(x) + r(x) (v_s + U_s x) m linear in x, weights the same for all x
    WindowLevels  v_s(x) = l(x) (form above)         l(x): the level of the window x itself
    Refined       the same as Anchored               m chosen by its decisions before the rest
    Changes       v_s(x) = c b(x) + (form above)     b(x): known beforehand, such as what was last

All keep g(x, .) a mixture of f(v, .), hence convex in a where f is. Outcomes with a location
follow x beyond the range of the training labels; window levels and changes let a series grow or
drift.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod

import torch
from jaxtyping import Float
from torch import Tensor, nn

from costscape.models.relative import Damped, Level, check_limit, mean_level


@dataclass(frozen=True)
class Absolute:
    """Outcomes are the same for every x; only their weights differ (paper, Eq. 4)."""


@dataclass(frozen=True)
class Anchored:
    """Outcomes lie around a location m(x), spread by r(x).

    m is first fitted by least squares for ``epochs`` epochs; the v_s start as its residuals and
    r as 1.
    """

    epochs: int = 10


@dataclass(frozen=True)
class Refined:
    """Outcomes lie around a forecast m(x), spread by r(x); what follows only refines it.

    m is fitted by least squares for up to ``epochs`` epochs, and the one whose decisions as if m
    were certain cost least on the validation part is kept. Outcomes start at its residuals, and
    stay there unless they decide better later on. For y of many numbers, of which a few costs
    tell little.
    """

    epochs: int = 60


@dataclass(frozen=True)
class LocationScale:
    """Outcomes lie around m(x), linear in x, spread by r(x); no x weighs them differently.

    The least noise where x moves y along a line. m starts at ridge regression. With ``lines`` each
    outcome follows x along a line U_s x of its own, too, as where y comes from one of several
    regressions; without, U_s = 0. None: every other member of a fit has them, since which is
    better hardly shows on a validation part, and their mean is nearly as good as the better one.
    For x of up to 1,000 numbers.
    """

    lines: bool | None = None


@dataclass(frozen=True)
class WindowLevels:
    """Each window is divided by its level, and outcomes are multiples of that level.

    x and y must be of one unit, such as past and future sales. ``of`` says what form the
    multiples have; f is always paid in true units.
    """

    of: "Plain" = field(default_factory=Anchored)
    level: Level = mean_level


@dataclass(frozen=True)
class Changes:
    """Outcomes are changes from ``base(x)``, of the shape of y: what was last, a forecast at hand.

    ``of`` says what form the changes have. Damped(base) counts by a number c that is fitted, a
    plain base by 1. With ``seen`` the network sees x as if it were no further than so many
    standard deviations from its mean (not with ``standardise=False``): where x leaves what was
    seen in training, as in a holiday, a network knows nothing.
    """

    base: Callable[[Tensor], Tensor] | Damped
    of: "Plain" = field(default_factory=Anchored)
    seen: float | None = None

    def __post_init__(self) -> None:
        check_limit("Changes", "seen", self.seen)


Plain = Absolute | Anchored | Refined | LocationScale
Outcomes = Plain | WindowLevels | Changes


class Values(nn.Module):
    """S learned points of y, in the standardised units of the training labels."""

    def __init__(self, y: Float[Tensor, "S ..."], learn: bool) -> None:
        super().__init__()
        self.v: Tensor
        if learn:
            self.v = nn.Parameter(y.clone())
        else:
            self.register_buffer("v", y.clone())

    def forward(self, code: Float[Tensor, "B out"]) -> Float[Tensor, "1 S ..."]:
        return self.v.unsqueeze(0)


class AnchoredValues(nn.Module):
    """m(x) + r(x) v_s, with m linear in the code and r = exp(linear), 1 at the start."""

    def __init__(self, y: Float[Tensor, "S ..."], width: int, learn: bool) -> None:
        super().__init__()
        self.y_shape = y.shape[1:]
        self.values = Values(y, learn)
        self.location = nn.Linear(width, prod(self.y_shape))
        self.log_scale = nn.Linear(width, prod(self.y_shape))
        nn.init.zeros_(self.log_scale.weight)
        nn.init.zeros_(self.log_scale.bias)

    def anchor(self, code: Float[Tensor, "B out"]) -> Float[Tensor, "B ..."]:
        m: Tensor = self.location(code).unflatten(-1, self.y_shape)
        return m

    def start(self, residuals: Float[Tensor, "S ..."]) -> None:
        with torch.no_grad():
            self.values.v.copy_(residuals)

    def forward(self, code: Float[Tensor, "B out"]) -> Float[Tensor, "B S ..."]:
        r: Tensor = self.log_scale(code).exp().unflatten(-1, self.y_shape)
        v: Tensor = self.values(code)
        return self.anchor(code).unsqueeze(1) + r.unsqueeze(1) * v
