"""The cost f(y, a) of an action a at an outcome y, over a feasible set C."""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from costscape.chance import Chance
from costscape.sets import ConstraintSet, Whole

Cost = Callable[[Tensor, Tensor], Tensor]
Normal = Callable[[Tensor, Tensor, Tensor], Tensor]


class Refusal(TypeError):
    """A method, set or solver cannot serve a problem; the message is one sentence for a table.

    >>> import costscape as cs
    >>> box = cs.Box(0.0, 1.0, dim=2)
    >>> try:
    ...     cs.Exhaustive().minimise(lambda a: a.sum(-1), box, 1)
    ... except cs.Refusal as refusal:
    ...     print(str(refusal).split(", ")[0])
    Exhaustive needs a Finite list of actions
    """


class Task(nn.Module):
    """Choose a in C before y is known, then pay f(y, a). Costs are minimised.

    Args:
        cost: function f, written with torch, of y (*batch, *y_shape) and a (*batch, d) that
            returns (*batch). The batch shapes broadcast: (B, 1, m) against (1, J, d) gives (B, J).
            A cost that holds tensors is an nn.Module, so that it moves with the task.
        feasible: ConstraintSet. The set C.
        convex: bool, default False. True promises that f(y, .) is convex for every y.
        hindsight: function, default None. y (*batch, *y_shape) -> the best a (*batch, d) had y
            been known.
        cvxpy: function, default None. (y (S, *y_shape) as numpy, a cvxpy variable (1, d)) -> S
            costs as an expression.
        normal: function, default None. (m, s, a) -> the mean of f(y, a) for independent normals
            y_i of mean m_i and standard deviation s_i, shaped and broadcasting as cost(m, a).
        y_dims: int, default 1. Axes of y_shape.
        width: int, default None. How many numbers one evaluation of f holds, which bounds what is
            computed at once; None for about four times those of y or a.
        chance: Chance, default None. A service level that decisions keep, see ``decide``.

    >>> from costscape.sets import Box
    >>> task = Task(lambda y, a: (y - a).abs().sum(-1), Box(0.0, 3.0, dim=2))
    >>> task.cost(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 0.0]))
    tensor(2.)
    """

    def __init__(
        self,
        cost: Cost,
        feasible: ConstraintSet,
        *,
        convex: bool = False,
        hindsight: Callable[[Tensor], Tensor] | None = None,
        cvxpy: Callable[[Any, Any], Any] | None = None,
        normal: Normal | None = None,
        y_dims: int = 1,
        width: int | None = None,
        chance: Chance | None = None,
    ) -> None:
        super().__init__()
        _check_callable(cost, "Task", "cost")
        if not isinstance(feasible, ConstraintSet):
            raise TypeError(
                f"Task needs a set of allowed actions such as Box(0.0, 1.0, dim=3), but got "
                f"{feasible!r} of type {type(feasible).__name__}. The order is Task(cost, set)."
            )
        self.f = cost
        self.feasible = feasible
        self.convex = convex
        self.hindsight = hindsight
        self.cvxpy = cvxpy
        self.normal = normal
        self.y_dims = y_dims
        self.width = width
        self.chance = chance

    def cost(self, y: Float[Tensor, "..."], a: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """f(y, a), with its shape checked."""
        return _of_shape(self.f(y, a), _batch(y, a, self.y_dims), "cost", y, a)

    def relaxed(self) -> "Task":
        """The same cost over the base of a Whole set; the task itself on all other sets."""
        if not isinstance(self.feasible, Whole):
            return self
        facts = {name: getattr(self, name) for name in ("convex", "cvxpy", "normal", "y_dims")}
        return Task(self.f, self.feasible.base, width=self.width, **facts)

    def of_normals(self) -> "Task":
        """The same choice where an outcome is a normal law: y' = (m, s), side by side."""
        return Task(self._normal(), self.feasible, convex=self.convex)

    def _normal(self) -> "_OfNormals":
        if self.normal is None or self.y_dims != 1:
            raise Refusal(
                "The expected cost under a normal law is needed in closed form, and this task was "
                "made without normal=. Pass draws=1000, say, to average over draws instead."
            )
        return _OfNormals(self.normal)


class SeparableTask(Task):
    """A task whose cost is a sum over coordinates: f(y, a) = sum_i f_i(y, a_i).

    Args:
        terms: function of y and a, as ``cost`` of ``Task``, that returns the d summands,
            (*batch, d). Summand i may depend on all of y but only on a_i, so that solvers search
            each coordinate by itself.
        feasible: ConstraintSet, as for ``Task``.
        convex: bool, default False, as for ``Task``.
        hindsight: function, default None, as for ``Task``.
        cvxpy: function, default None, as for ``Task``.
        normal: function, default None, as for ``Task``, but it returns the summands.
        y_dims: int, default 1, as for ``Task``.
        chance: Chance, default None, as for ``Task``.

    >>> from costscape.sets import Box
    >>> task = SeparableTask(lambda y, a: (y - a).abs(), Box(0.0, 3.0, dim=2), convex=True)
    >>> task.cost(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 0.0]))
    tensor(2.)
    """

    def __init__(
        self,
        terms: Cost,
        feasible: ConstraintSet,
        *,
        convex: bool = False,
        hindsight: Callable[[Tensor], Tensor] | None = None,
        cvxpy: Callable[[Any, Any], Any] | None = None,
        normal: Normal | None = None,
        y_dims: int = 1,
        chance: Chance | None = None,
    ) -> None:
        _check_callable(terms, "SeparableTask", "terms")
        super().__init__(
            _SumOfTerms(terms, y_dims),
            feasible,
            convex=convex,
            hindsight=hindsight,
            cvxpy=cvxpy,
            normal=normal,
            y_dims=y_dims,
            chance=chance,
        )
        self.f_terms = terms

    def terms(self, y: Float[Tensor, "..."], a: Float[Tensor, "..."]) -> Float[Tensor, "... d"]:
        """The d summands of f(y, a), with their shape checked."""
        return _terms(self.f_terms, y, a, self.y_dims)

    def relaxed(self) -> "SeparableTask":
        if not isinstance(self.feasible, Whole):
            return self
        facts = {name: getattr(self, name) for name in ("convex", "cvxpy", "normal", "y_dims")}
        return SeparableTask(self.f_terms, self.feasible.base, **facts)

    def of_normals(self) -> "SeparableTask":
        return SeparableTask(self._normal(), self.feasible, convex=self.convex)


class _OfNormals:
    def __init__(self, normal: Normal) -> None:
        self.normal = normal

    def __call__(self, y: Tensor, a: Tensor) -> Tensor:
        m, s = y.chunk(2, -1)
        return self.normal(m, s, a)


class _SumOfTerms:
    """A class, not a lambda on self, so that a copied task uses its copy of terms."""

    def __init__(self, terms: Cost, y_dims: int) -> None:
        self.terms = terms
        self.y_dims = y_dims

    def __call__(self, y: Tensor, a: Tensor) -> Tensor:
        return _terms(self.terms, y, a, self.y_dims).sum(-1)


def _terms(f: Cost, y: Tensor, a: Tensor, y_dims: int) -> Tensor:
    return _of_shape(f(y, a), (*_batch(y, a, y_dims), a.shape[-1]), "terms", y, a)


def _batch(y: Tensor, a: Tensor, y_dims: int) -> tuple[int, ...]:
    """The broadcast batch shape; torch.broadcast_shapes takes longer than a small decision."""
    one, other = y.shape[: y.ndim - y_dims], a.shape[:-1]
    if len(one) == len(other) and all(
        p == q or 1 in (p, q) for p, q in zip(one, other, strict=True)
    ):
        return tuple(q if p == 1 else p for p, q in zip(one, other, strict=True))
    return tuple(torch.broadcast_shapes(one, other))


def _check_callable(f: Cost, owner: str, name: str) -> None:
    if not callable(f):
        raise TypeError(
            f"{owner} needs a function {name}(y, a), but got {f!r} of type {type(f).__name__}. "
            f"Pass the function itself, not its result."
        )


def _of_shape(
    value: Tensor, shape: tuple[int, ...] | torch.Size, name: str, y: Tensor, a: Tensor
) -> Tensor:
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
    return value
