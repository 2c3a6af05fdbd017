"""Many outcomes condensed to few, once, where all x share them.

Where summand i looks at y_i alone, f_i(y_s, a) between two neighbours n_k <= y_si <= n_(k+1) among
few chosen outcomes, the nodes, is about their mean, theta_s being how far on the way y_si is:

    f_i(y_s, a) = (1 - theta_s) f_i(n_k, a) + theta_s f_i(n_(k+1), a) - r_s(a)

    g_i(x, a) = sum_k v_ik(x) f_i(n_k, a) - r(x, a),
    -sum_k v_ik(x) R-_ik <= r(x, a) <= sum_k v_ik(x) R+_ik(a),

v = M w the weights of the outcomes handed to the two nodes beside them, M sparse and the same for
all x, R+_ik(a) the largest r_s(a) of the outcomes beside node k, and R-_ik the largest -r_s(a) for
any a, which is 0 where f is convex in y. What r is at most is thus known for every x from a second
small product.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from costscape.scenarios import ExpectedCost
from costscape.solvers.grids import table as tables
from costscape.solvers.grids.deviations import deviations
from costscape.solvers.grids.dust import without_dust
from costscape.solvers.grids.kept import Kept, bytes_of, same
from costscape.solvers.grids.table import Table, alone, asked, fill, probe, size_of, some
from costscape.task import SeparableTask

NODES = 4096  # at most, of each coordinate
FEWEST = 64
FEWER = 4  # outcomes for each node, at least
ROWS = 2**23  # bytes of weights turned at once
GROUP = 8  # of R+, of which a first look takes the largest


@dataclass(frozen=True)
class Condensed:
    """v, f at the nodes, and R. ``table`` is that of the nodes, as if they were outcomes."""

    table: Table
    matrix: Any  # M, (d n, S), scipy's
    over: Float[Tensor, "d G n"]  # R+, the largest within every two cells of the grid
    under: Float[Tensor, "d n"]  # R-, the largest within C
    spread: Float[Tensor, "d"]  # the most that a move within C changes f_i of an outcome

    def weights(self, w: Float[Tensor, "B S"]) -> Float[Tensor, "B d n"]:
        d, _, n = self.over.shape
        rows = max(1, ROWS // (w.shape[1] * w.element_size()))
        v = w.new_empty(len(w), d * n)
        for part, out in zip(w.split(rows), v.split(rows), strict=True):
            turned = without_dust(part).T
            out.copy_(torch.from_numpy(self.matrix @ turned.numpy()).T)
        return v.view(-1, d, n)

    @cached_property
    def _roughly(self) -> Float[Tensor, "d g n"]:
        """R+, the largest of every GROUP."""
        return torch.stack([part.amax(1) for part in self.over.split(GROUP, 1)], 1)

    def bound(self, v: Float[Tensor, "B d n"]) -> Float[Tensor, "B d"]:
        """The most that r(x, a) - r(x, a') is for any a and a' in C, as far as r was measured."""
        return product(v, self.over).amax(-1) + (v * self.under).sum(-1)

    def within(self, v: Float[Tensor, "B d n"], eps: float) -> Bool[Tensor, "B"]:
        """For which x the bound is at most eps times the spread of f_i in each coordinate."""
        most = eps * self.spread - (v * self.under).sum(-1)  # (B, d)
        sure = (product(v, self._roughly).amax(-1) <= most).all(-1)
        if not sure.all():
            rest = (~sure).nonzero()[:, 0]
            sure[rest] = (product(v[rest], self.over).amax(-1) <= most[rest]).all(-1)
        return sure


@dataclass(frozen=True)
class _Made:
    """What was made, None where nothing can be, and of what."""

    values: Tensor
    actions: Tensor
    at: Tensor
    told: Tensor
    condensed: Condensed | None


def _bytes(made: _Made) -> int:
    c = made.condensed
    return bytes_of(made.told) if c is None else bytes_of(c.table.costs) + bytes_of(c.over)


_kept: Kept[_Made] = Kept(_bytes)


def product(v: Float[Tensor, "B d n"], of: Float[Tensor, "d J n"]) -> Float[Tensor, "B d J"]:
    return torch.stack([v[:, i] @ f.T for i, f in enumerate(of)], 1)


def condensed(g: ExpectedCost, a: Float[Tensor, "J d"]) -> Condensed | None:
    """Made anew where task, outcomes or actions are not those of the last time, number by number,
    or f has been changed. None where a summand looks at more than y_i, where f is not finite, and
    where there are too few outcomes to be worth it.

    Making it takes about 1.5 x J x S evaluations of f.
    """
    task = cast(SeparableTask, g.task)
    values = g.scenarios.values
    n = _nodes(values, a)
    if n < FEWEST:
        return None
    known = _kept.get(task)
    if (
        known is not None
        and same(known.values, values)
        and same(known.actions, a)
        and same(known.told, task.terms(values, known.at))
    ):
        return known.condensed
    at = asked(a, values.shape[1])[:1].contiguous()  # as the outcomes lie in memory
    # copies, for the model may go on learning in the same memory
    new = _Made(values.clone(), a.clone(), at, task.terms(values, at), None)
    if all(alone(task, fill(task, values, b), values, b) for b in a[some(len(a))].split(1)):
        new = replace(new, condensed=_make(task, new, n))
    _kept.put(task, new, tables.KEPT)
    return new.condensed


def _nodes(values: Tensor, a: Tensor) -> int:
    """How many for each coordinate, so that their table is not too large."""
    most = tables.BYTES // (len(a) * a.shape[1] * a.element_size())
    return int(min(NODES, most, values.shape[1] // FEWER))


def _make(task: SeparableTask, of: _Made, n: int) -> Condensed | None:
    y, order = of.values[0].T.contiguous().sort(-1)  # (d, S)
    S = y.shape[1]
    d = len(y)
    k = torch.stack([_spaced(each, n) for each in y])  # (d, n)
    every = torch.arange(S).expand(d, -1).contiguous()
    cell = (torch.searchsorted(k, every, right=True) - 1).clamp(max=n - 2)
    nodes = y.gather(1, k)
    left, right = nodes.gather(1, cell), nodes.gather(1, cell + 1)
    theta = ((y - left) / (right - left)).where(right > left, 0.0).clamp(0, 1)
    row, column = (cell + n * torch.arange(d)[:, None]).flatten(), order.flatten()
    entries = torch.cat([1 - theta.flatten(), theta.flatten()]).numpy()
    where = torch.cat([row, row + 1]).numpy(), torch.cat([column, column]).numpy()
    from scipy.sparse import csr_matrix  # slow to import, and rarely needed

    matrix = csr_matrix((entries, where), shape=(d * n, S))
    values = nodes.T[None]  # nodes of different coordinates are put together
    a = of.actions
    over, under, spread = deviations(task, y.T[None], values, cell, theta, a)
    if not all(v.isfinite().all() for v in (over, under, spread)):
        return None
    costs = fill(task, values, a)
    at = asked(a, n)
    told = probe(task, values, at, a[0])[:-1]
    table = Table(costs, size_of(costs), values, a, at, told, True)
    return Condensed(table, matrix, over, under, spread)


def _spaced(y: Float[Tensor, "S"], n: int) -> Int64[Tensor, "n"]:
    """n of the sorted outcomes, the first and the last among them.

    Neighbours are about 2 S / n apart in rank and 2 / n of the range in y, or less.
    """
    S = len(y)
    key = torch.arange(S, dtype=torch.float64) / max(1, S - 1)
    width = float(y[-1]) - float(y[0])
    if width > 0:
        key = key + (y.double() - y[0]) / width
    k = torch.searchsorted(key, torch.linspace(0, float(key[-1]), n, dtype=torch.float64))
    return k.clamp(max=S - 1)
