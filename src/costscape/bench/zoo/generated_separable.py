"""Generated problems whose cost is a sum over coordinates. To add one, add an entry.

Outcomes are demands in [0, 6] of about 2.5, unless an entry says otherwise.
"""

from torch import Tensor

from costscape.bench.zoo.decisions import (
    Decision,
    Hindsight,
    ramp_limits,
    separable,
    storage_limits,
)
from costscape.bench.zoo.features import (
    autoregression,
    codes,
    correlated,
    one_hot,
    uniform,
    with_time,
)
from costscape.bench.zoo.generated import Generated
from costscape.bench.zoo.laws import (
    gaussian,
    lognormal,
    one_part,
    pareto,
    student,
    two_parts,
)
from costscape.bench.zoo.mean_maps import (
    continued,
    interaction,
    linear,
    lookup,
    smooth,
    steps,
    trend,
    zero,
)
from costscape.bench.zoo.separable_costs import Fined, Priced, Traded, asymmetric, newsvendor
from costscape.bench.zoo.spreads import DECAY, ahead, growing, likely, open_shop, rising
from costscape.scenarios import ExpectedCost
from costscape.sets import Box, Budget, Simplex
from costscape.task import SeparableTask

HIGH = 6.0  # the most that is demanded and that may be chosen
PRICES = (0.5, 0.7, 0.9, 1.1, 1.3, 1.5, 1.7, 1.9)  # of items that compete for a budget
WEAR = 0.25  # of a battery


def _battery() -> Decision:
    """Buy and sell at prices y above or below their mean; wear makes the storage move less."""
    feasible = storage_limits(8, power=1.0, start=1.0, capacity=2.0)
    task = SeparableTask(Traded(WEAR), feasible, convex=True)
    task.hindsight = Hindsight(task, _traded)
    return Decision(task, _traded)


def _traded(g: ExpectedCost, start: Tensor | None) -> Tensor:
    """argmin of m . a + wear |a|^2, m the mean price: the point of C nearest to -m / (2 wear)."""
    mean = (g.scenarios.weights[..., None] * g.scenarios.values).sum(1)
    return g.task.feasible.project(-mean / (2 * WEAR))


GENERATED_SEPARABLE: dict[str, Generated] = {
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
        one_part(smooth(2), lognormal, rising),
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
        two_parts(linear(2, 0.4, 1.5), linear(2, 0.4, 4.0), gaussian, likely),
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
        two_parts(linear(20, 1.5), zero, gaussian, open_shop, other_spread=0.0),
        rows=1500,
    ),
    "zoo-drift": Generated(
        lambda: separable(asymmetric(6.0, 2.0), Box(0.0, HIGH, dim=3)),
        with_time(4),
        one_part(trend(3, drift=0.8), gaussian, growing),
        rows=2000,
    ),
    "zoo-series": Generated(
        lambda: separable(newsvendor(0.9), Box(0.0, HIGH, dim=4)),
        autoregression(20, DECAY),
        one_part(continued(DECAY), gaussian, ahead),
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
        one_part(smooth(3), pareto, rising),
        rows=1000,
    ),
    "zoo-simplex-regimes": Generated(
        lambda: separable(asymmetric(4.0, 1.0), Simplex(total=12.0, dim=5)),
        uniform(5),
        two_parts(interaction(2), smooth(3), lognormal, likely),
        rows=1000,
    ),
    # ramp limits and storage
    "zoo-ramp": Generated(
        lambda: separable(newsvendor(0.9), ramp_limits(8, HIGH, 0.375), ramp=0.375),
        uniform(5),
        one_part(smooth(2), gaussian, rising),
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
}
