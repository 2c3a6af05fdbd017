"""The zoo: small decision problems of many kinds, on which the library's defaults are chosen.

None of them is a problem of the paper. To add one, add an entry to the table of its kind.
"""

from collections.abc import Callable
from functools import partial

from costscape.bench.zoo.generated import GENERATED
from costscape.bench.zoo.series_problems import SERIES
from costscape.bench.zoo.table_problems import TABLES
from costscape.problems.problem import Problem

__all__ = ["GENERATED", "ZOO"]

ZOO: dict[str, Callable[[int], Problem]] = {
    **{name: partial(recipe.make, name) for name, recipe in GENERATED.items()},
    **SERIES,
    **TABLES,
}
