"""Settings that are checked when they are made, and those of a training run."""

import types
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cache, wraps
from math import ceil, inf, isnan
from numbers import Integral, Real
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
import torch

RATE = 3e-3  # of Adam; 1e-3 decides worse, 1e-2 no better and at times much worse (benchmarks/zoo)
STEPS = 1000  # of Adam in a fit whose number of epochs is not given (benchmarks/zoo)
EPOCHS = (8, 100)  # the fewest and the most epochs of such a fit
PATIENCE = 5  # early stopping waits for this part of the epochs, where it is not given


@dataclass(frozen=True)
class Range:
    """The numbers that a setting may be, from ``least`` to ``most``.

    ``ends`` are those of an interval: "[" and "]" include an end, "(" and ")" exclude it.
    """

    least: float
    most: float = inf
    ends: str = "[)"

    def holds(self, value: int | float) -> bool:
        low = value >= self.least if self.ends[0] == "[" else value > self.least
        return low and (value <= self.most if self.ends[1] == "]" else value < self.most)

    def __str__(self) -> str:
        low = f"{'of at least' if self.ends[0] == '[' else 'above'} {self.least:g}"
        high = f" and {'at most' if self.ends[1] == ']' else 'below'} {self.most:g}"
        return low + high * (self.most < inf)


Natural = Annotated[int, Range(0.0)]
Count = Annotated[int, Range(1.0)]
AtLeast2 = Annotated[int, Range(2.0)]
Positive = Annotated[float, Range(0.0, ends="()")]
NotNegative = Annotated[float, Range(0.0)]
Share = Annotated[float, Range(0.0, 1.0, "(]")]
BelowOne = Annotated[float, Range(0.0, 1.0, "[)")]
Decay = Annotated[float, Range(0.0, 1.0, "()")]  # of a moving average


class Checked:
    """A dataclass of settings; the type and the range of each are checked when it is made.

    The annotation of a field says what it may be. Numbers of numpy become those of Python.
    """

    def __init_subclass__(cls, **facts: Any) -> None:
        super().__init_subclass__(**facts)
        own = vars(cls).get("__post_init__")
        if own is not None:

            @wraps(own)
            def checked(self: "Checked") -> None:
                _check(self)
                own(self)

            cls.__post_init__ = checked  # type: ignore[method-assign]

    def __post_init__(self) -> None:
        _check(self)


def _check(settings: Any) -> None:
    kind: Any = type(settings)
    for name, hint in _hints(kind).items():
        value = getattr(settings, name)
        if isinstance(value, np.generic):
            value = value.item()
            object.__setattr__(settings, name, value)
        if not _fits(value, hint):
            error = ValueError if _fits(value, hint, ranges=False) else TypeError
            raise error(
                f"{type(settings).__name__} needs {name} to be {_words(hint)}, but got {value!r}."
            )


@cache
def _hints(cls: type) -> dict[str, Any]:
    hints = get_type_hints(cls, include_extras=True)
    return {f.name: hints[f.name] for f in fields(cls) if f.init}


def _fits(value: Any, hint: Any, ranges: bool = True) -> bool:
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        limit = next((extra for extra in args[1:] if isinstance(extra, Range)), None)
        return _fits(value, args[0], ranges) and not (ranges and limit and not limit.holds(value))
    if origin in (Union, types.UnionType):
        return any(_fits(value, one, ranges) for one in args)
    if hint in (None, type(None)):
        return value is None
    if hint is int:
        return isinstance(value, Integral) and not isinstance(value, bool)
    if hint is float:
        number = isinstance(value, Real) and not isinstance(value, bool)
        return number and not (ranges and isnan(value))
    if origin is Literal:
        return value in args
    if origin is Callable:
        return callable(value)
    if origin is tuple:
        return isinstance(value, tuple) and _all_fit(value, args, ranges)
    kind = origin or hint
    if not isinstance(kind, type) or getattr(kind, "_is_protocol", False):
        return not isinstance(value, str | int | float) and value is not None
    return isinstance(value, kind)


def _all_fit(values: tuple[Any, ...], hints: tuple[Any, ...], ranges: bool) -> bool:
    """Whether each value fits; (hint, ...) is for one value or more."""
    each = hints[:1] * len(values) if hints[-1] is ... else hints
    if len(values) != len(each):
        return False
    fit = all(_fits(value, hint, ranges) for value, hint in zip(values, each, strict=True))
    return fit and (len(values) > 0 or not ranges)


