"""A limit on the time of a comparison: fits that do not end within it are given up.

A fit reports the part of its work that is done. Where that part took so long that the rest takes
more than twice the time that is left, the fit is given up at once; otherwise it is given up when
the time is over. Fits are never shortened.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

from costscape.comparison.sentences import duration
from costscape.training.progress import watched

UNITS = {"s": 1.0, "sec": 1.0, "second": 1.0, "m": 60.0, "min": 60.0, "minute": 60.0,
         "h": 3600.0, "hour": 3600.0}  # fmt: skip
JUDGED = 0.1  # the part of a fit after which its time is foreseen
TOO_LONG = 2.0  # a fit may stop early: one that is foreseen to take less than this is not given up


class OutOfTime(Exception):
    """The budget is spent, or would not be enough; the message is what happened."""


class TimeBudget:
    """The time that is left, from the moment when the budget is made.

    Args:
        budget: seconds, a text such as "90 s", "2 min" or "1 h", or None for no limit.

    >>> TimeBudget("2 min").seconds
    120.0
    """

    def __init__(self, budget: int | float | str | None) -> None:
        self.seconds = None if budget is None else _seconds(budget)
        self.begin = monotonic()

    def left(self) -> float:
        """Seconds that are left; below 0 where the budget is spent."""
        if self.seconds is None:
            return float("inf")
        return self.begin + self.seconds - monotonic()

    @contextmanager
    def limit(self) -> Iterator[None]:
        """Around one fit: raises OutOfTime where it does not end in time."""
        if self.left() <= 0:
            raise OutOfTime("not started, since the budget was spent")
        begin = monotonic()

        def check(part: float) -> None:
            used, left = monotonic() - begin, self.left()
            rest = used / part - used if part >= JUDGED else 0.0
            if left <= 0 and part < 1:
                raise OutOfTime(f"given up after {duration(used)}, when the budget was spent")
            if rest > TOO_LONG * left:
                raise OutOfTime(
                    f"given up after {duration(used)}: a fit takes about {duration(used + rest)}, "
                    f"and {duration(left)} were left"
                )

        if self.seconds is None:
            yield
        else:
            with watched(check):
                yield


def _seconds(budget: Any) -> float:
    if isinstance(budget, int | float) and not isinstance(budget, bool):
        value = float(budget)
    else:
        match = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*([a-z]+?)(s?)\s*", str(budget).lower())
        unit = match and (UNITS.get(match[2]) or UNITS.get(match[2] + match[3]))
        value = float(match[1]) * unit if match and unit else 0.0
    if not 0 < value < float("inf"):
        raise ValueError(
            f"compare needs a budget in seconds or with a unit, such as 90, '2 min' or '1 h', but "
            f"got {budget!r}. Leave it out for no limit."
        )
    return value
