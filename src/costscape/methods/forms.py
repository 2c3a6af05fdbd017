"""Which forms of outcomes suit the data, and which of several fitted ones to keep."""

from dataclasses import replace

from jaxtyping import Float
from torch import Tensor

from costscape.data import Dataset
from costscape.models import (
    Absolute,
    Anchored,
    Base,
    ByLevel,
    Changes,
    Level,
    LocationScale,
    Outcomes,
    Plain,
    WindowLevels,
    mean_level,
)

WIDEST = 1000  # numbers of x for a linear map from all of them
LARGEST = 20_000  # numbers of such a map, of which each outcome may have one


def suitable(data: Dataset) -> list[Outcomes]:
    """The forms that can be had for such x and y, those with the fewest numbers to learn first."""
    x, y = data.x, data.y
    forms: list[Outcomes] = [Absolute(), Anchored()]
    if x[0].numel() <= WIDEST and x[0].numel() * y[0].numel() <= LARGEST:
        forms.insert(0, LocationScale())
    one_series = x.ndim == 3 and x.shape[2] == 1 and y.ndim == 2
    if one_series and x.min() >= 0 and y.min() >= 0 and _follows_level(x, y):
        forms.append(WindowLevels())
    return forms


def _follows_level(x: Float[Tensor, "n T 1"], y: Float[Tensor, "n m"]) -> bool:
    """Whether the mean of y varies less as a multiple of the window's level than as it is."""
    level, mean = ByLevel(mean_level, x)(x), y.mean(1)
    multiple = mean / level
    spread, own = multiple.std(correction=0), mean.std(correction=0)
    return bool(spread * mean.mean() < own * multiple.mean())


def clearly_best(costs: list[Float[Tensor, "n"]]) -> int:
    """The first, unless a later one is cheaper by two standard errors of the difference."""
    best = 0
    for i in range(1, len(costs)):
        less = costs[best] - costs[i]
        if len(less) > 1 and less.mean() > 2 * less.std() / len(less) ** 0.5:
            best = i
    return best


def inner(form: Outcomes) -> Plain:
    """What the multiples of a level or the changes from a base are, or the form itself."""
    return form.of if isinstance(form, WindowLevels | Changes) else form


def of_member(form: Outcomes, i: int) -> Outcomes:
    """The form that member i of a fit has: of LocationScale() every other one has lines."""
    if isinstance(form, WindowLevels | Changes):
        of = of_member(form.of, i)
        assert isinstance(of, Plain)
        return replace(form, of=of)
    if isinstance(form, LocationScale) and form.lines is None:
        return LocationScale(lines=i % 2 == 1)
    return form


def in_turn(forms: list[Outcomes], chosen: int, members: int) -> list[Outcomes]:
    """What form each member of a fit has: two forms in turn, or that which was chosen.

    Forms that err in different places may decide better together than the best of them alone, and
    one that is clearly worse on a validation part may be the best where the level has moved on.
    Where window levels suit, they so stand beside LocationScale(), the first, whichever was
    chosen; elsewhere LocationScale() stands beside anchored outcomes. Absolute ones stay alone:
    beside them others made no clear difference. A single fit has what was chosen.
    """
    main = beside = forms[chosen]
    if members > 1 and isinstance(forms[0], LocationScale) and not isinstance(main, Absolute):
        main = next((form for form in forms if isinstance(form, WindowLevels)), main)
        beside = forms[0] if isinstance(inner(main), Anchored) else main
    return [of_member(beside if i % 2 else main, i) for i in range(members)]


def relative_to(form: Outcomes) -> Level | Base | None:
    """What outcomes of this form are seen relative to."""
    if isinstance(form, Changes):
        return Base(form.base, form.seen)
    return form.level if isinstance(form, WindowLevels) else None
