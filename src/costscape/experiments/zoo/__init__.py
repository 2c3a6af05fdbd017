"""The zoo: small decision problems of many kinds, on which the library's defaults are chosen.

None of them is a problem of the paper. To add one, add an entry to the table of its kind.
"""

from collections.abc import Callable
from functools import partial

from costscape.experiments.problem import Problem
from costscape.experiments.zoo.generated import Generated
from costscape.experiments.zoo.generated_coupled import GENERATED_COUPLED
from costscape.experiments.zoo.generated_separable import GENERATED_SEPARABLE
from costscape.experiments.zoo.sales_problems import SALES
from costscape.experiments.zoo.table_problems import TABLES
from costscape.experiments.zoo.wind_problems import WIND

__all__ = ["GENERATED", "ZOO"]

GENERATED: dict[str, Generated] = GENERATED_SEPARABLE | GENERATED_COUPLED
ZOO: dict[str, Callable[[int], Problem]] = {
    **{name: partial(recipe.make, name) for name, recipe in GENERATED.items()},
    **SALES,
    **WIND,
    **TABLES,
}