def _words(hint: Any) -> str:
    """The annotation as a sentence has it."""
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return " ".join([_words(args[0]), *(str(extra) for extra in args[1:])])
    if origin in (Union, types.UnionType):
        return " or ".join(_words(one) for one in args)
    if origin is Literal:
        return " or ".join(map(repr, args))
    if origin is Callable:
        return "a function"
    if origin is tuple:
        return f"a tuple ({', '.join('...' if one is ... else _words(one) for one in args)})"
    known = {int: "a whole number", float: "a number", bool: "True or False", type(None): "None"}
    if hint in known:
        return known[hint]
    name = getattr(origin or hint, "__name__", str(hint))
    return "a text" if hint is str else f"{'an' if name[0] in 'AEIOU' else 'a'} {name}"


@dataclass(frozen=True)
class Training(Checked):
    """How a network is fitted: Adam over shuffled batches.

    Args:
        epochs: int, default None. Passes over the training rows. None takes as many as give about
            1,000 steps, from 8 to 100, so that one schedule serves a few hundred rows and many
            thousands.
        batch_size: int, default 64. Rows in a step.
        lr: float, default None. Learning rate of Adam; None takes 3e-3.
        weight_decay: float, default 0. Weight decay of Adam.
        decay: bool, default True. The rate falls to 0 along a cosine over the epochs.
        patience: int, default None. Epochs that early stopping waits for a better validation
            score; None waits for a fifth of all. Where none was better than the start and the loss
            has risen, the fit then begins again with a tenth of the rate.
        smooth: int, default 1. Epochs over which the validation score is averaged before epochs
            are compared. The first ``smooth - 1`` epochs are never chosen.
        score_every: int, default 1. Epochs from one validation score to the next; more than 1
            saves time where deciding is costly.
        checkpoint: path, default None. A file written after every epoch. A fit that finds it
            continues from there and ends with the same bits as an uninterrupted one.
        device: str, default None. Such as "cpu" or "cuda:1"; None takes a GPU where there is one.
        compile: bool, default False. Run the loss through torch.compile, which pays off on long
            fits. Where that fails, the fit continues without it.
        record: bool, default True. On a GPU, capture a step as a CUDA graph and replay it, where
            the loss allows it. Networks that are fitted together then share one graph and one
            stream of dropout.
        progress: bool, default True. Show a progress bar on stderr.

    >>> import costscape as cs
    >>> import torch
    >>> task = cs.SeparableTask(lambda y, a: (y - a).abs(), cs.Box(0.0, 9.0, dim=1), convex=True)
    >>> x, y = torch.rand(50, 2), 3 + torch.rand(50, 1)
    >>> training = cs.Training(epochs=2, lr=1e-2, device="cpu", progress=False)
    >>> cs.TwoStage(task, cs.Point(), training=training).fit(x, y).decide(x[:4]).shape
    torch.Size([4, 1])
    """

    epochs: Count | None = None
    batch_size: Count = 64
    lr: Positive | None = None
    weight_decay: NotNegative = 0.0
    decay: bool = True
    patience: Count | None = None
    smooth: Count = 1
    score_every: Count = 1
    checkpoint: Path | str | None = None
    device: str | None = None
    compile: bool = False
    record: bool = True
    progress: bool = True

    def __post_init__(self) -> None:
        try:
            torch.device(self.device or "cpu")
        except RuntimeError:
            raise ValueError(
                f"Training needs device to be such as 'cpu' or 'cuda:0', but got {self.device!r}."
            ) from None

    def for_rows(self, rows: int) -> "Training":
        """The same settings with epochs and patience set for this number of training rows.

        >>> Training().for_rows(300).epochs, Training().for_rows(40_000).epochs
        (100, 8)
        """
        least, most = EPOCHS
        steps = ceil(rows / self.batch_size)
        epochs = self.epochs or min(max(ceil(STEPS / steps), least), most)
        return replace(self, epochs=epochs, patience=self.patience or max(1, epochs // PATIENCE))

    def where(self) -> torch.device:
        """The device of the fit."""
        there = torch.cuda.is_available()
        device = torch.device(self.device or ("cuda" if there else "cpu"))
        if device.type == "cuda" and not there:
            raise ValueError(
                f"Training has device={self.device!r}, but torch finds no GPU here. Leave it out, "
                f"or take device='cpu'."
            )
        return device
