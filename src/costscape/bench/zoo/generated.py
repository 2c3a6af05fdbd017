"""Generated problems. To add one, add an entry.

Outcomes are demands in [0, 6] of about 2.5, unless an entry says otherwise.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import product
from zlib import crc32

import numpy as np

from costscape.bench.zoo.assemble import assemble
from costscape.bench.zoo.features import (
    FeatureMaker,
    autoregression,
    codes,
    correlated,
    one_hot,
    uniform,
    with_time,
)
from costscape.bench.zoo.laws import Law, gaussian, lognormal, pareto, student
from costscape.bench.zoo.maps import (
    DECAY,
    ahead,
    continued,
    growing,
    interaction,
    likely,
    linear,
    lookup,
    open_shop,
    rising,
    smooth,
    steps,
    trend,
    zero,
)
from costscape.bench.zoo.zoo_costs import (
    CarriedStock,
    Growth,
    Priced,
    asymmetric,
    fined,
    newsvendor,
    of_total,
    queue,
    transfer,
    trucks,
)
from costscape.bench.zoo.zoo_tasks import battery, coupled, listed, ramp_limits, separable
from costscape.data import Dataset, Splits
from costscape.problems.problem import Problem
from costscape.sets import Box, Budget, Finite, Simplex
from costscape.task import Task

HIGH = 6.0  # the most that is demanded and that may be chosen
PRICES = (0.5, 0.7, 0.9, 1.1, 1.3, 1.5, 1.7, 1.9)  # of items that compete for a budget


@dataclass(frozen=True)
class Generated:
    """A recipe: draw ``rows`` training rows of x, then y from the law.

    There are a quarter as many validation rows, at least 100, and ``test`` test rows.
    """

    task: Callable[[], Task]
    features: FeatureMaker
    law: Law
    rows: int = 1000
    test: int = 1000

    def make(self, name: str, seed: int) -> Problem:
        """The problem of one seed, which draws the coefficients of the law, x and y."""
        rng = np.random.default_rng([seed, crc32(name.encode())])
        task = self.task()
        dim = task.feasible.dim
        maps = [mean(rng, dim) for mean in self.law.means]
        cuts = np.cumsum([self.rows, max(100, self.rows // 4), self.test])
        x = self.features(rng, int(cuts[-1]))
        data = Dataset(x, self.law.sample(maps, x, dim, rng))
        parts = Splits(data[: cuts[0]], data[cuts[0] : cuts[1]], data[cuts[1] :])
        return assemble(parts, task, f"{name}: generated with seed {seed}")


def _plans(*levels: float, dim: int) -> Finite:
    return Finite([list(plan) for plan in product(levels, repeat=dim)])


GENERATED: dict[str, Generated] = {
    # boxes
    "zoo-linear": Generated(
        lambda: separable(newsvendor(0.8), Box(0.0, HIGH, dim=3)),
        uniform(2),
        Law((linear(2),), gaussian),
        rows=500,
    ),
    "zoo-rare-shortage": Generated(
        lambda: separable(newsvendor(0.97), Box(0.0, HIGH, dim=3)),
        uniform(5),
        Law((smooth(2),), lognormal, (rising,)),
    ),
    "zoo-wide": Generated(
        lambda: separable(newsvendor(0.9), Box(0.0, HIGH, dim=2)),
        correlated(150),
        Law((linear(5),), gaussian),
    ),
    "zoo-heavy-tails": Generated(
        lambda: separable(asymmetric(8.0, 2.0), Box(0.0, HIGH, dim=4)),
        uniform(5),
        Law((interaction(3),), student),
        rows=2000,
    ),
    "zoo-fine-regimes": Generated(
        lambda: separable(
            partial(fined, short=4.0, spare=2.0, fine=6.0, slack=0.3),
            Box(0.0, HIGH, dim=3),
            convex=False,
        ),
        uniform(2),
        Law((linear(2, 0.4, 1.5), linear(2, 0.4, 4.0)), gaussian, (0.3, 0.3), likely),
        rows=2000,
    ),
    "zoo-many-rows": Generated(
        lambda: separable(newsvendor(0.7, squared=1.0), Box(0.0, HIGH, dim=2)),
        uniform(20),
        Law((steps(4),), lognormal),
        rows=20_000,
    ),
    "zoo-codes-few-rows": Generated(
        lambda: separable(asymmetric(5.0, 1.0), Box(0.0, HIGH, dim=2)),
        codes((6, 4), numbers=1),
        Law((lookup((6, 4)),), gaussian),
        rows=200,
    ),
    "zoo-closed-shops": Generated(
        lambda: separable(newsvendor(0.6), Box(0.0, HIGH, dim=3)),
        one_hot((12, 7), numbers=1),
        Law((linear(20, 1.5), zero), gaussian, (0.3, 0.0), open_shop),
        rows=1500,
    ),
    "zoo-drift": Generated(
        lambda: separable(asymmetric(6.0, 2.0), Box(0.0, HIGH, dim=3)),
        with_time(4),
        Law((trend(3, drift=0.8),), gaussian, (growing,)),
        rows=2000,
    ),
    "zoo-series": Generated(
        lambda: separable(newsvendor(0.9), Box(0.0, HIGH, dim=4)),
        autoregression(20, DECAY),
        Law((continued(DECAY),), gaussian, (ahead,)),
    ),
    # budgets and simplices
    "zoo-budget": Generated(
        lambda: separable(Priced(newsvendor(0.8), PRICES[:6]), Budget(total=14.0, dim=6)),
        uniform(5),
        Law((linear(3),), gaussian),
    ),
    "zoo-budget-pareto": Generated(
        lambda: separable(Priced(newsvendor(0.95), PRICES), Budget(total=22.0, dim=8, upper=HIGH)),
        uniform(20),
        Law((smooth(3),), pareto, (rising,)),
    ),
    "zoo-simplex-regimes": Generated(
        lambda: separable(asymmetric(4.0, 1.0), Simplex(total=12.0, dim=5)),
        uniform(5),
        Law((interaction(2), smooth(3)), lognormal, (0.3, 0.3), likely),
    ),
    # ramp limits and storage
    "zoo-ramp": Generated(
        lambda: separable(newsvendor(0.9), ramp_limits(8, HIGH, 0.375)),
        uniform(5),
        Law((smooth(2),), gaussian, (rising,)),
    ),
    "zoo-ramp-day": Generated(
        lambda: separable(newsvendor(0.75, squared=1.0), ramp_limits(24, HIGH, 0.375)),
        uniform(5),
        Law((steps(3),), lognormal),
        rows=500,
        test=500,
    ),
    # prices about 0: above or below their mean
    "zoo-battery": Generated(
        lambda: battery(wear=0.25),
        uniform(5),
        Law((linear(5, level=0.0),), student, (0.7,), low=-4.0, high=4.0),
        rows=500,
    ),
    # lists
    "zoo-list-fine": Generated(
        lambda: separable(
            partial(fined, short=5.0, spare=1.0, fine=4.0, slack=0.5),
            _plans(0.5, 1.5, 2.5, 3.5, 4.5, dim=2),
            convex=False,
        ),
        correlated(5),
        Law((steps(3),), student),
        rows=500,
    ),
    "zoo-list-trucks": Generated(
        lambda: listed(partial(trucks, load=3.0, fee=4.0), _plans(1.0, 2.0, 3.0, 4.5, dim=3)),
        codes((8, 5), numbers=3),
        Law((lookup((8, 5)),), lognormal),
        rows=1500,
    ),
    # coupled
    "zoo-transfer": Generated(
        lambda: coupled(partial(transfer, short=8.0, spare=2.0, move=1.5), Box(0.0, HIGH, dim=4)),
        uniform(5),
        Law((interaction(2),), gaussian, (rising,)),
    ),
    "zoo-total-budget": Generated(
        lambda: coupled(partial(of_total, short=3.0), Budget(total=13.0, dim=5)),
        uniform(20),
        Law((linear(4),), lognormal),
    ),
    # returns between -50 % and 100 %
    "zoo-growth": Generated(
        lambda: coupled(Growth(), Simplex(dim=5)),
        uniform(5),
        Law((linear(3, 0.15, 0.05),), student, (0.2,), low=-0.5, high=1.0),
        rows=2000,
    ),
    "zoo-stock-steps": Generated(
        lambda: coupled(
            CarriedStock(start=1.0, buy=2.0, hold=0.5, lost=8.0), Box(0.0, HIGH, dim=6)
        ),
        uniform(5),
        Law((smooth(2),), lognormal),
    ),
    "zoo-queue-steps": Generated(
        lambda: coupled(partial(queue, staff=1.0, wait=1.0, left=5.0), Box(0.0, HIGH, dim=6)),
        correlated(20),
        Law((linear(3, 0.4, 1.0), linear(3, 0.4, 3.0)), gaussian, (0.3, 0.3), likely),
    ),
}
