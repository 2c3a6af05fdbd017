"""The names of a problem's rolling origins: ``wind@2of5`` is the second of five.

The name says everything, so that runs, recipes and rows need no other word for an origin.
"""

import re
from typing import NamedTuple

NAME = re.compile(r"(.+)@([1-9]\d*)of([1-9]\d*)")


class Origin(NamedTuple):
    """Origin ``number``, from 1 to ``origins``, of a problem."""

    problem: str
    number: int
    origins: int

    @property
    def name(self) -> str:
        return f"{self.problem}@{self.number}of{self.origins}"


def origin_of(name: str) -> Origin | None:
    """The origin of that name; None for the name of a whole problem.

    >>> origin_of("wind@2of5")
    Origin(problem='wind', number=2, origins=5)
    >>> origin_of("wind")
    """
    match = NAME.fullmatch(name)
    if match is None or int(match[2]) > int(match[3]):
        return None
    return Origin(match[1], int(match[2]), int(match[3]))


def origins_of(problem: str, origins: int) -> list[str]:
    """The names of all origins of a problem.

    >>> origins_of("wind", 2)
    ['wind@1of2', 'wind@2of2']
    """
    return [Origin(problem, number, origins).name for number in range(1, origins + 1)]


def file_stem(name: str) -> str:
    """The problem whose file holds the rows of this one."""
    origin = origin_of(name)
    return name if origin is None else origin.problem
