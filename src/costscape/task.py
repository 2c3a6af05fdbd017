"""The cost f(y, a) of an action a at an outcome y, over a feasible set C."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from jaxtyping import Float
from torch import Tensor, nn

from costscape.chance import Chance
from costscape.context import Column, Context, SetOfContext, WithContext, as_context
from costscape.sets import ConstraintSet, RowSets, Whole
from costscape.sets.row_sets import ScaledRows
from costscape.task_arguments import (
    Cost,
    Normal,
    OfNormals,
    Sets,
    SumOfTerms,
    as_set,
    batch_shape,
    check_callable,
    check_options,
    of_shape,
    takes,
    terms_of,
)

T = TypeVar("T", bound="Task")


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
            A cost that holds tensors is an nn.Module, so that it moves with the task. A cost of
            three arguments, cost(y, a, x), also depends on the row of X, in its own units.
        feasible: ConstraintSet, the set C; or a function of x (n, ...) that returns a set with
            one row for each x, such as ``lambda x: Box(0.0, x[:, :3])``.
        convex: bool, default False. True promises that f(y, .) is convex for every y.
        hindsight: function, default None. y (*batch, *y_shape) -> the best a (*batch, d) had y
            been known; of y and x where the cost has x.
        cvxpy: function, default None. (y (S, *y_shape) as numpy, a cvxpy variable (1, d)) -> S
            costs as an expression; of y, a and x (S, ...) where the cost has x.
        normal: function, default None. (m, s, a) -> the mean of f(y, a) for independent normals
            y_i of mean m_i and standard deviation s_i, shaped and broadcasting as cost(m, a).
        y_dims: int, default 1. Axes of y_shape.
        width: int, default None. How many numbers one evaluation of f holds, which bounds what is
            computed at once; None for about four times those of y or a.
        context: names or numbers of columns, default None. The columns of X that the cost and the
            function ``feasible`` see as their x, in this order; None for all.
        chance: Chance, default None. A service level that decisions keep, see ``decide``.

    >>> import torch
    >>> from costscape.sets import Box
    >>> task = Task(lambda y, a: (y - a).abs().sum(-1), Box(0.0, 3.0, dim=2))
    >>> task.cost(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 0.0]))
    tensor(2.)
    """

    def __init__(
        self,
        cost: Cost,
        feasible: ConstraintSet | Sets,
        *,
        convex: bool = False,
        hindsight: Callable[..., Tensor] | None = None,
        cvxpy: Callable[..., Any] | None = None,
        normal: Normal | None = None,
        y_dims: int = 1,
        width: int | None = None,
        context: Column | Sequence[Column] | None = None,
        chance: Chance | None = None,
    ) -> None:
        super().__init__()
        check_callable(cost, "Task", "cost")
        check_options(convex, y_dims, width, chance)
        for name, f in {"hindsight": hindsight, "cvxpy": cvxpy, "normal": normal}.items():
            if f is not None:
                check_callable(f, "Task", name)
        self.f = cost
        self.feasible = as_set(feasible)
        # whether the cost has the context as its third argument
        self.sees_x = takes(cost.terms if isinstance(cost, SumOfTerms) else cost, 3)
        self.context: Context | None = None
        if self.sees_x or isinstance(self.feasible, SetOfContext) or context is not None:
            self.context = as_context(context)
            _check_facts(self, hindsight, normal)
        self.convex = convex
        self.hindsight = hindsight
        self.cvxpy = cvxpy
        self.normal = normal
        self.y_dims = y_dims
        self.width = width
        self.joins = False  # whether outcomes carry their context
        self.sets_of: SetOfContext | None = None
        self.scaled = False  # whether these sets are scaled copies of one
        self.chance = chance

    def cost(
        self,
        y: Float[Tensor, "..."],
        a: Float[Tensor, "..."],
        x: Float[Tensor, "..."] | None = None,
    ) -> Float[Tensor, "..."]:
        """f(y, a), with its shape checked; x (*batch, ...) where the cost has a third argument."""
        value = self.f(y, a, *self._seen(x))
        return of_shape(value, batch_shape(y, a, self.y_dims), "cost", y, a)

    @property
    def separable(self) -> bool:
        """Whether the cost is a sum over coordinates, as that of one coordinate always is."""
        one = not isinstance(self.feasible, SetOfContext) and self.feasible.dim == 1
        return one or isinstance(self, SeparableTask)

    def terms(
        self,
        y: Float[Tensor, "..."],
        a: Float[Tensor, "..."],
        x: Float[Tensor, "..."] | None = None,
    ) -> Float[Tensor, "... d"]:
        """The d summands of f(y, a) of a ``separable`` task, with their shape checked."""
        if isinstance(self, SeparableTask):
            return terms_of(self.f_terms, y, a, self.y_dims, *self._seen(x))
        return self.cost(y, a, x).unsqueeze(-1)

    def bound(
        self: T,
        x: Float[Tensor, "n ..."],
        names: Sequence[str] | None = None,
        hull: ConstraintSet | None = None,
    ) -> T:
        """The same task for rows like x: its outcomes carry their context, see ``join``.

        Args:
            x: rows of X; sets that are functions of x are joined to one that holds all of theirs.
            names: the columns of X, where they have names.
            hull: that set, where it is known already.

        A task without context is returned as it is, and so is a bound one.
        """
        if self.context is None or self.context.shape is not None:
            return self
        context = self.context.bound(tuple(x.shape[1:]), names)
        sets = self.feasible if isinstance(self.feasible, SetOfContext) else None
        C = sets.at(context.of(x)) if sets is not None and hull is None else None
        if C is not None:
            hull = C.hull if isinstance(C, RowSets) else C
        new = self.over(self.feasible if hull is None else hull, context)
        hindsight = self.hindsight
        if hindsight is not None and self.sees_x:
            hindsight = WithContext(hindsight, context, self.y_dims)
        new.hindsight, new.sets_of = hindsight, sets
        new.scaled = isinstance(C, ScaledRows)
        return new

    def join(
        self, x: Float[Tensor, "n ..."], y: Float[Tensor, "#n ..."]
    ) -> Float[Tensor, "n ..."]:
        """Outcomes with the context of their rows, as the cost of a bound task takes them.

        y is (n, *y_shape), or (n or 1, S, *y_shape). A cost without context takes y itself.
        """
        if not self.joins:
            return y
        assert self.context is not None
        return self.context.join(x, y, self.y_dims)

    def sets(self, x: Float[Tensor, "n ..."]) -> ConstraintSet:
        """The set of these rows: C, or ``RowSets`` where it is a function of x."""
        if self.sets_of is None:
            return self.feasible
        assert self.context is not None
        return self.sets_of.at(self.context.of(x))

    def over(self: T, feasible: ConstraintSet, context: Context | None = None) -> T:
        """The same cost over another set; with a context, bound to it."""
        cvxpy = self.cvxpy
        if context is not None and self.sees_x and cvxpy is not None:
            cvxpy = WithContext(cvxpy, context, self.y_dims)
        one = feasible.hull if isinstance(feasible, RowSets) else feasible
        new = self._remade(self._bound_to(context), one, cvxpy)
        new.feasible = feasible
        new.context = context or self.context
        new.joins = self.joins or (context is not None and self.sees_x)
        return new

    def relaxed(self: T) -> T:
        """The same cost over the base of a Whole set; the task itself on all other sets."""
        return self.over(self.feasible.base) if isinstance(self.feasible, Whole) else self

    def _remade(self: T, f: Cost, feasible: ConstraintSet, cvxpy: Any) -> T:
        names = ["convex", "normal", "y_dims"] + ["width"] * (type(self) is Task)
        facts: dict[str, Any] = {name: getattr(self, name) for name in names}
        return type(self)(f, feasible, cvxpy=cvxpy, **facts)

    def _bound_to(self, context: Context | None) -> Cost:
        """The function given to the constructor, of outcomes with their context where it is."""
        f = self.f_terms if isinstance(self, SeparableTask) else self.f
        return f if context is None or not self.sees_x else WithContext(f, context, self.y_dims)

    def _seen(self, x: Tensor | None) -> tuple[Tensor, ...]:
        """The third argument of the cost, where it has one."""
        if x is None and not self.sees_x:
            return ()
        if x is None or not self.sees_x or self.context is None:
            raise ValueError(
                "cost(y, a, x) needs x, and cost(y, a) takes none, but the call has it the other "
                "way round. Pass the rows of X, or leave them out."
            )
        return (self.context.of(x),)

    def of_normals(self: T) -> T:
        """The same choice where an outcome is a normal law: y' = (m, s), side by side."""
        if self.normal is None or self.y_dims != 1:
            raise Refusal(
                "The expected cost under a normal law is needed in closed form, and this task was "
                "made without normal=. Pass draws=1000, say, to average over draws instead."
            )
        return type(self)(OfNormals(self.normal), self.feasible, convex=self.convex)


