"""What a model file claims is compared with what is in it, before a model is built from it.

The header of a file is text that anyone can write. Its fields have fixed types, and the shape of a
row of X agrees with the ranges beside it. A model is built while a limit on its size holds: a
small file cannot ask for a large model.
"""

from collections.abc import Callable
from math import prod
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

AXES = 8  # of a row, at most
SPARE = 2**26  # numbers that building a model may make besides those of its file
FACTOR = 64  # numbers for each number in the file
STEP = 2**12  # numbers that an operation counts as, so that long loops end, too
STEPS = 2**7  # operations for each tensor in the file
LISTED = ("zeros", "ones", "empty", "full", "rand", "randn", "repeat")  # sizes in a list
SINGLE = ("arange", "eye", "linspace", "randperm", "repeat_interleave")  # sizes as numbers


def check_header(head: dict[str, Any]) -> None:
    """Raise ValueError where a field of the header of a model file is missing or another type."""
    _need(head, "method", _is_text)
    _need(head, "settings", _is_object)
    _need(head, "fitted", _is_object)
    fitted = head["fitted"]
    for name in ("x_shape", "y_shape"):
        _need(fitted, name, _is_shape)
    for name in ("x_columns", "columns"):
        if name == "columns" or name in fitted:
            _need(fitted, name, _or_none(_is_texts))
    _need(fitted, "flat", lambda value: isinstance(value, bool))
    _need(fitted, "dim", _is_count)
    _need(fitted, "facts", _is_object)
    for name in ("record", "calibration", "rows"):
        if name in fitted:
            _need(fitted, name, _or_none(_is_object))
    if record := fitted.get("record"):
        _check_record(record, prod(fitted["x_shape"]))


def _check_record(record: dict[str, Any], numbers: int) -> None:
    for name in ("costscape", "torch", "date"):
        _need(record, name, _is_text)
    _need(record, "rows", _is_count)
    _need(record, "cost", _is_object)
    for name in ("x_low", "x_high"):
        _need(record, name, lambda value: _is_numbers(value) and len(value) == numbers)


class BoundedBuild(TorchDispatchMode):
    """Inside, tensors may be made up to a limit that the tensors of a file set.

    Args:
        tensors: dict of the tensors in the file.
    """

    def __init__(self, tensors: dict[str, Tensor]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        held = sum(value.numel() for value in tensors.values())
        self.left = SPARE + FACTOR * held + STEP * STEPS * len(tensors)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        self._spend(STEP + _asked(func, args))
        made = func(*args, **(kwargs or {}))
        if isinstance(made, Tensor) and not func.is_view:
            self._spend(made.numel())
        return made

    def _spend(self, numbers: int) -> None:
        self.left -= numbers
        if self.left < 0:
            raise ValueError("its header asks for a model that is too large for its tensors")


def _asked(func: Any, args: tuple[Any, ...]) -> int:
    """The size of the tensor that an operation is asked for, where its arguments say so."""
    name = func.overloadpacket.__name__.removeprefix("new_")
    if name not in LISTED + SINGLE:
        return 0
    sizes = [n for n in args if isinstance(n, int) and not isinstance(n, bool)]
    if name in LISTED:
        lists = [part for part in args if isinstance(part, list | torch.Size)]
        sizes = list(lists[0]) if lists else []
    grown = name.startswith("repeat") and isinstance(args[0], Tensor)
    return prod(max(1, abs(n)) for n in sizes) * (args[0].numel() if grown else 1)


def _need(holder: dict[str, Any], name: str, fits: Callable[[Any], bool]) -> None:
    if name not in holder:
        raise ValueError(f"its header has no {name}")
    if not fits(holder[name]):
        raise ValueError(f"{name} in its header is {holder[name]!s:.60}")


def _or_none(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or fits(value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_shape(value: Any) -> bool:
    return isinstance(value, list) and len(value) <= AXES and all(map(_is_count, value))


def _is_numbers(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(n, int | float) and not isinstance(n, bool) for n in value
    )
