"""What all priced tasks need of their prices."""

from collections.abc import Mapping
from math import isfinite


def check_prices(owner: str, prices: Mapping[str, float]) -> None:
    """Each price finite and not negative: with a negative one, hindsight would not be optimal."""
    for name, price in prices.items():
        if not (isfinite(price) and price >= 0):
            raise ValueError(
                f"{owner} needs finite prices >= 0, but {name} is {price}. A cost is positive: "
                f"drop the sign, or write your own SeparableTask."
            )
