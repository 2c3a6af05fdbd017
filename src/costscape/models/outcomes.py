"""The forms of the outcomes v_s and of their weights.

    Absolute      v_s(x) = v_s                 the paper's
    Anchored      v_s(x) = m(x) + r(x) v_s     location m and positive scale r of the encoder
    LocationScale v_s(x) = m(x) + r(x) v_s     m linear in x, weights the same for all x
    WindowLevels  v_s(x) = l(x) (form above)   l(x): the level of the window x itself

All keep g(x, .) a mixture of f(v, .), hence convex in a where f is. Outcomes with a location
follow x beyond the range of the training labels; window levels let a series grow or drift.
"""

from dataclasses import dataclass, field

from costscape.models.relative_outcomes import Level, mean_level


@dataclass(frozen=True)
class Absolute:
    """Outcomes are the same for every x; only their weights differ (paper, Eq. 4)."""


@dataclass(frozen=True)
class Anchored:
    """Outcomes lie around a location m(x), spread by r(x), with weights that depend on x.

    m is a linear map of x plus the encoder's part; it starts at ridge regression, the v_s at its
    residuals and r at 1.
    """


@dataclass(frozen=True)
class LocationScale:
    """Outcomes lie around m(x), linear in x, spread by r(x); their weights do not depend on x.

    The form with the least noise where y moves along a line with x.
    """


@dataclass(frozen=True)
class WindowLevels:
    """Each window is divided by its level, and outcomes are multiples of that level.

    Args:
        of: the form of the multiples.
        level: x (B, ...) -> one positive number for each window (B,); the mean absolute value by
            default. x and y must be of one unit, such as past and future sales. f is always
            evaluated in true units.
    """

    of: "Plain" = field(default_factory=Anchored)
    level: Level = mean_level


Plain = Absolute | Anchored | LocationScale
Outcomes = Plain | WindowLevels
