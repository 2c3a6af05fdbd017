"""Bids on the day-ahead market; what is missing or left over is settled at imbalance prices."""

from jaxtyping import Float
from torch import Tensor, nn

from costscape.sets import Box
from costscape.sets.validation import Numbers
from costscape.task import SeparableTask
from costscape.tasks.linear_sides import CutOff, prices


class Settlement(nn.Module):
    """Minus the revenue of each hour: buy_i (a_i - y_i)+ - sell_i (y_i - a_i)+ - price_i a_i."""

    price: Tensor
    buy: Tensor
    sell: Tensor

    def __init__(self, price: Tensor, buy: Tensor, sell: Tensor) -> None:
        super().__init__()
        self.register_buffer("price", price)
        self.register_buffer("buy", buy)
        self.register_buffer("sell", sell)

    def forward(
        self, y: Float[Tensor, "*#batch d"], a: Float[Tensor, "*#batch d"]
    ) -> Float[Tensor, "*batch d"]:
        left = (y - a).relu()
        return self.buy * (left - (y - a)) - self.sell * left - self.price * a


def bidding(
    price: Numbers,
    buy: Numbers,
    sell: Numbers,
    *,
    capacity: Numbers,
    dim: int | None = None,
) -> SeparableTask:
    """Sell a_i units of energy for each hour, a day ahead, before the generation y_i is known.

        f(y, a) = sum_i buy_i (a_i - y_i)+ - sell_i (y_i - a_i)+ - price_i a_i
        C = {a : 0 <= a_i <= capacity_i}

    Args:
        price: a number or a vector (d,). The day-ahead price.
        buy: a number or a vector (d,), at least ``price``. The imbalance price of a missing unit.
        sell: a number or a vector (d,), at most ``price``. The imbalance price of a surplus unit.
        capacity: a number or a vector (d,). The most that can be generated.
        dim: int, default None. d, where all prices are numbers.

    The cost is minus the revenue. The best bid is the (price - sell) / (buy - sell) quantile of
    the generation; in hindsight it is the generation itself.

    >>> import costscape as cs
    >>> import torch
    >>> task = cs.bidding(price=50.0, buy=80.0, sell=20.0, capacity=8.2, dim=1)
    >>> task.cost(torch.tensor([3.0]), torch.tensor([4.0]))
    tensor(-120.)
    """
    rates = prices("bidding", dim, price=price, buy=buy, sell=sell)
    wrong = (rates["buy"] < rates["price"]) | (rates["sell"] > rates["price"])
    if wrong.any():
        i = int(wrong.nonzero()[0])
        raise ValueError(
            f"bidding needs sell <= price <= buy, but coordinate {i} has sell "
            f"{rates['sell'][i]:g}, price {rates['price'][i]:g} and buy {rates['buy'][i]:g} "
            f"({int(wrong.sum())} such). Otherwise it pays to miss the bid on purpose: write your "
            f"own SeparableTask."
        )
    box = Box(0.0, capacity, dim=len(rates["price"]))
    return SeparableTask(Settlement(**rates), box, convex=True, hindsight=CutOff(box.upper))
