"""Generated problems with a known law of y given x. To add one, add an entry to GENERATED.

Outcomes are demands in [0, 6] of about 2.5, unless an entry says otherwise.
"""

from itertools import product

import torch
from torch import Tensor

from costscape.experiments.zoo.coupled_costs import Growth, OfTotal, Transfer, Trucks
from costscape.experiments.zoo.decisions import (
    Decision,
    coupled,
    listed,
    ramp_limits,
    separable,
    storage_limits,
)
from costscape.experiments.zoo.features import (
    autoregression,
    codes,
    correlated,
    one_hot,
    uniform,
    with_time,
)
from costscape.experiments.zoo.generated import Generated
from costscape.experiments.zoo.laws import (
    gaussian,
    lognormal,
    one_part,
    pareto,
    student,
    two_parts,
)
from costscape.experiments.zoo.mean_maps import (
    continued,
    interaction,
    linear,
    lookup,
    smooth,
    steps,
    trend,
    zero,
)
from costscape.experiments.zoo.separable_costs import (
    Fined,
    Priced,
    Traded,
    asymmetric,
    newsvendor,
)
from costscape.experiments.zoo.simulators import CarriedStock, Queue
from costscape.scenarios import ExpectedCost
from costscape.sets import Box, Budget, Finite, Simplex
from costscape.tasks import SeparableTask, Task

HIGH = 6.0  # the most that is demanded and that may be chosen
PRICES = (0.5, 0.7, 0.9, 1.1, 1.3, 1.5, 1.7, 1.9)  # of items that compete for a budget
DECAY = 0.9  # of the autoregression, from one moment to the next


def _rising(x: Tensor) -> Tensor:
    """Spread of the noise: from 0.15 to 0.85, by the first column."""
    return 0.15 + 0.7 * torch.sigmoid(2 * x[:, :1])


def _growing(x: Tensor) -> Tensor:
    """Spread of the noise: from 0.2 to 0.8, by the last column, time."""
    return 0.2 + 0.6 * x[:, -1:]


def _ahead(x: Tensor) -> Tensor:
    """Spread of an autoregression of variance 1 after 1 to 4 moments."""
    powers = 2 * torch.arange(1, 5, dtype=x.dtype)
    return (1 - DECAY**powers).sqrt().expand(len(x), -1)


def _likely(x: Tensor) -> Tensor:
    """Chance of the first regime, by the first column."""
    return torch.sigmoid(2 * x[:, :1])


def _open(x: Tensor) -> Tensor:
    """Chance that a shop is open: a third of the shops are closed on half of the days."""
    return 1 - 0.5 * x[:, :4].sum(-1, keepdim=True)


def _battery() -> Decision:
    """Buy and sell at prices above or below their mean; a quadratic program is a projection."""
    cost, feasible = Traded(wear=0.25), storage_limits(8, power=1.0, start=1.0, capacity=2.0)
    task = SeparableTask(cost, feasible, convex=True)

    def of_price(price: Tensor) -> Tensor:
        return feasible.project(-price / (2 * cost.wear))

    def best(g: ExpectedCost, start: Tensor | None) -> Tensor:
        return of_price((g.scenarios.weights[..., None] * g.scenarios.values).sum(1))

    task.hindsight = of_price
    return Decision(task, best)


def _plans(*levels: float, dim: int) -> Finite:
    return Finite([list(plan) for plan in product(levels, repeat=dim)])


