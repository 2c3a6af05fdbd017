"""The zoo: small decision problems of many kinds, on which the library's defaults are chosen.

None of them is a problem of the paper. To add one, add an entry to the table of its kind.
"""

from collections.abc import Callable
from functools import partial

from costscape.experiments.problem import Problem
from costscape.experiments.zoo.generated_problems import GENERATED

__all__ = ["ZOO"]

ZOO: dict[str, Callable[[int], Problem]] = {
    name: partial(recipe.make, name) for name, recipe in GENERATED.items()
}
