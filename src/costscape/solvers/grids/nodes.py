"""The search among condensed outcomes, for x whose error is known to be small enough."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from costscape.expectation import CACHE
from costscape.sets import Box
from costscape.solvers.grids.condensed import Condensed, product
from costscape.solvers.grids.modelled import modelled
from costscape.solvers.grids.spots import Spots, halved
from costscape.solvers.grids.valleys import hopeful, local_minima
from costscape.task import SeparableTask


def among_nodes(
    task: SeparableTask,
    box: Box,
    few: Condensed,
    w: Float[Tensor, "B S"],
    t: Float[Tensor, "J"],
    basins: int,
    least: float,
    eps: float,
) -> tuple[Float[Tensor, "B d"], Float[Tensor, "B"], Bool[Tensor, "B"]]:
    """Actions, what they cost at the nodes, and for which x there is an answer.

    There is one where the bound is at most eps times the spread of f_i for each i: what is best at
    the nodes then costs at most that much more than what is best, and its cost is off by no more.
    The rest is to be searched in another way.
    """
    v = few.weights(w)
    sure = few.within(v, eps)
    a = box.lower.expand(len(w), -1)
    cost = w.new_zeros(len(w))
    if not sure.any():
        return a, cost, sure
    b = sure.nonzero()[:, 0]
    v = v if len(b) == len(w) else v[b]
    first = product(v, few.table.costs)
    best, k, found = local_minima(first, basins)
    found &= hopeful(first, best, k)
    g = _AtNodes(task, few.table.values, v)
    spots = Spots(t[k].mT, best.mT, 1 / (len(t) - 1))
    close, good = modelled(g, v, task, few.table, first, spots, k.mT, found.mT, least)
    if not good.all():
        rest = (~good).nonzero()[:, 0]
        again = Spots(spots.t[rest], spots.cost[rest], spots.step)
        again = halved(g.pick(rest), box, again, found.mT[rest], least)
        close = close.put(rest, torch.zeros_like(rest), again)
    here = box.project(box.lower + close.t[:, 0] * (box.upper - box.lower))
    return a.index_put((b,), here), cost.index_put((b,), close.cost[:, 0].sum(-1)), sure


@dataclass(frozen=True)
class _AtNodes:
    """g at the nodes, a Surface."""

    task: SeparableTask
    values: Tensor  # (1, n, d)
    v: Float[Tensor, "B d n"]
    separable: bool = True
    shared: bool = True

    @property
    def convex(self) -> bool:
        return self.task.convex

    def terms(self, a: Float[Tensor, "#B J d"]) -> Float[Tensor, "B J d"]:
        rows = max(1, CACHE // (4 * a.shape[1] * self.v[0].numel() * a.element_size()))
        each = zip(self.v.split(rows), a.split(rows), strict=True)
        return torch.cat([self._terms(*part) for part in each])

    def rows(self, i: slice) -> "_AtNodes":
        return _AtNodes(self.task, self.values, self.v[i])

    def pick(self, b: Int64[Tensor, "n"]) -> "_AtNodes":
        return _AtNodes(self.task, self.values, self.v[b])

    def _terms(self, v: Tensor, a: Tensor) -> Tensor:
        f = self.task.terms(self.values[:, None], a[:, :, None])  # (B, J, n, d)
        return torch.einsum("bjnd,bdn->bjd", f, v)
