"""Context: columns of x that the cost or the set uses, in the units of the user.

    y' = (y, c),    f'(y', a) = f(y, a, c),    c = the columns of x

The numbers of c follow those of y along the first axis of an outcome. What slices, splits, prunes
or resamples outcomes then needs to know nothing of the context.
"""

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import torch
from jaxtyping import Float
from torch import Generator, Tensor, nn

from costscape.sets import ConstraintSet, RowSets

Column = str | int


@dataclass(frozen=True)
class Context:
    """Which columns of x are the context; ``shape`` is that of one row, once x is known.

    Args:
        columns: names or numbers of columns; None for all of x.
        shape: of the context of one row; None before ``bound``.
    """

    columns: tuple[Column, ...] | None
    shape: tuple[int, ...] | None = None

    def bound(self, x_shape: tuple[int, ...], names: Sequence[str] | None) -> "Context":
        """The same for rows of this shape, with columns by number."""
        if self.columns is None:
            return replace(self, shape=x_shape)
        numbers = tuple(_number(column, x_shape[-1], names) for column in self.columns)
        return Context(numbers, (*x_shape[:-1], len(numbers)))

    def of(self, x: Float[Tensor, "n ..."]) -> Float[Tensor, "n ..."]:
        """The context of rows x."""
        if self.columns is None:
            return x
        for column in self.columns:
            if isinstance(column, str):
                raise ValueError(
                    f"The context needs column {column!r}, but these rows have no names. Name "
                    f"columns by number, as context=(0, 3)."
                )
        # one column after another: a list of numbers would be copied to a GPU at every call
        return torch.stack([x[..., i] for i in self.columns], -1)  # type: ignore[index]

    def join(
        self, x: Float[Tensor, "n ..."], y: Float[Tensor, "#n ..."], y_dims: int
    ) -> Float[Tensor, "n ..."]:
        """y' of outcomes (n, *y_shape), or (n or 1, S, *y_shape) for S of each row."""
        c = self.of(x).flatten(1).to(y)
        rest = y.shape[y.ndim - y_dims + 1 :]
        rows = -(-c.shape[1] // prod(rest))
        c = nn.functional.pad(c, (0, rows * prod(rest) - c.shape[1])).unflatten(1, (rows, *rest))
        between = y.shape[1 : y.ndim - y_dims]
        n = c.shape[0]  # len() would fix the rows of an exported model
        c = c.reshape(n, *[1] * len(between), rows, *rest)
        c = c.expand(n, *between, rows, *rest)
        return torch.cat([y.expand(n, *y.shape[1:]), c], y.ndim - y_dims)

    def split(self, joined: Any, y_dims: int) -> tuple[Any, Any]:
        """y and c of y', as tensors or as arrays."""
        assert self.shape is not None
        rest = joined.shape[joined.ndim - y_dims + 1 :]
        rows = -(-prod(self.shape) // prod(rest))
        at = (slice(None),) * (y_dims - 1)
        y, c = joined[(..., slice(-rows), *at)], joined[(..., slice(-rows, None), *at)]
        batch = joined.shape[: joined.ndim - y_dims]
        c = c.reshape(*batch, -1)[..., : prod(self.shape)]
        return y, c.reshape(*batch, *self.shape)


class WithContext(nn.Module):
    """f' of f: a module, so that a cost that holds tensors moves with its task.

    Args:
        f: function of y, an argument (none for ``hindsight``) and c.
        context: Context, bound.
        y_dims: axes of an outcome.
    """

    def __init__(self, f: Callable[..., Any], context: Context, y_dims: int) -> None:
        super().__init__()
        self.f = f
        self.context = context
        self.y_dims = y_dims

    def forward(self, joined: Any, *a: Any) -> Any:
        y, c = self.context.split(joined, self.y_dims)
        return self.f(y, *a, c)


class SetOfContext(ConstraintSet):
    """Stands in for a feasible set that is a function of x, until x is known.

    Args:
        f: function of the context c (n, ...) that returns ``RowSets`` of n rows, or one set for
            all.
    """

    like: Tensor

    def __init__(self, f: Callable[[Tensor], ConstraintSet]) -> None:
        super().__init__()
        self.f = f
        self.register_buffer("like", torch.zeros(1))

    def at(self, c: Float[Tensor, "n ..."]) -> ConstraintSet:
        """The sets of rows with this context."""
        C = self.f(c.to(self.like))
        if not isinstance(C, ConstraintSet):
            raise TypeError(
                f"feasible(x) needs to return a set with one row for each row of x, such as "
                f"Box(0.0, x[:, :3]), but returned {type(C).__name__}."
            )
        if isinstance(C, RowSets) and len(C) != len(c):
            raise ValueError(
                f"feasible(x) needs to return one row for each of {len(c)} rows of x, but "
                f"returned {len(C)}."
            )
        return like(C, self.like)

    @property
    def bounds(self) -> tuple[Float[Tensor, "d"], Float[Tensor, "d"]]:
        """Give the device and the precision only."""
        return self.like, self.like

    def sample(self, n: int, generator: Generator | None = None) -> Float[Tensor, "n d"]:
        raise self._unknown()

    def project(self, a: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
        raise self._unknown()

    def violation(self, a: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch"]:
        raise self._unknown()

    def describe(self, a: Any) -> list[Any]:
        raise self._unknown()

    def _unknown(self) -> RuntimeError:
        return RuntimeError(
            "The set of this task is a function of x, so it has no points before x is known. Use "
            "task.bound(x).feasible, which holds the sets of all rows of x."
        )


def like(C: ConstraintSet, end: Tensor) -> ConstraintSet:
    """The set with the device and precision of ``end``; a copy where these differ."""
    own = C.bounds[0]
    same = own.dtype == end.dtype and own.device == end.device
    return C if same else deepcopy(C).to(end)


def as_context(columns: Column | Sequence[Column] | None) -> Context:
    """The context of these columns; None for all of x."""
    if columns is None:
        return Context(None)
    columns = (columns,) if isinstance(columns, str | int) else tuple(columns)
    if not columns or not all(isinstance(c, str | int) for c in columns):
        raise TypeError(
            f"context needs names or numbers of columns of X, such as ('price', 'promo') or "
            f"(0, 3), but got {columns!r}. Leave it out for all columns."
        )
    return Context(columns)


def _number(column: Column, columns: int, names: Sequence[str] | None) -> int:
    if isinstance(column, str):
        if names is None:
            raise ValueError(
                f"The context needs column {column!r}, but X has no names. Pass a table with "
                f"names, or number the columns, as context=(0, 3)."
            )
        if column not in names:
            raise ValueError(
                f"The context needs column {column!r}, but X has "
                f"{', '.join(map(repr, names[:12]))}. Correct the name, or add the column."
            )
        return list(names).index(column)
    if not -columns <= column < columns:
        raise ValueError(
            f"The context needs column {column}, but X has {columns} columns, numbered from 0."
        )
    return column % columns