class SeparableTask(Task):
    """A task whose cost is a sum over coordinates: f(y, a) = sum_i f_i(y, a_i).

    Args:
        terms: function of y and a, or of y, a and x, as ``cost`` of ``Task``, that returns the d
            summands, (*batch, d). Summand i may depend on all of y but only on a_i, so that
            solvers search each coordinate by itself.
        feasible: ConstraintSet, as for ``Task``.
        convex: bool, default False, as for ``Task``.
        hindsight: function, default None, as for ``Task``.
        cvxpy: function, default None, as for ``Task``.
        normal: function, default None, as for ``Task``, but it returns the summands.
        y_dims: int, default 1, as for ``Task``.
        context: names or numbers of columns, default None, as for ``Task``.
        chance: Chance, default None, as for ``Task``.

    >>> import torch
    >>> from costscape.sets import Box
    >>> task = SeparableTask(lambda y, a: (y - a).abs(), Box(0.0, 3.0, dim=2), convex=True)
    >>> task.cost(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 0.0]))
    tensor(2.)
    """

    def __init__(
        self,
        terms: Cost,
        feasible: ConstraintSet | Sets,
        *,
        convex: bool = False,
        hindsight: Callable[..., Tensor] | None = None,
        cvxpy: Callable[..., Any] | None = None,
        normal: Normal | None = None,
        y_dims: int = 1,
        context: Column | Sequence[Column] | None = None,
        chance: Chance | None = None,
    ) -> None:
        check_callable(terms, "SeparableTask", "terms")
        super().__init__(
            SumOfTerms(terms, y_dims),
            feasible,
            convex=convex,
            hindsight=hindsight,
            cvxpy=cvxpy,
            normal=normal,
            y_dims=y_dims,
            context=context,
            chance=chance,
        )
        self.f_terms = terms


def _check_facts(task: Task, hindsight: Any, normal: Normal | None) -> None:
    if normal is not None and task.sees_x:
        raise Refusal(
            "normal= knows no context, so a task with cost(y, a, x) cannot have it. Leave normal "
            "out, and average over draws."
        )
    if hindsight is not None and isinstance(task.feasible, SetOfContext):
        raise Refusal(
            "hindsight= knows no set, so a task whose set is a function of x cannot have it. "
            "Leave hindsight out."
        )
