"""[NAME=]PATH of a command line: names of models, and that they differ."""

from collections.abc import Sequence
from pathlib import Path


def named_path(text: str) -> tuple[str | None, Path]:
    """The name, None where there is none, and the path.

    >>> named_path("orders=models/orders.costscape")[0]
    'orders'
    """
    name, sign, rest = text.partition("=")
    return (name, Path(rest)) if sign else (None, Path(text))


def checked_name(name: str, path: Path) -> str:
    """The name, which requests and metrics must be able to hold."""
    if not name.replace("-", "").replace("_", "").replace(".", "").isalnum():
        raise ValueError(
            f"A model needs a name of letters, digits, '-', '_' and '.', but got {name!r}. "
            f"Write NAME={path}."
        )
    return name


def check_distinct(names: Sequence[str]) -> None:
    """Raise ValueError where two models have one name."""
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(
            f"Each model needs a name of its own, but {', '.join(twice)} is there twice. Write "
            f"NAME=PATH."
        )
