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

from costscape.problems.two_sided import check_prices, standard_normal
from costscape.sets import Box, Budget, ConstraintSet, Polytope
from costscape.sets.validation import Numbers, as_numpy, as_tensors
from costscape.task import SeparableTask

HALVINGS = 50  # of a multiplier's interval


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
    Polytope. On a Box decisions are exact, coordinate by coordinate; on the others each x is one
    convex program. A Polytope of 35 numbers is made in 0.2 s and of 350 in 10 s, and 100 samples
    take 0.1 s and 6 s: methods that sample actions at each step want the smaller one, or equal
    prices. Hindsight halves the interval of each multiplier; without squares multipliers do not
    determine the order, so a coupled task with squared = 0 has no hindsight.
    """
    _check_counts(items, days)
    check_prices("store_inventory", {"squared": squared})
    shape = {"under": under, "over": over, "cap": cap, "price": price, "size": size}
    limits: dict[str, Numbers] = {"budget": torch.inf if budget is None else budget}
    limits["shelf"] = torch.inf if shelf is None else shelf
    told = as_tensors("store_inventory", **shape, **limits)
    full = {k: _spread(k, v, items, days) for k, v in zip(shape, told[:5], strict=True)}
    purse, room = _totals(told[5], told[6], days, budget is not None, shelf is not None)
    if purse is not None and room is None and (full["price"] == full["price"][0]).all():
        # one price for all: count units, not money
        purse, full["price"] = purse / full["price"][0], torch.ones_like(full["price"])
    coupled = purse is not None or room is not None
    cost = _StoreCost(full["under"], full["over"], squared)
    best = _Hindsight(full, squared, days, purse, room)
    return SeparableTask(
        cost,
        _feasible(full, days, purse, room),
        convex=True,
        hindsight=best if squared > 0 or not coupled else None,
        cvxpy=cost.cvxpy,
        normal=cost.mean,
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


class _Hindsight(nn.Module):
    """The best order for a known y.

    With a charge c on each unit it is y - (c - under)+ / (2 squared), within 0 and cap. The
    charge of a purse is lambda price, that of a shelf mu_t size; each multiplier is the least
    for which the order fits.
    """

    under: Tensor
    cap: Tensor
    price: Tensor
    size: Tensor
    purse: Tensor | None
    room: Tensor | None

    def __init__(
        self,
        full: dict[str, Tensor],
        squared: float,
        days: int,
        purse: Tensor | None,
        room: Tensor | None,
    ) -> None:
        super().__init__()
        self.squared = squared
        self.days = days
        for name in ("under", "cap", "price", "size"):
            self.register_buffer(name, full[name])
        self.register_buffer("purse", purse)
        self.register_buffer("room", room)

    def forward(self, y: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
        exact = y.double()
        zero = torch.zeros_like(exact)
        if self.purse is None:
            return self._on_shelf(exact, zero).to(y.dtype)
        price, purse = self.price.double(), self.purse.double()
        dear = self.under.double() + 2 * self.squared * exact.relu()

        def order(charge: Tensor) -> Tensor:
            return self._on_shelf(exact, charge * price)

        def fits(charge: Tensor) -> Tensor:
            return (order(charge) * price).sum(-1, keepdim=True) <= purse

        return order(_least(fits, (dear / price).amax(-1, keepdim=True))).to(y.dtype)

    def _on_shelf(self, y: Tensor, charge: Tensor) -> Tensor:
        under, cap, size = self.under.double(), self.cap.double(), self.size.double()

        def order(c: Tensor) -> Tensor:
            cut = (c - under).relu() / (2 * self.squared) if self.squared > 0 else 0.0
            return (y - cut).relu().minimum(cap)

        if self.room is None:
            return order(charge)
        room = self.room.double()
        items = len(size) // self.days

        def each(mu: Tensor) -> Tensor:  # a day's multiplier, at every item
            return mu.repeat(*[1] * (mu.ndim - 1), items) * size + charge

        def fits(mu: Tensor) -> Tensor:
            return by_item(order(each(mu)) * size, self.days).sum(-2) <= room

        dear = (under + 2 * self.squared * y.relu()) / size
        return order(each(_least(fits, by_item(dear, self.days).amax(-2))))


def _least(fits: Callable[[Tensor], Tensor], enough: Tensor) -> Tensor:
    """The least multiplier that fits, from above: 0 where 0 does, at most ``enough``."""
    low = torch.zeros_like(enough)
    high = torch.where(fits(low), low, enough)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        good = fits(middle)
        low, high = torch.where(good, low, middle), torch.where(good, middle, high)
    return high


def _feasible(
    full: dict[str, Tensor], days: int, purse: Tensor | None, room: Tensor | None
) -> ConstraintSet:
    cap, price, size = full["cap"], full["price"], full["size"]
    if purse is None and room is None:
        return Box(torch.zeros_like(cap), cap)
    if purse is not None and room is None and (price == 1).all():
        return Budget(total=purse, dim=len(cap), upper=cap)
    eye = torch.eye(len(cap)).to(cap)
    G, h = [eye, -eye], [cap, torch.zeros_like(cap)]
    if purse is not None:
        G.append(price[None])
        h.append(purse[None])
    if room is not None:
        G.append(torch.eye(days).to(cap).repeat(1, len(cap) // days) * size)
        h.append(room)
    return Polytope(G=torch.cat(G), h=torch.cat(h))


def _totals(
    budget: Tensor, shelf: Tensor, days: int, purse: bool, room: bool
) -> tuple[Tensor | None, Tensor | None]:
    """The budget and one shelf a day, None where not wanted."""
    if purse and not (budget.ndim == 0 and budget.isfinite() and budget > 0):
        raise ValueError(
            f"store_inventory needs budget to be one positive number, but got {budget.tolist()}. "
            f"Leave it out where money is no limit."
        )
    if room and (shelf.shape not in ((), (days,)) or not ((shelf > 0) & shelf.isfinite()).all()):
        raise ValueError(
            f"store_inventory needs shelf to be a positive number or {days} of them, one a day, "
            f"but got {shelf.tolist()}. Leave it out where room is no limit."
        )
    return (budget if purse else None), (shelf.expand(days).clone() if room else None)


def _spread(name: str, value: Tensor, items: int, days: int) -> Tensor:
    """A number, one an item, or a table, as items x days numbers."""
    if value.shape not in ((), (items,), (items, days)):
        raise ValueError(
            f"store_inventory needs {name} to be a number, {items} numbers (one an item) or a "
            f"table {(items, days)}, but got shape {tuple(value.shape)}."
        )
    table = value.expand(items, days) if value.ndim != 1 else value[:, None].expand(items, days)
    if name in ("price", "size"):
        good, what = value.isfinite() & (value > 0), "positive"
    else:
        good, what = value.isfinite() & (value >= 0), "finite and not negative"
    if not good.all():
        bad = value[~good].flatten()[0]
        raise ValueError(
            f"store_inventory needs {name} to be {what} everywhere, but got {float(bad):g}. "
            f"Correct it, or leave the item out."
        )
    return table.flatten().clone()


def _check_counts(items: int, days: int) -> None:
    for name, count in (("items", items), ("days", days)):
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise ValueError(
                f"store_inventory needs {name} to be a whole number of at least 1, but got "
                f"{count!r}. Write for example store_inventory(items=5, days=7)."
            )
