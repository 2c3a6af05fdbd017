"""A service level: a constraint that holds with a given probability."""

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real

from torch import Tensor


@dataclass(frozen=True)
class Chance:
    """P(h(y, a) <= 0 given x) >= level.

    Args:
        h: function, written with torch, of y (*batch, *y_shape) and a (*batch, d). It returns
            (*batch) for one constraint, or (*batch, k) for k constraints, each of which holds
            with the probability ``level`` by itself. For constraints that hold together, return
            their maximum.
        level: float in (0, 1), default 0.95.

    >>> import costscape as cs
    >>> no_stock_out = cs.Chance(lambda y, a: y - a, level=0.9)  # for each product by itself
    >>> in_all = cs.Chance(lambda y, a: (y - a).amax(-1), level=0.9)  # for all at once
    >>> no_stock_out.level
    0.9
    """

    h: Callable[[Tensor, Tensor], Tensor]
    level: float = 0.95

    def __post_init__(self) -> None:
        if not callable(self.h):
            raise TypeError(
                f"Chance needs a function h(y, a), but got {self.h!r}. h <= 0 means that the "
                f"service is given, such as lambda y, a: y - a."
            )
        if isinstance(self.level, bool) or not isinstance(self.level, Real):
            raise TypeError(f"Chance needs level to be a number, but got {self.level!r}.")
        if not 0 < self.level < 1:
            raise ValueError(
                f"Chance needs a level between 0 and 1, but got {self.level}. 0.95 is 95 %."
            )

    def values(self, y: Tensor, a: Tensor, batch: int) -> Tensor:
        """h as (*batch, k), where ``batch`` is the number of leading axes."""
        h = self.h(y, a)
        if not isinstance(h, Tensor) or h.ndim not in (batch, batch + 1):
            shape = tuple(h.shape) if isinstance(h, Tensor) else type(h).__name__
            raise ValueError(
                f"h(y, a) of a Chance must return one number, or k numbers, for each y "
                f"{tuple(y.shape)} and a {tuple(a.shape)}, but returned {shape}. Keep the leading "
                f"axes, as in lambda y, a: y - a."
            )
        return h if h.ndim == batch + 1 else h.unsqueeze(-1)
