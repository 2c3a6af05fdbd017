"""What a model calls the numbers of its outcomes."""

from math import prod
from typing import Any


def outcome_names(model: Any) -> list[str]:
    """The columns of Y in fit, or the places of its numbers as text, "0" first."""
    count, names = prod(model.y_shape_), model.columns_
    return list(names) if names and len(names) == count else [str(i) for i in range(count)]
