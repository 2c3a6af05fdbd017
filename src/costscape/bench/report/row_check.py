"""Rows as a report may trust them: every field of its type, every text one printable line.

A row is JSON that anyone can write. A field of another type is an error that names it. Texts are
shown in terminals, pages and spreadsheets, so control characters, which could move a cursor or
begin a new line of a table, become blanks.
"""

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

DEPTH = 20  # levels of JSON that are shown
NUMBER, TEXT, COUNT = "a number or null", "a text or null", "a whole number or null"
OPTIONAL: dict[str, Any] = {
    **{"curve": [], "versions": {}, "chosen": {}, "quick": False},
    **dict.fromkeys(("epochs", "chosen_epoch", "source", "commit", "made", "recipe", "block")),
    **dict.fromkeys(("test_rows", "network")),
}
KINDS: dict[str, str] = {
    **dict.fromkeys(("problem", "method"), "a text"),
    "seed": "a whole number",
    **dict.fromkeys(("regret", "gap", "cost", "fit_seconds", "decide_seconds"), NUMBER),
    **dict.fromkeys(("refused", "error", "device"), TEXT),
    **dict.fromkeys(("source", "commit", "made", "recipe", "test_rows"), TEXT),
    **dict.fromkeys(("epochs", "chosen_epoch", "block"), COUNT),
    "changes": "an object",
    "quick": "true or false",
    "versions": "an object of texts",
    "curve": "a list of [epoch, loss, score]",
    "chosen": "an object, its fits objects, too",
    "network": "an object or null",
}


def valid_row(row: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """The row with every field that tables and figures use, or a ValueError that names one.

    Args:
        row: of a store.
        path: the file it is from.
    """
    full = {**OPTIONAL, **row}
    for key, kind in KINDS.items():
        if key not in full or not FITS[kind](full[key]):
            came = f"{full[key]!r:.60}" if key in full else "missing"
            raise ValueError(
                f"A run needs {key} to be {kind}, but in {path}, "
                f"{one_line(str(row.get('method')))[:80]} with seed {str(row.get('seed'))[:20]}, "
                f"it is {one_line(came)}. Delete the row and run again."
            )
    error = full["error"]  # a traceback has lines
    if error is not None:
        error = "\n".join(one_line(line) for line in error.splitlines())
    return {**{key: _printable(value) for key, value in full.items()}, "error": error}


def valid_arrays(arrays: Mapping[str, np.ndarray], path: Path) -> dict[str, np.ndarray]:
    """The arrays of a run, or a ValueError where they are not numbers of the same test rows."""
    shapes = {values.shape for values in arrays.values()}
    numbers = all(values.dtype.kind == "f" for values in arrays.values())
    if len(shapes) > 1 or any(len(shape) != 1 for shape in shapes) or not numbers:
        raise ValueError(
            f"The costs of a run need one number for each test row, but beside {path} they have "
            f"shapes {sorted(map(str, shapes))[:3]}. Delete the run and make it again."
        )
    return dict(arrays)


def one_line(text: str) -> str:
    """The text with blanks for line ends, escapes and other characters that are not printed.

    >>> one_line("red \\x1b[31m\\nnext")
    'red  [31m next'
    """
    return text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text)


def _printable(value: Any, levels: int = DEPTH) -> Any:
    if isinstance(value, str):
        return one_line(value)
    if not levels and isinstance(value, list | dict):
        return "..."
    if isinstance(value, list):
        return [_printable(part, levels - 1) for part in value]
    if isinstance(value, dict):
        return {one_line(key): _printable(part, levels - 1) for key, part in value.items()}
    return value


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return isinstance(value, float) or math.log10(abs(value) + 1) < 300


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and _is_number(value)


def _is_point(value: Any) -> bool:
    numbers = isinstance(value, list) and len(value) == 3 and _is_count(value[0])
    return numbers and all(part is None or _is_number(part) for part in value[1:])


FITS: dict[str, Callable[[Any], bool]] = {
    "a text": lambda value: isinstance(value, str),
    "a whole number": _is_count,
    NUMBER: lambda value: value is None or _is_number(value),
    TEXT: lambda value: value is None or isinstance(value, str),
    COUNT: lambda value: value is None or _is_count(value),
    "an object": lambda value: isinstance(value, dict),
    "an object or null": lambda value: value is None or isinstance(value, dict),
    "true or false": lambda value: isinstance(value, bool),
    "an object of texts": lambda value: (
        isinstance(value, dict) and all(isinstance(part, str) for part in value.values())
    ),
    "a list of [epoch, loss, score]": lambda value: (
        isinstance(value, list) and all(map(_is_point, value))
    ),
    "an object, its fits objects, too": lambda value: (
        isinstance(value, dict)
        and isinstance(fits := value.get("fits", []), list)
        and all(isinstance(fit, dict) for fit in fits)
    ),
}
