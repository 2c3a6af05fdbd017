"""The problems that have a name. To add one, add a line."""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from costscape.bench.origin_names import Origin, origin_of
from costscape.bench.zoo import ZOO
from costscape.data import rolling_origins
from costscape.problems.generator_schedule.schedule_recipe import (
    generator_schedule,
    measured_schedule,
)
from costscape.problems.grid_paths.path_recipe import grid_path, linear_grid_path
from costscape.problems.one_resource.top_one_recipe import cubic_top_one, cubic_top_one_linear
from costscape.problems.problem import Problem
from costscape.problems.stock_orders.inventory_recipe import (
    bakery,
    one_item,
    restaurant,
    shelf_store,
    whole_store,
)
from costscape.problems.synthetic.synthetic_recipe import synthetic_convex, synthetic_nonconvex
from costscape.problems.vaccine_doses.vaccine_recipe import eight_weeks, one_week
from costscape.problems.wind_bids.wind_recipe import wind_farm_bidding, wind_power

PROBLEMS: dict[str, Callable[[int], Problem]] = {
    "synthetic-convex": synthetic_convex,
    "synthetic-nonconvex": synthetic_nonconvex,
    "wind": wind_power,
    "wind-farm": wind_farm_bidding,
    "inventory": one_item,
    "inventory-store": whole_store,
    "restaurant": restaurant,
    "vaccine": one_week,
    "vaccine-wave": eight_weeks,
    "scheduling": generator_schedule,
    "scheduling-measured": measured_schedule,
    "cubic-top1": cubic_top_one,
    "cubic-top1-linear": cubic_top_one_linear,
}
# a name ends in a whole number: the item of store 1, the store, the bakery, or the power of x
PROBLEM_FAMILIES: dict[str, Callable[[int, int], Problem]] = {
    "inventory-item": one_item,
    "inventory-store": shelf_store,
    "bakery": bakery,
    "shortest-path-deg": grid_path,
    "shortest-path-linear-deg": linear_grid_path,
}


def problem_named(name: str) -> Callable[[int], Problem]:
    """The maker of a named problem.

    ``inventory-item8`` is the family's with item 8, ``wind@2of5`` the second of five origins.
    """
    if (origin := origin_of(name)) is not None:
        return partial(_at_origin, problem_named(origin.problem), origin)
    if name in PROBLEMS:
        return PROBLEMS[name]
    if name in ZOO:
        return ZOO[name]
    match = re.fullmatch(r"(.*?)([1-9]\d*)", name)
    if match and match[1] in PROBLEM_FAMILIES:
        family, number = PROBLEM_FAMILIES[match[1]], int(match[2])
        return lambda seed: family(seed, number)
    raise ValueError(
        f"There is no problem named {name!r}. There are {', '.join(sorted(PROBLEMS))}, and "
        f"{', '.join(f'{family}N' for family in PROBLEM_FAMILIES)} with N a whole number, such as "
        f"inventory-item8."
    )


def _at_origin(make: Callable[[int], Problem], origin: Origin, seed: int) -> Problem:
    """The problem with the rows before an origin to fit on, and those after it to test on."""
    problem = make(seed)
    if problem.for_origins is not None:
        problem = problem.for_origins()
    if problem.reach is None:
        raise ValueError(
            f"{origin.problem} has rows without an order in time, so it has no origins. Run it "
            f"without --origins."
        )
    data = rolling_origins(problem.data, origin.origins, problem.reach)[origin.number - 1]
    source = f"{problem.source}, origin {origin.number} of {origin.origins}"
    return replace(problem, data=data, source=source)
