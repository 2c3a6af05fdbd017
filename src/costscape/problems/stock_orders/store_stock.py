"""Stock a whole store: every item on every day, under one purse and one shelf.

    f(y, a) = sum_i sum_t under_i (y_it - a_it)+ + over_i (a_it - y_it)+ + squared (a_it - y_it)^2

on 0 <= a <= cap and, where wanted,

    sum_i sum_t price_i a_it <= budget          (the purse of the whole order)
    sum_i size_i a_it <= shelf_t for each t     (the room of each day)

Numbers lie item by item: coordinate i * days + t is item i on day t, in y as in a.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from costscape.problems.hindsight import Hindsight
from costscape.problems.two_sided import check_prices, standard_normal
from costscape.sets import Box, Budget, ConstraintSet, Polytope
from costscape.sets.validation import Numbers, as_numpy, as_tensors
from costscape.solvers import Convex
from costscape.task import SeparableTask


def store_inventory(
    items: int,
    days: int = 7,
    *,
    under: Numbers = 20.0,
    over: Numbers = 5.0,
    squared: float = 1.0,
    cap: Numbers = 3.0,
    budget: float | None = None,
    price: Numbers = 1.0,
    shelf: Numbers | None = None,
    size: Numbers = 1.0,
) -> SeparableTask:
    """Minimise f over the orders of all items; defaults are the paper's for each of them.

    - ``under``, ``over``, ``cap``, ``price``, ``size``: a number, one an item, or (items, days);
    - ``budget``: the most that all orders may cost at ``price``, or None;
    - ``shelf``: the most that the orders of a day may fill at ``size``, a number or one a day.

    The set is a Box; a Budget where there is a budget, prices are equal and no shelf is; else a
    Polytope. On a Box decisions are exact, coordinate by coordinate; on the others each x, and
    each outcome in hindsight, is one convex program. A Polytope of 35 numbers is made in 0.2 s and
    of 350 in 10 s, and 100 samples take 0.1 s and 6 s.
    """
    for name, count in (("items", items), ("days", days)):
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise ValueError(
                f"store_inventory needs {name} to be a whole number of at least 1, but got "
                f"{count!r}. Write for example store_inventory(items=5, days=7)."
            )
    check_prices("store_inventory", {"squared": squared})
    full = {
        name: _spread(name, value, items, days)
        for name, value in zip(
            ("under", "over", "cap", "price", "size"),
            as_tensors("store_inventory", under=under, over=over, cap=cap, price=price, size=size),
            strict=True,
        )
    }
    cost = _StoreCost(full["under"], full["over"], squared)
    feasible = _feasible(full, days, budget, shelf)
    if isinstance(feasible, Box):
        best: Callable[[Tensor], Tensor] = feasible.project
    else:
        program = SeparableTask(cost, feasible, convex=True, cvxpy=cost.cvxpy)
        best = Hindsight(program, Convex())
    return SeparableTask(
        cost, feasible, convex=True, hindsight=best, cvxpy=cost.cvxpy, normal=cost.mean
    )


def by_item(a: Float[Tensor, "*batch d"], days: int = 7) -> Float[Tensor, "*batch items days"]:
    """Orders or demands as a table of items by days; ``.flatten(-2)`` is the way back.

    >>> by_item(torch.arange(6.0), days=3)
    tensor([[0., 1., 2.],
            [3., 4., 5.]])
    """
    if days < 1 or a.shape[-1] % days:
        raise ValueError(
            f"by_item needs as many numbers as items times days, but got {a.shape[-1]} numbers "
            f"for {days} days. Give the days that the task was made with."
        )
    table: Tensor = a.unflatten(-1, (-1, days))
    return table


class _StoreCost(nn.Module):
    under: Tensor
    over: Tensor

    def __init__(self, under: Tensor, over: Tensor, squared: float) -> None:
        super().__init__()
        self.squared = squared
        self.register_buffer("under", under)
        self.register_buffer("over", over)

    def forward(
        self, y: Float[Tensor, "*#batch d"], a: Float[Tensor, "*#batch d"]
    ) -> Float[Tensor, "*batch d"]:
        linear = self.under * (y - a).relu() + self.over * (a - y).relu()
        return linear + self.squared * (a - y) ** 2

    def mean(self, m: Tensor, s: Tensor, a: Tensor) -> Tensor:
        """E f for y ~ N(m, s^2), as in TwoSided."""
        z = (a - m) / s
        phi, below, above = standard_normal(z)
        linear = self.under * (phi - z * above) + self.over * (phi + z * below)
        return s * linear + self.squared * (s**2 + (a - m) ** 2)

    def cvxpy(self, y: Any, a: Any) -> Any:
        import cvxpy as cp

        under, over = (np.broadcast_to(as_numpy(v), y.shape) for v in (self.under, self.over))
        linear = cp.multiply(under, cp.pos(y - a)) + cp.multiply(over, cp.pos(a - y))
        return cp.sum(linear + self.squared * cp.square(y - a), axis=1)


def _feasible(
    full: dict[str, Tensor], days: int, budget: float | None, shelf: Numbers | None
) -> ConstraintSet:
    cap, price, size = full["cap"], full["price"], full["size"]
    eye = torch.eye(len(cap)).to(cap)
    G, h = [eye, -eye], [cap, torch.zeros_like(cap)]
    if budget is not None:
        (total,) = as_tensors("store_inventory", budget=budget)
        _check("budget", total, total.ndim == 0, "one positive number")
        if shelf is None and (price == price[0]).all():
            return Budget(total=total / price[0], dim=len(cap), upper=cap)
        G.append(price[None])
        h.append(total[None].to(cap))
    if shelf is not None:
        (room,) = as_tensors("store_inventory", shelf=shelf)
        right = room.shape in ((), (days,))
        _check("shelf", room, right, f"a positive number or {days} of them, one a day")
        G.append(torch.eye(days).to(cap).repeat(1, len(cap) // days) * size)
        h.append(room.expand(days).to(cap))
    if len(G) == 2:
        return Box(torch.zeros_like(cap), cap)
    return Polytope(G=torch.cat(G), h=torch.cat(h))


def _spread(name: str, value: Tensor, items: int, days: int) -> Tensor:
    """A number, one an item, or a table, as items x days numbers."""
    right = value.shape in ((), (items,), (items, days))
    words = f"a number, {items} numbers (one an item) or a table {(items, days)}"
    positive = name in ("price", "size")
    _check(name, value, right, f"{words}, {'positive' if positive else 'at least 0'}", positive)
    table = value[:, None] if value.ndim == 1 else value
    return table.expand(items, days).flatten().clone()


def _check(name: str, value: Tensor, right: bool, words: str, positive: bool = True) -> None:
    if not (right and value.isfinite().all() and (value > 0 if positive else value >= 0).all()):
        got = value.tolist() if value.numel() < 10 else f"shape {tuple(value.shape)}"
        raise ValueError(f"store_inventory needs {name} to be finite, {words}, but got {got}.")
