"""The zoo: small decision problems of many kinds, on which the library's defaults are chosen.

None of them is a problem of the paper. To add one, add an entry to the table of its kind.
"""

from collections.abc import Callable
from functools import partial

from costscape.bench.zoo.generated import Generated
from costscape.bench.zoo.generated_coupled import GENERATED_COUPLED
from costscape.bench.zoo.generated_separable import GENERATED_SEPARABLE
from costscape.bench.zoo.sales_problems import SALES
from costscape.bench.zoo.table_problems import TABLES
from costscape.bench.zoo.wind_problems import WIND
from costscape.problems.problem import Problem

__all__ = ["GENERATED", "ZOO"]

GENERATED: dict[str, Generated] = GENERATED_SEPARABLE | GENERATED_COUPLED
ZOO: dict[str, Callable[[int], Problem]] = {
    **{name: partial(recipe.make, name) for name, recipe in GENERATED.items()},
    **SALES,
    **WIND,
    **TABLES,
}
