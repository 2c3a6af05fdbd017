"""Numbers and tables as people read them."""

from collections.abc import Mapping, Sequence
from math import floor, log10

from costscape.block_bootstrap import Difference

LEAST_WIDTH = 0.03  # of the mean: a narrower interval gets no more digits


def number(value: float | None, digits: int = 4) -> str:
    """To this number of significant digits, or whole where more are before the point.

    >>> number(1234567.8), number(0.012345), number(None)
    ('1,234,568', '0.01235', '')
    """
    return "" if value is None else f"{value:{_format(value, digits)}}"


def numbers(d: Difference, unit: str = "", scale: float = 1.0) -> str:
    """The mean and its interval, to two digits of the interval's width.

    An end that would read as 0, and hide its sign, gets more digits.

    >>> numbers(Difference(0.31234, -0.1, 0.8), " %")
    '0.31 % [-0.10 %, 0.80 %]'
    >>> numbers(Difference(2.0, -0.02, 4.0))
    '2.00 [-0.02, 4.00]'
    >>> numbers(Difference(0.99999994, 0.99999991, 0.99999996))
    '1.000 [1.000, 1.000]'
    """
    mean, low, high = (scale * value for value in (d.mean, d.low, d.high))
    width = max(high - low, LEAST_WIDTH * abs(mean)) or mean
    digits = 2
    while digits < 6 and any(
        end and float(f"{end:{_format(width, digits)}}".replace(",", "")) == 0
        for end in (low, high)
    ):
        digits += 1
    form = _format(width, digits)
    return f"{mean:{form}}{unit} [{low:{form}}{unit}, {high:{form}}{unit}]"


def listed(names: Sequence[str]) -> str:
    """Names in a sentence; those with a comma in quotes.

    >>> print(listed(["a", "b", "c, d"]))
    a, b and 'c, d'
    """
    names = [f"'{name}'" if "," in name else name for name in names]
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def duration(seconds: float) -> str:
    """A time in the unit that it has at most two digits or so in.

    >>> duration(0.034), duration(75.0), duration(600.0), duration(9000.0)
    ('0.034 s', '75 s', '10 min', '2.5 h')
    """
    if seconds < 120:
        return f"{number(max(seconds, 0.0), 2)} s"
    minutes = seconds / 60
    return f"{number(minutes, 2)} min" if minutes < 120 else f"{number(minutes / 60, 2)} h"


def percent(part: float, cost: float) -> str:
    """``part`` in percent of the cost, empty where the cost is near 0."""
    return f"{number(100 * part / abs(cost), 2)} %" if abs(part) <= 10 * abs(cost) else ""


def higher(d: Difference, cost: float) -> str:
    """A difference in percent of the cost, where that is not near 0, and in its units."""
    if not percent(max(abs(d.low), abs(d.high)), cost):
        return numbers(d)
    return f"{numbers(d, ' %', 100 / abs(cost))}, that is {numbers(d)}"


def text_table(rows: Sequence[Mapping[str, str]]) -> str:
    """Columns as wide as needed: the first aligned left, the others right."""
    names = list(rows[0])
    lines = [names, *([row[name] for name in names] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]).rstrip()
        for line in lines
    )


def _format(value: float, digits: int) -> str:
    place = floor(log10(abs(value))) if value else 0
    return f",.{min(max(digits - 1 - place, 0), 9)}f" if place > -7 else f".{digits - 1}e"
