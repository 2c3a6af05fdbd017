"""The contract of a solver."""

import torch
from torch import Generator

from costscape.checks.must import must
from costscape.scenarios import ExpectedCost
from costscape.solvers import Solver

TRIED = 1000


def check_solver(solver: Solver, g: ExpectedCost, tolerance: float = 1e-3) -> None:
    """Answers lie in C, cost what they say, beat all sampled actions, and stand alone.

    ``tolerance`` is a share of the spread of g over C. Stand alone: a row solved by itself and
    among others costs the same; and the same call gives the same bits.
    """
    feasible, rows = g.task.feasible, len(g)
    found = solver.minimise(g, feasible, rows)
    again = solver.minimise(g, feasible, rows)
    must(found.action.shape == (rows, feasible.dim), "the actions have the wrong shape.")
    must(bool(feasible.contains(found.action).all()), "an answer lies outside the set.")
    must(torch.equal(found.action, again.action), "the same call gave two answers.")
    device = feasible.bounds[0].device
    with torch.no_grad():
        tried = g(feasible.sample(TRIED, Generator(device).manual_seed(0))[None])
        paid = g(found.action[:, None])[:, 0]
    slack = tolerance * tried.std(1) + 1e-6 * paid.abs()
    must(bool(((paid - found.cost).abs() <= slack).all()), "an answer costs not what it says.")
    worse = float((paid - tried.amin(1)).max())
    must(bool((paid <= tried.amin(1) + slack).all()), f"a sampled action is {worse:g} better.")
    for i in range(min(rows, 3)):
        alone = solver.minimise(g.rows(slice(i, i + 1)), feasible, 1).cost[0]
        must(
            bool((alone - found.cost[i]).abs() <= slack[i]),
            f"row {i} costs {float(alone):g} alone and {float(found.cost[i]):g} among others.",
        )
