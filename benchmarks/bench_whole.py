"""How long do decisions in whole packs take, and what are they to be compared with?

1. A budget of 100 packs for 8 products, S = 200 shared outcomes, a cost with a jump: dynamic
   programming against scipy's milp (HiGHS), which chooses one number of packs for each product
   from the same table of costs. A few instances are timed, and scaled up; ours counts the table,
   the milp does not.
2. A box of 20^3 points: the same solver against all points.
3. A cost that couples products, on the same points: how many answers of the local search are
   worse than the best of all points.

Processor seconds of one thread, the median of several calls after a first one.

python benchmarks/bench_whole.py
"""

from functools import partial

import numpy as np
import torch
from common import at_most, middle, once, reported, show

import costscape as cs
from costscape.solvers.box_search import costs_on_grid

ROWS, POINTS, PACKS, SOME = 500, 200, 100, 10


def terms(y, a):
    return 3 * (y - a).relu() + (a - y).relu() + 5.0 * (a > 0)


def coupled(y, a):
    return terms(y, a).sum(-1) + 0.02 * a.sum(-1) ** 2


def instances(task, rows=ROWS):
    rng = torch.Generator().manual_seed(0)
    weights = (3 * torch.randn(rows, POINTS, generator=rng)).softmax(-1)
    values = 40 * torch.rand(1, POINTS, task.feasible.dim, generator=rng)
    return cs.ExpectedCost(task, cs.Scenarios(weights, values))


def solve(g, solver):
    return solver.minimise(g, g.task.feasible, len(g))


def against_milp():
    packs = cs.Whole(cs.Budget(total=float(PACKS), dim=8, upper=40.0))
    g = instances(cs.SeparableTask(terms, packs))
    exact = middle(partial(solve, g, cs.WholeSeparable()), 3) / ROWS
    values = torch.arange(41.0)[:, None].expand(-1, 8)
    tables = costs_on_grid(g.rows(slice(0, SOME)), values).double().numpy()
    taken, theirs = once(lambda: np.array([by_milp(table, PACKS) for table in tables]))
    ours = solve(g, cs.WholeSeparable()).cost[:SOME].numpy()
    worse = int((ours > theirs + 1e-4 * np.abs(theirs)).sum())
    name = "decide in packs under a budget"
    note = f"{1e3 * taken / SOME:.1f} and {1e3 * exact:.2f} ms an instance, from {SOME}"
    return [
        reported(f"{name}, against scipy's milp", taken / SOME / exact, note=note),
        at_most(f"{name}, worse than milp", worse, 0, f"of {SOME}"),
    ]


def by_milp(table, units):
    """The least sum of one entry for each row of the table, with ``units`` counts in all."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    d, K = table.shape
    each = np.kron(np.eye(d), np.ones(K))
    rows = [
        LinearConstraint(each, 1, 1),
        LinearConstraint(np.tile(np.arange(K), d)[None], 0, units),
    ]
    return milp(table.ravel(), integrality=1, bounds=Bounds(0, 1), constraints=rows).fun


def against_all_points():
    box = cs.Box(0, 38, dim=3, step=2)
    g = instances(cs.SeparableTask(terms, box))
    exact = middle(partial(solve, g, cs.WholeSeparable()), 5)
    taken, best = once(partial(solve, g, cs.Exhaustive()))
    worse = int((solve(g, cs.WholeSeparable()).cost > best.cost + 1e-3).sum())
    name = "decide in packs on a box, 8,000 points"
    note = f"{1e3 * taken:.0f} and {1e3 * exact:.1f} ms for {ROWS}"
    return [
        reported(f"{name}, against all points", taken / exact, note=note),
        at_most(f"{name}, worse than the best", worse, 0, f"of {ROWS}"),
    ]


def local_search(rows=100):
    g = instances(cs.Task(coupled, cs.Box(0, 38, dim=3, step=2)), rows)
    best = solve(g, cs.Exhaustive()).cost
    taken, found = once(partial(solve, g, cs.WholeSearch()))
    worse = found.cost > best + 1e-4 * best.abs()
    more = float(((found.cost - best) / best).max())
    note = f"at most {100 * more:.2g} % more; {1e3 * taken / rows:.1f} ms an instance"
    name = "local search in packs, coupled cost with a jump: worse than the best"
    return [reported(name, int(worse.sum()), f"of {rows}", note)]


def results():
    torch.set_num_threads(1)
    return [*against_milp(), *against_all_points(), *local_search()]


if __name__ == "__main__":
    print(show(results()))
