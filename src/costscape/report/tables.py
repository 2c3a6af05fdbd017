"""Rows -> text tables."""

from collections.abc import Mapping, Sequence


def text_table(rows: Sequence[Mapping[str, str]]) -> str:
    """Columns as wide as they need to be: the first to the left, the others to the right.

    >>> print(text_table([{"method": "a", "cost": "9.5"}, {"method": "bb", "cost": "10.0"}]))
    method  cost
    a        9.5
    bb      10.0
    """
    names = list(rows[0])
    lines = [names, *([row[name] for name in names] for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(names))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )
