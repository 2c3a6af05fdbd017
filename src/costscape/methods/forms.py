"""Which forms of outcomes suit the data, and which of several fitted ones to keep."""

from jaxtyping import Float
from torch import Tensor

from costscape.data import Dataset
from costscape.models import Absolute, Anchored, LocationScale, Outcomes, WindowLevels

WIDEST = 1000  # numbers of x for a linear map from all of them
LARGEST = 100_000  # numbers of such a map


def suitable(data: Dataset) -> list[Outcomes]:
    """The forms that can be had for such x and y, those with the fewest numbers to learn first."""
    x, y = data.x, data.y
    forms: list[Outcomes] = [Absolute(), Anchored()]
    if x[0].numel() <= WIDEST and x[0].numel() * y[0].numel() <= LARGEST:
        forms.insert(0, LocationScale())
    if x.ndim == 3 and x.shape[2] == 1 and y.ndim == 2 and x.min() >= 0 and y.min() >= 0:
        forms.append(WindowLevels())  # past and future of one series, it seems
    return forms


def clearly_best(costs: list[Float[Tensor, "n"]]) -> int:
    """The first, unless a later one is cheaper by two standard errors of the difference."""
    best = 0
    for i in range(1, len(costs)):
        less = costs[best] - costs[i]
        if len(less) > 1 and less.mean() > 2 * less.std() / len(less) ** 0.5:
            best = i
    return best


def inner(form: Outcomes) -> Absolute | Anchored | LocationScale:
    """What the multiples of a window's level are, or the form itself."""
    return form.of if isinstance(form, WindowLevels) else form
