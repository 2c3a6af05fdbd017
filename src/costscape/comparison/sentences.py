"""Numbers and tables as people read them."""

from collections.abc import Mapping, Sequence
from math import floor, log10

from costscape.block_bootstrap import Difference


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
    """
    mean, low, high = (scale * value for value in (d.mean, d.low, d.high))
    digits = 2
    while digits < 6 and any(
        end and float(f"{end:{_format(high - low, digits)}}".replace(",", "")) == 0
        for end in (low, high)
    ):
        digits += 1
    form = _format(high - low or mean, digits)
    return f"{mean:{form}}{unit} [{low:{form}}{unit}, {high:{form}}{unit}]"


def listed(names: Sequence[str]) -> str:
    """Names in a sentence; those with a comma in quotes.

    >>> print(listed(["a", "b", "c, d"]))
    a, b and 'c, d'
    """
    names = [f"'{name}'" if "," in name else name for name in names]
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


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
