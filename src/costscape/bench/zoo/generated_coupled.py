"""Generated problems on lists, and such whose cost is no sum. To add one, add an entry.

Outcomes are demands in [0, 6] of about 2.5, unless an entry says otherwise.
"""

from itertools import product

from costscape.bench.zoo.coupled_costs import Growth, OfTotal, Transfer, Trucks
from costscape.bench.zoo.decisions import coupled, listed, separable
from costscape.bench.zoo.features import (
    codes,
    correlated,
    uniform,
)
from costscape.bench.zoo.generated import Generated
from costscape.bench.zoo.laws import (
    gaussian,
    lognormal,
    one_part,
    student,
    two_parts,
)
from costscape.bench.zoo.mean_maps import (
    interaction,
    linear,
    lookup,
    smooth,
    steps,
)
from costscape.bench.zoo.separable_costs import Fined
from costscape.bench.zoo.simulators import CarriedStock, Queue
from costscape.bench.zoo.spreads import likely, rising
from costscape.sets import Box, Budget, Finite, Simplex
from costscape.task import Task

HIGH = 6.0  # the most that is demanded and that may be chosen


def _plans(*levels: float, dim: int) -> Finite:
    return Finite([list(plan) for plan in product(levels, repeat=dim)])


GENERATED_COUPLED: dict[str, Generated] = {
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
        one_part(interaction(2), gaussian, rising),
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
        two_parts(linear(3, 0.4, 1.0), linear(3, 0.4, 3.0), gaussian, likely),
        rows=1000,
        draws=128,
    ),
}
