"""What a task is made of: the functions, the set, and what the functions must return."""

from collections.abc import Callable
from inspect import Parameter, signature
from typing import Any

import torch
from torch import Tensor, nn

from costscape.chance import Chance
from costscape.context import SetOfContext
from costscape.sets import ConstraintSet, RowSets

Cost = Callable[..., Tensor]  # of y and a, and of x where it has a third argument
Sets = Callable[[Tensor], ConstraintSet]
Normal = Callable[[Tensor, Tensor, Tensor], Tensor]


def takes(f: Callable[..., Any], count: int) -> bool:
    """Whether f must be called with so many arguments, as cost(y, a, x) with three."""
    try:
        given = signature(f.forward if isinstance(f, nn.Module) else f).parameters.values()
    except (TypeError, ValueError):
        return False
    kinds = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    return sum(p.kind in kinds and p.default is p.empty for p in given) == count


def as_set(feasible: ConstraintSet | Sets) -> ConstraintSet:
    """The set itself, or a function of x as a set."""
    if isinstance(feasible, RowSets):
        raise TypeError(
            f"Task needs one set, or a function of x that returns one for each row, but got sets "
            f"of {len(feasible)} rows. Write feasible=lambda x: Box(0.0, x[:, :3]), say, or pass "
            f"these sets to decide(X, feasible=...)."
        )
    if isinstance(feasible, ConstraintSet):
        return feasible
    if not takes(feasible, 1) or isinstance(feasible, type):
        raise TypeError(
            f"Task needs a set of allowed actions such as Box(0.0, 1.0, dim=3), but got "
            f"{feasible!r} of type {type(feasible).__name__}. The order is Task(cost, set)."
        )
    return SetOfContext(feasible)


def check_options(convex: Any, y_dims: Any, width: Any, chance: Any) -> None:
    """Raise TypeError or ValueError where one of these arguments is of another type or range."""
    if not isinstance(convex, bool):
        raise TypeError(f"Task needs convex to be True or False, but got {convex!r}.")
    for name, count in {"y_dims": y_dims, "width": width}.items():
        if count is not None and not (isinstance(count, int) and count >= 1):
            raise ValueError(
                f"Task needs {name} to be a whole number of at least 1, but got {count!r}."
            )
    if chance is not None and not isinstance(chance, Chance):
        raise TypeError(
            f"Task needs chance to be such as Chance(lambda y, a: y - a, level=0.9), but got "
            f"{chance!r} of type {type(chance).__name__}."
        )


def check_callable(f: Any, owner: str, name: str) -> None:
    """Raise TypeError where f is no function."""
    if not callable(f):
        raise TypeError(
            f"{owner} needs a function {name}(y, a), but got {f!r} of type {type(f).__name__}. "
            f"Pass the function itself, not its result."
        )


def batch_shape(y: Tensor, a: Tensor, y_dims: int) -> tuple[int, ...]:
    """The broadcast batch shape; torch.broadcast_shapes takes longer than a small decision."""
    one, other = y.shape[: y.ndim - y_dims], a.shape[:-1]
    if len(one) == len(other) and all(
        p == q or 1 in (p, q) for p, q in zip(one, other, strict=True)
    ):
        return tuple(q if p == 1 else p for p, q in zip(one, other, strict=True))
    return tuple(torch.broadcast_shapes(one, other))


def of_shape(
    value: Tensor, shape: tuple[int, ...] | torch.Size, name: str, y: Tensor, a: Tensor
) -> Tensor:
    """The value of a function of y and a, whose type and shape are checked."""
    if not isinstance(value, Tensor):
        raise TypeError(
            f"{name}(y, a) must return a torch tensor, but returned {type(value).__name__}. "
            f"Write it with torch operations on y and a."
        )
    if value.shape != shape:
        hint = (
            "Sum over the last axis only, with .sum(-1), and keep the leading axes"
            if name == "cost"
            else "Return one summand per coordinate of a, and do not sum over the last axis"
        )
        raise ValueError(
            f"{name}(y, a) must return shape {tuple(shape)} for y {tuple(y.shape)} and "
            f"a {tuple(a.shape)}, but returned {tuple(value.shape)}. {hint}."
        )
    if value.dtype == a.dtype:
        return value
    if not value.is_floating_point():
        raise TypeError(
            f"{name}(y, a) must return {a.dtype} numbers, but returned {value.dtype}. Convert "
            f"counts and conditions, as in (y > a).to(a.dtype)."
        )
    # prices from numpy are double, and would make the cost so
    return value.to(torch.promote_types(y.dtype, a.dtype))


def terms_of(f: Cost, y: Tensor, a: Tensor, y_dims: int, *x: Tensor) -> Tensor:
    """The summands of a cost, with their shape checked."""
    return of_shape(f(y, a, *x), (*batch_shape(y, a, y_dims), a.shape[-1]), "terms", y, a)


class SumOfTerms:
    """The cost with these summands.

    It is a class, not a lambda on self, so that a copied task uses its copy of terms.
    """

    def __init__(self, terms: Cost, y_dims: int) -> None:
        self.terms = terms
        self.y_dims = y_dims

    def __call__(self, y: Tensor, a: Tensor, *x: Tensor) -> Tensor:
        return terms_of(self.terms, y, a, self.y_dims, *x).sum(-1)


class OfNormals:
    """The closed form of the expected cost, as a cost of y' = (m, s)."""

    def __init__(self, normal: Normal) -> None:
        self.normal = normal

    def __call__(self, y: Tensor, a: Tensor) -> Tensor:
        m, s = y.chunk(2, -1)
        return self.normal(m, s, a)