GENERATED: dict[str, Generated] = {
    # boxes
    "zoo-linear": Generated(
        lambda: separable(newsvendor(0.8), Box(0.0, HIGH, dim=3)),
        uniform(2),
        one_part(linear(2), gaussian),
        rows=500,
    ),
    "zoo-rare-shortage": Generated(
        lambda: separable(newsvendor(0.97), Box(0.0, HIGH, dim=3)),
        uniform(5),
        one_part(smooth(2), lognormal, _rising),
        rows=1000,
    ),
    "zoo-wide": Generated(
        lambda: separable(newsvendor(0.9), Box(0.0, HIGH, dim=2)),
        correlated(150),
        one_part(linear(5), gaussian),
        rows=1000,
    ),
    "zoo-heavy-tails": Generated(
        lambda: separable(asymmetric(8.0, 2.0), Box(0.0, HIGH, dim=4)),
        uniform(5),
        one_part(interaction(3), student),
        rows=2000,
    ),
    "zoo-fine-regimes": Generated(
        lambda: separable(Fined(4.0, 2.0, 6.0, 0.3), Box(0.0, HIGH, dim=3), convex=False),
        uniform(2),
        two_parts(linear(2, 0.4, 1.5), linear(2, 0.4, 4.0), gaussian, _likely),
        rows=2000,
        draws=250,
    ),
    "zoo-many-rows": Generated(
        lambda: separable(newsvendor(0.7, squared=1.0), Box(0.0, HIGH, dim=2)),
        uniform(20),
        one_part(steps(4), lognormal),
        rows=20_000,
    ),
    "zoo-codes-few-rows": Generated(
        lambda: separable(asymmetric(5.0, 1.0), Box(0.0, HIGH, dim=2)),
        codes((6, 4), numbers=1),
        one_part(lookup((6, 4)), gaussian),
        rows=200,
    ),
    "zoo-closed-shops": Generated(
        lambda: separable(newsvendor(0.6), Box(0.0, HIGH, dim=3)),
        one_hot((12, 7), numbers=1),
        two_parts(linear(20, 1.5), zero, gaussian, _open, other_spread=0.0),
        rows=1500,
    ),
    "zoo-drift": Generated(
        lambda: separable(asymmetric(6.0, 2.0), Box(0.0, HIGH, dim=3)),
        with_time(4),
        one_part(trend(3, drift=1.5), gaussian, _growing),
        rows=1500,
    ),
    "zoo-series": Generated(
        lambda: separable(newsvendor(0.9), Box(0.0, HIGH, dim=4)),
        autoregression(20, DECAY),
        one_part(continued(DECAY), gaussian, _ahead),
        rows=1000,
    ),
    # budgets and simplices
    "zoo-budget": Generated(
        lambda: separable(Priced(newsvendor(0.8), PRICES[:6]), Budget(total=14.0, dim=6)),
        uniform(5),
        one_part(linear(3), gaussian),
        rows=1000,
    ),
    "zoo-budget-pareto": Generated(
        lambda: separable(Priced(newsvendor(0.95), PRICES), Budget(total=22.0, dim=8, upper=HIGH)),
        uniform(20),
        one_part(smooth(3), pareto, _rising),
        rows=2000,
    ),
    "zoo-simplex-regimes": Generated(
        lambda: separable(asymmetric(4.0, 1.0), Simplex(total=12.0, dim=5)),
        uniform(5),
        two_parts(interaction(2), smooth(3), lognormal, _likely),
        rows=1000,
    ),
    # ramp limits and storage
    "zoo-ramp": Generated(
        lambda: separable(newsvendor(0.9), ramp_limits(8, HIGH, 0.375), ramp=0.375),
        uniform(5),
        one_part(smooth(2), gaussian, _rising),
        rows=1000,
    ),
    "zoo-ramp-day": Generated(
        lambda: separable(newsvendor(0.75, squared=1.0), ramp_limits(24, HIGH, 0.375), ramp=0.375),
        uniform(5),
        one_part(steps(3), lognormal),
        rows=500,
        draws=250,
        test=500,
    ),
    # prices about 0: above or below their mean
    "zoo-battery": Generated(
        _battery,
        uniform(5),
        one_part(linear(5, level=0.0), student, 0.7, low=-4.0, high=4.0),
        rows=500,
    ),
    # lists
    "zoo-list-fine": Generated(
        lambda: separable(
            Fined(5.0, 1.0, 4.0, 0.5), _plans(0.5, 1.5, 2.5, 3.5, 4.5, dim=2), convex=False
        ),
        correlated(5),
        one_part(steps(3), student),
        rows=500,
    ),
    "zoo-list-trucks": Generated(
        lambda: listed(Task(Trucks(load=3.0, fee=4.0), _plans(1.0, 2.0, 3.0, 4.5, dim=3))),
        codes((8, 5), numbers=3),
        one_part(lookup((8, 5)), lognormal),
        rows=1500,
    ),
    # coupled
    "zoo-transfer": Generated(
        lambda: coupled(Transfer(short=8.0, spare=2.0, move=1.5), Box(0.0, HIGH, dim=4)),
        uniform(5),
        one_part(interaction(2), gaussian, _rising),
        rows=1000,
        draws=256,
    ),
    "zoo-total-budget": Generated(
        lambda: coupled(OfTotal(short=3.0), Budget(total=13.0, dim=5)),
        uniform(20),
        one_part(linear(4), lognormal),
        rows=1000,
    ),
    # returns between -50 % and 100 %
    "zoo-growth": Generated(
        lambda: coupled(Growth(), Simplex(dim=5)),
        uniform(5),
        one_part(linear(3, 0.15, 0.05), student, 0.2, low=-0.5, high=1.0),
        rows=2000,
    ),
    "zoo-stock-steps": Generated(
        lambda: coupled(
            CarriedStock(start=1.0, buy=2.0, hold=0.5, lost=8.0), Box(0.0, HIGH, dim=6)
        ),
        uniform(5),
        one_part(smooth(2), lognormal),
        rows=1000,
        draws=256,
    ),
    "zoo-queue-steps": Generated(
        lambda: coupled(Queue(staff=1.0, wait=1.0, left=5.0), Box(0.0, HIGH, dim=6)),
        correlated(20),
        two_parts(linear(3, 0.4, 1.0), linear(3, 0.4, 3.0), gaussian, _likely),
        rows=1000,
        draws=128,
    ),
}
