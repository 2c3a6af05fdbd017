"""f on a grid, for outcomes that all x share, kept from one call to the next.

    T[i, j, s] = f_i(y_s, a_j),        g_i(x, a_j) = sum_s w_s(x) T[i, j, s]

T depends on the task, the outcomes and the grid, and not on x: with T at hand a look at the whole
grid is one matrix product.
"""

from dataclasses import dataclass, field
from functools import cached_property

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from costscape.expectation import CACHE
from costscape.scenarios import ExpectedCost
from costscape.solvers.grids.bends import Bends, find_bends
from costscape.solvers.grids.cuts import Cuts
from costscape.solvers.grids.groups import GROUP, lower_bounds
from costscape.solvers.grids.kept import Kept, bytes_of, same
from costscape.task import SeparableTask

BYTES = 2**27  # of one table
KEPT = 2**28  # bytes of all that are kept; what is found from them takes up to 9/16 more
SOME = 17  # actions
MANY = 64  # outcomes, from which on one action each tells whether f is still the same
FALL = 4.0  # steps of the grid that g may fall by between its points


@dataclass(frozen=True)
class Table:
    """f_i at each action and outcome; nobody may write to it."""

    costs: Float[Tensor, "d J S"]
    size: Float[Tensor, "d"]  # of g_i where it is low: the best action's mean cost, without signs
    values: Tensor
    actions: Tensor
    at: Float[Tensor, "R S d"]  # R of the actions for each outcome
    told: Float[Tensor, "R S d"]  # f at these, by ``probe``
    alone: bool  # whether summand i looks at y_i alone
    # for one x alone, by the parts of a cell; at most one, after the first decision
    cuts: dict[int, Cuts] = field(default_factory=dict, compare=False)

    @property
    def simple(self) -> bool:
        """Whether one x alone may be searched in the way of ``single``."""
        return self.alone and self.costs.shape[1] >= 8 * GROUP and self.bounds is not None

    @cached_property
    def bends(self) -> Bends:
        """The outcomes that bend around each action, found when first asked for."""
        return find_bends(self.costs, self.size)

    @cached_property
    def bounds(self) -> Tensor | None:
        """Lower bounds on groups of actions, made when first asked for: 1/16 of the costs."""
        return lower_bounds(self.costs, FALL)


_kept: Kept[Table] = Kept(lambda table: bytes_of(table.costs))


def fits(g: ExpectedCost, points: int) -> bool:
    """Whether the costs of so many actions at all outcomes are few enough to keep.

    Only on a CPU: a GPU computes them in about the time it takes to ask whether they are known.
    """
    y = g.scenarios.values
    size = points * y.shape[1] * g.task.feasible.dim * y.element_size()
    return g.shared and y.device.type == "cpu" and size <= BYTES


def kept_table(g: ExpectedCost, a: Float[Tensor, "J d"]) -> Table | None:
    """The table of the same task, actions and outcomes, number by number, if there is one.

    Before it is used f must still give ``probe``: f may have been changed in place.
    """
    known = _kept.get(g.task)
    if known is None or not same(known.values, g.scenarios.values):
        return None
    return known if known.actions is a or same(known.actions, a) else None


def asked(a: Float[Tensor, "J d"], S: int) -> Float[Tensor, "R S d"]:
    """The actions at which ``probe`` asks each outcome: evenly from the grid, all in turn."""
    R = 1 if S >= MANY else 2
    j = torch.arange(R * S).unflatten(0, (R, S)) * len(a) // (R * S)
    return a[j].mT.contiguous().mT  # as outcomes by coordinate lie in memory


def probe(
    task: SeparableTask,
    values: Float[Tensor, "..."],
    at: Float[Tensor, "R S d"],
    a: Float[Tensor, "d"],
) -> Float[Tensor, "R+1 S d"]:
    """f at the actions ``at``, where it is known, and at one more for all outcomes."""
    more = a[:, None].expand(1, -1, at.shape[1])
    return task.terms(values, torch.cat([at.mT, more]).mT)


def cost_table(g: ExpectedCost, a: Float[Tensor, "J d"]) -> Table:
    """f of each coordinate at each action and outcome.

    A kept table is used again if task, actions and outcomes are the same, number by number, and
    if f still gives the same bits at each outcome and one of the actions: f may have been changed
    in place.
    """
    task = g.task
    assert isinstance(task, SeparableTask)
    known = kept_table(g, a)
    if known is not None:
        told = probe(task, known.values, known.at, a[0])[:-1]
        if same(known.told, told):
            return known
    # a copy, for the model may go on learning in the same memory
    values = g.scenarios.by_coordinate().values.detach().clone()
    at = asked(a, values.shape[1])
    costs = fill(task, values, a)
    i = some(len(a))
    new = Table(
        costs,
        size_of(costs),
        values,
        a,
        at,
        probe(task, values, at, a[0])[:-1],
        alone(task, costs[:, i], values, a[i]),
    )
    _kept.put(task, new, KEPT)
    return new


def fill(
    task: SeparableTask, values: Float[Tensor, "..."], a: Float[Tensor, "J d"]
) -> Float[Tensor, "d J S"]:
    """T, a few actions at a time, so that what f computes on the way stays in the cache."""
    (J, d), S = a.shape, values.shape[1]
    costs = a.new_empty(d, J, S)
    numbers = 4 * max(d, values[0, 0].numel())
    rows = max(1, CACHE // (numbers * S * a.element_size()))
    for part, out in zip(a.split(rows), costs.split(rows, 1), strict=True):
        out.copy_(task.terms(values, part.unsqueeze(1)).permute(2, 0, 1))
    return costs


def size_of(costs: Float[Tensor, "d J S"]) -> Float[Tensor, "d"]:
    return costs.abs().mean(-1).amin(-1)


def some(J: int) -> Int64[Tensor, "n"]:
    """SOME of J actions, evenly."""
    return torch.linspace(0, J - 1, min(J, SOME)).long()


def alone(
    task: SeparableTask,
    costs: Float[Tensor, "d J S"],
    values: Float[Tensor, "..."],
    a: Float[Tensor, "J d"],
) -> bool:
    """Whether f_i(y, .) is the same, bit by bit, when the rest of y is that of another outcome.

    Asked at all outcomes and these actions, ``costs`` being f there.
    """
    d, S = a.shape[1], values.shape[1]
    if values.shape[2:] != (d,):
        return False
    i = torch.arange(d)
    s = (torch.arange(S)[:, None] + i) % S
    mixed = fill(task, values[:, s, i].mT.contiguous().mT, a)
    return all(torch.equal(costs[n][:, s[:, n]], mixed[n]) for n in range(d))
