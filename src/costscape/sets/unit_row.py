"""One row that whole counts share, such as a budget of packs, solved exactly.

    minimise  sum_i cost_i(k_i)  over whole k_i in 0 .. n_i - 1,  c . k <= U   (or c . k = U)

with whole prices c_i >= 0. With F_0(0) = 0 and F_0(u) = infinity for u > 0, dynamic programming
over the used units (Bellman, 1957) is exact for any costs:

    F_i(u) = min_k  F_{i-1}(u - c_i k) + cost_i(k).

Where all prices are equal and each cost is convex in k, taking the units one by one in order of
their marginal cost is exact, too (Fox, Discrete Optimization via Marginal Analysis, 1966).

The same recursion with sums in place of minima counts the points, so that a uniform one can be
drawn coordinate by coordinate.
"""

from dataclasses import dataclass
from math import gcd

import torch
from jaxtyping import Float, Int64
from torch import Generator, Tensor

BLOCK = 2**22  # numbers in memory at once
MOST_UNITS = 20_000  # of capacity
WHOLE = 1e-4  # a number this near a whole one counts as whole


@dataclass(frozen=True)
class UnitRow:
    """The row c . k <= U, or c . k = U, of counts k_i in 0 .. n_i - 1.

    Args:
        price: c, units that one count takes. A coordinate that frees units is turned round, so
            that its price is not negative.
        turned: whether a coordinate counts down from n_i - 1.
        size: n.
        units: U.
        equal: bool. True where all units must be used.
    """

    price: tuple[int, ...]
    turned: tuple[bool, ...]
    size: tuple[int, ...]
    units: int
    equal: bool

    @property
    def one_price(self) -> bool:
        return len(set(self.price)) == 1 and self.price[0] > 0

    def turn(self, k: Int64[Tensor, "n d"]) -> Int64[Tensor, "n d"]:
        """From counts to counts from the other end, and back, where a coordinate is turned."""
        last = torch.tensor(self.size, device=k.device) - 1
        return torch.where(torch.tensor(self.turned, device=k.device), last - k, k)

    def allocate(
        self, cost: Float[Tensor, "B d K"], *, convex: bool = False
    ) -> Int64[Tensor, "B d"]:
        """The counts of least total cost; ``cost[:, i, k]`` is not read from k = n_i on."""
        size = torch.tensor(self.size, device=cost.device)[:, None]
        k = torch.arange(cost.shape[-1], device=cost.device)
        turned = torch.tensor(self.turned, device=cost.device)[:, None]
        order = torch.where(turned, size - 1 - k, k).clamp(min=0)
        cost = cost.gather(-1, order.expand_as(cost)).masked_fill(k >= size, torch.inf)
        greedy = convex and self.one_price
        states = cost.shape[1] * (cost.shape[-1] if greedy else self.units + 1)
        solve = self._by_margin if greedy else self._by_units
        parts = cost.split(max(1, BLOCK // states))
        return self.turn(torch.cat([solve(part) for part in parts]))

    def _by_margin(self, cost: Tensor) -> Tensor:
        """Take the cheapest units first; convexity puts those of one coordinate in order."""
        if cost.shape[-1] == 1:
            return torch.zeros_like(cost[..., 0], dtype=torch.long)
        margin = torch.where(cost[..., 1:].isinf(), torch.inf, cost.diff(dim=-1))
        margin = margin.cummax(-1).values  # rounding may break the order
        sort = margin.flatten(1).sort(dim=1, stable=True)
        taken = sort.values < (torch.inf if self.equal else 0.0)
        taken[:, self.units // self.price[0] :] = False
        flat = torch.zeros_like(taken).scatter(1, sort.indices, taken)
        k: Tensor = flat.unflatten(1, margin.shape[1:]).sum(-1)
        return k

    def _by_units(self, cost: Tensor) -> Tensor:
        best = cost.new_full((len(cost), self.units + 1), torch.inf)
        best[:, 0] = 0
        choices = []
        for i, price in enumerate(self.price):
            best, choice = _add(best, cost[:, i, : self.size[i]], price)
            choices.append(choice)
        used = torch.full_like(best[:, :1], self.units, dtype=torch.long)
        if not self.equal:
            used = best.argmin(1, keepdim=True)
        k = []
        for choice, price in zip(choices[::-1], self.price[::-1], strict=True):
            k.append(choice.gather(1, used))
            used = used - price * k[-1]
        return torch.cat(k[::-1], 1)

    def ways(self) -> Float[Tensor, "d1 U1"]:
        """How many points coordinates i, i + 1, ... have with u units left, up to a factor."""
        left = torch.zeros(self.units + 1, dtype=torch.float64)
        left[0 if self.equal else slice(None)] = 1
        table = [left]
        for price, size in zip(self.price[::-1], self.size[::-1], strict=True):
            left = size * left if price == 0 else _running_sum(left, price, size)
            left = left / left.max().clamp(min=1e-300)  # counts may overflow
            table.append(left)
        return torch.stack(table[::-1])

    def draw(
        self, ways: Float[Tensor, "d1 U1"], n: int, generator: Generator | None
    ) -> Int64[Tensor, "n d"]:
        """n points, each with the same probability."""
        left = torch.full((n, 1), self.units, device=ways.device)
        k = []
        for i, (price, size) in enumerate(zip(self.price, self.size, strict=True)):
            after = left - price * torch.arange(size, device=ways.device)
            p = ways[i + 1][after.clamp(min=0)].masked_fill(after < 0, 0.0).cumsum(1)
            u = torch.rand(n, 1, generator=generator, dtype=p.dtype, device=p.device) * p[:, -1:]
            k.append(torch.searchsorted(p, u, right=True).clamp(max=size - 1))
            left = left - price * k[-1]
        return self.turn(torch.cat(k, 1))


def unit_row(
    price: Float[Tensor, "d"], capacity: float, size: list[int], equal: bool
) -> UnitRow | str:
    """The row price . k <= capacity in whole units, or why there is none."""
    turned = price < 0
    capacity += float((-price * (torch.tensor(size) - 1))[turned].sum())
    price = price.abs().double()
    least = float(price[price > 0].min())
    ratios = next((r for m in range(1, 101) if _whole(r := price * m / least)), None)
    if ratios is None:
        return "needs prices that are multiples of one unit, and those of this row are not"
    c = [int(r) for r in ratios.round().tolist()]
    c = [each // gcd(*c) for each in c]
    unit = float(price.sum()) / sum(c)
    units = capacity / unit
    if equal and abs(units - round(units)) > 100 * WHOLE:
        return "needs a total that is a multiple of its unit, and it is not"
    whole = int(units + WHOLE) if units >= -WHOLE else -1
    most = sum(each * (n - 1) for each, n in zip(c, size, strict=True))
    whole = round(units) if equal else min(whole, most)
    if whole > MOST_UNITS:
        return f"needs a capacity of at most {MOST_UNITS:,} units, and this one has {whole:,}"
    return UnitRow(tuple(c), tuple(turned.tolist()), tuple(size), whole, equal)


def _whole(value: Tensor) -> bool:
    slack = (1e-6 * value).clamp(min=WHOLE)  # single precision of large numbers
    return bool(((value - value.round()).abs() <= slack).all())


def _add(best: Tensor, cost: Tensor, price: int) -> tuple[Tensor, Tensor]:
    """F_i from F_{i-1}, and the k of each u."""
    if price == 0:
        least, k = cost.min(1, keepdim=True)
        return best + least, k.expand_as(best)
    many = min(cost.shape[1], (best.shape[1] - 1) // price + 1)
    reach = (many - 1) * price
    before = torch.nn.functional.pad(best, (reach, 0), value=torch.inf)
    windows = before.unfold(1, reach + 1, 1)[..., ::price]  # the last one is k = 0
    cost = cost[:, :many].flip(-1)[:, None]
    parts = windows.split(max(1, BLOCK // max(1, len(best) * many)), 1)
    reached, at = zip(*((part + cost).min(-1) for part in parts), strict=True)
    return torch.cat(reached, 1), many - 1 - torch.cat(at, 1)


def _running_sum(left: Tensor, price: int, size: int) -> Tensor:
    """sum_k left[u - price k] over k in 0 .. size - 1."""
    reach = min(size - 1, (len(left) - 1) // price) * price
    windows = torch.nn.functional.pad(left, (reach, 0)).unfold(0, reach + 1, 1)[:, ::price]
    return windows.sum(-1)
