"""Which forms of outcomes suit the data."""

from costscape.data import Dataset
from costscape.models import Absolute, Anchored, LocationScale, Outcomes, WindowLevels, has_line

SINGLE = Anchored()  # of one network, where no form is given
SHARED_POINTS, OWN_POINTS = 200, 64  # outcomes that all x share, and those that x moves


def suitable(data: Dataset) -> list[Outcomes]:
    """The forms that can be fitted to such x and y."""
    x, y = data.x, data.y
    forms: list[Outcomes] = [Absolute(), Anchored()]
    if has_line(x, y):
        forms.append(LocationScale())
    one_series = x.ndim == 3 and x.shape[2] == 1 and y.ndim == 2
    if one_series and x.min() >= 0 and y.min() >= 0:
        forms.append(WindowLevels())
    return forms


def usual_points(form: Outcomes) -> int:
    """How many outcomes a network has where the user does not give a number."""
    return SHARED_POINTS if isinstance(form, Absolute) else OWN_POINTS


def name_of(form: Outcomes) -> str:
    """Such as "anchored" or "window-levels of anchored"."""
    if isinstance(form, WindowLevels):
        return f"window-levels of {name_of(form.of)}"
    names = {Absolute: "absolute", Anchored: "anchored", LocationScale: "location-scale"}
    return names[type(form)]
