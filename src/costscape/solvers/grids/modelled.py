"""The close look from a table of f: a model near the grid's best, checked against f itself."""

from typing import cast

import numpy as np
import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from costscape.scenarios import ExpectedCost, Surface
from costscape.sets import Box
from costscape.solvers.grids.bends import near_grid, parts
from costscape.solvers.grids.cuts import first_cuts
from costscape.solvers.grids.dust import without_dust
from costscape.solvers.grids.even import Even
from costscape.solvers.grids.kept import bytes_of
from costscape.solvers.grids.single import search
from costscape.solvers.grids.spots import Spots, cut, halved, in_shares, places
from costscape.solvers.grids.table import Table, probe
from costscape.task import SeparableTask

SLACK = 32  # roundings between two ways to compute g
EPS = SLACK * torch.finfo(torch.float32).eps  # for one x alone, which is in this precision


def modelled(
    g: Surface,
    w: Float[Tensor, "B S"] | Float[Tensor, "B d S"],
    task: SeparableTask,
    table: Table,
    first: Float[Tensor, "B d J"],
    spots: Spots,
    k: Int64[Tensor, "B n d"],
    found: Bool[Tensor, "B n d"],
    least: float,
) -> tuple[Spots, Bool[Tensor, "B"]]:
    """The best near grid points k, where f is evaluated at few outcomes, and at all in the end.

    Also which x have a best that costs what it should; the others are to be done again.
    """
    b, n = places(found)
    if len(b) > len(found):
        first, w = first[b], w[b]
    near, fine = near_grid(
        task, table.costs, table.values, table.bends, table.alone, first, w, k[b, n]
    )
    nowhere = Spots(spots.t, torch.full_like(spots.cost, torch.inf), spots.step)
    best = nowhere.put(b, n, cut(near, spots.pick(b, n), least, parts)).best()
    cost = in_shares(g, cast(Box, task.feasible))(best.t)
    good = _good(cost, best.cost, spots.cost[:, :1], table.size)[:, 0]
    good[b[~fine]] = False
    return Spots(best.t, cost, best.step), good


def close(
    g: ExpectedCost,
    box: Box,
    table: Table,
    first: Float[Tensor, "B d J"],
    spots: Spots,
    k: Int64[Tensor, "B n d"],
    found: Bool[Tensor, "B n d"],
    least: float,
) -> Spots:
    """From a model, and by halving cells for an x whose best does not cost what it should."""
    task, w = cast(SeparableTask, g.task), g.scenarios.weights
    best, good = modelled(g, w, task, table, first, spots, k, found, least)
    if good.all():
        return best
    rest = (~good).nonzero()[:, 0]
    again = Spots(spots.t[rest], spots.cost[rest], spots.step)
    again = halved(g.on(g.scenarios.pick(rest)), box, again, found[rest], least)
    return best.put(rest, torch.zeros_like(rest), again)


def modelled_alone(
    g: ExpectedCost, grid: Even, table: Table, basins: int, least: float
) -> tuple[Tensor, Tensor] | None:
    """The best for one x alone; None if the table is not made for it, or the check fails.

    Outcomes as the table has them: the same numbers, by coordinate.
    """
    if not table.simple:
        return None
    task, w = cast(SeparableTask, g.task), without_dust(g.scenarios.weights[0])
    found = search(task, grid, table, w, basins, least)
    if found is None:
        return None
    t, best, first = found
    lower, upper, width = (v.numpy() for v in (grid.lower, grid.upper, grid.width))
    a = torch.from_numpy(np.minimum(np.maximum(lower + t * width, lower), upper))
    told = probe(task, table.values, table.at, a)
    cost = torch.mv(told[-1].mT, w)
    slack = EPS * (table.size.numpy() + np.abs(first))
    paid = cost.numpy()
    good = (np.abs(paid - best) <= slack) & (paid <= first + slack)
    if not (good.all() and (told.numpy()[:-1] == table.told.numpy()).all()):
        return None
    _keep_cuts(task, grid, table, least)  # now that f is seen to be what it was
    return a[None], cost.sum(-1, keepdim=True)


def _keep_cuts(task: SeparableTask, grid: Even, table: Table, least: float) -> None:
    """Where they take no more, with the bends, than these alone may."""
    n = parts(1 / (len(grid.t) - 1) / least)
    known = table.cuts.get(n)
    if known is not None and known.grid is grid:
        return
    most = bytes_of(table.costs) // 2
    new = first_cuts(task, table.costs, table.values, table.bends, grid, n, most)
    if new is not None:
        table.cuts.clear()
        table.cuts[n] = new


def _good(cost: Tensor, best: Tensor, grid: Tensor, size: Tensor) -> Tensor:
    """Whether what was found costs what it should, and no more than the grid's best."""
    slack = SLACK * torch.finfo(cost.dtype).eps * (size + grid.abs())
    return (((cost - best).abs() <= slack) & (cost <= grid + slack)).all(-1)
