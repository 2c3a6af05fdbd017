"""The contract of a solver."""

import torch
from torch import Generator

from costscape.checks.sets import must
from costscape.scenarios import ExpectedCost
from costscape.solvers import Solver

TRIED = 1000


def check_solver(solver: Solver, g: ExpectedCost, tolerance: float = 1e-3) -> None:
    """Check that actions lie in C, have the cost returned with them and beat all sampled actions.

    The same call must give the same bits, and a row must cost the same by itself and in a batch.

    Args:
        solver: the solver.
        g: the problem to solve.
        tolerance: float, default 1e-3, a share of the spread of g over C.
    """
    feasible, rows = g.task.feasible, len(g)
    solution = solver.minimise(g, feasible, rows)
    again = solver.minimise(g, feasible, rows)
    must(solution.action.shape == (rows, feasible.dim), "the actions have the wrong shape.")
    must(feasible.contains(solution.action), "an answer lies outside the set.")
    must(torch.equal(solution.action, again.action), "the same call gave two answers.")
    device = feasible.bounds[0].device
    with torch.no_grad():
        tried = g(feasible.sample(TRIED, Generator(device).manual_seed(0))[None])
        cost = g(solution.action[:, None])[:, 0]
    slack = tolerance * tried.std(1) + 1e-6 * cost.abs()
    must((cost - solution.cost).abs() <= slack, "an answer does not have the cost returned.")
    worse = float((cost - tried.amin(1)).max())
    must(cost <= tried.amin(1) + slack, f"a sampled action is {worse:g} better.")
    for i in range(min(rows, 3)):
        single = solver.minimise(g.rows(slice(i, i + 1)), feasible, 1).cost[0]
        must(
            (single - solution.cost[i]).abs() <= slack[i],
            f"row {i} costs {float(single):g} by itself, {float(solution.cost[i]):g} in a batch.",
        )
