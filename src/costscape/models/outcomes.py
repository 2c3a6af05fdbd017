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
    """Outcomes are the same for every x; only their weights differ (paper, Eq. 4).

    v_s(x) = v_s. This form has no arguments.

    >>> import costscape as cs
    >>> task = cs.SeparableTask(lambda y, a: (y - a).abs(), cs.Box(0.0, 9.0, dim=1), convex=True)
    >>> cs.DF2(task, outcomes=cs.Absolute(), folds=1).outcomes
    Absolute()
    """


@dataclass(frozen=True)
class Anchored:
    """Outcomes lie around a location m(x), spread by r(x), with weights that depend on x.

    v_s(x) = m(x) + r(x) v_s, where m is a linear map of x plus a part that the encoder computes.
    m starts at ridge regression, the v_s start at its residuals and r starts at 1. This form has
    no arguments.

    >>> import costscape as cs
    >>> task = cs.SeparableTask(lambda y, a: (y - a).abs(), cs.Box(0.0, 9.0, dim=1), convex=True)
    >>> cs.DF2(task, outcomes=cs.Anchored(), folds=1).outcomes
    Anchored()
    """


@dataclass(frozen=True)
class LocationScale:
    """Outcomes lie around m(x), linear in x, spread by r(x); their weights do not depend on x.

    v_s(x) = m(x) + r(x) v_s. This form has the least noise where y moves along a line with x.
    This form has no arguments.

    >>> import costscape as cs
    >>> task = cs.SeparableTask(lambda y, a: (y - a).abs(), cs.Box(0.0, 9.0, dim=1), convex=True)
    >>> cs.DF2(task, outcomes=cs.LocationScale(), folds=1).outcomes
    LocationScale()
    """


@dataclass(frozen=True)
class WindowLevels:
    """Each window is divided by its level, and outcomes are multiples of that level.

    Args:
        of: Absolute, Anchored or LocationScale, default Anchored(). The form of the multiples.
        level: function from x (B, ...) to one positive number for each window, (B,); default the
            mean absolute value of the window.

    x and y must have the same unit, such as past and future sales. f is always evaluated in true
    units.

    >>> import costscape as cs
    >>> form = cs.WindowLevels(cs.LocationScale(), level=lambda x: x.flatten(1).abs().amax(1))
    >>> task = cs.SeparableTask(lambda y, a: (y - a).abs(), cs.Box(0.0, 9.0, dim=1), convex=True)
    >>> cs.DF2(task, outcomes=form, folds=1).outcomes.of
    LocationScale()
    """

    of: "Plain" = field(default_factory=Anchored)
    level: Level = mean_level


Plain = Absolute | Anchored | LocationScale
Outcomes = Plain | WindowLevels
