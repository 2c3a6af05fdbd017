"""How long do decisions on coupled sets take, beside cvxpy with Clarabel and scipy?

1. A budget for 7 products, S = 100 outcomes of each x: one row, and 1,000 rows.
2. Ramps over 24 hours: rows whose limits bind, and rows whose limits do not.
3. Five random rows over 7 products.

Rivals solve a few of the same rows; their costs and ours are compared. Processor seconds of one
thread, after a first call.

python benchmarks/bench_coupled.py
"""

from functools import partial

import numpy as np
import torch
from common import at_most, least, once, reported, show

import costscape as cs

POINTS, MANY, SOME = 100, 1000, 3


def terms(y, a):
    return 20 * (y - a).relu() + 5 * (a - y).relu() + (y - a) ** 2


def instances(c, rows):
    rng = torch.Generator().manual_seed(0)
    values = 3 * torch.rand(rows, POINTS, c.dim, generator=rng)
    weights = (2 * torch.randn(rows, POINTS, generator=rng)).softmax(-1)
    return cs.ExpectedCost(cs.SeparableTask(terms, c, convex=True), cs.Scenarios(weights, values))


def ramps(hours, limit):
    up = torch.eye(hours)[1:] - torch.eye(hours)[:-1]
    G = torch.cat([up, -up, torch.eye(hours), -torch.eye(hours)])
    h = torch.cat([limit * torch.ones(2 * hours - 2), 3 * torch.ones(hours), torch.zeros(hours)])
    return cs.Polytope(G=G, h=h)


def several(rows, dim=7):
    rng = torch.Generator().manual_seed(1)
    shares = torch.rand(rows, dim, generator=rng)
    G = torch.cat([shares, torch.eye(dim), -torch.eye(dim)])
    h = torch.cat([0.9 * shares.sum(1), 3 * torch.ones(dim), torch.zeros(dim)])
    return cs.Polytope(G=G, h=h)


def solve(g):
    return cs.Auto().minimise(g, g.task.feasible, len(g))


def by_cvxpy(g, b):
    import cvxpy as cp

    a, y = cp.Variable((1, g.task.feasible.dim)), g.scenarios.values[b].double().numpy()
    off = y - np.ones((POINTS, 1)) @ a
    cost = cp.sum(20 * cp.pos(off) + 5 * cp.pos(-off) + cp.square(off), axis=1)
    rows = g.task.feasible.describe(cp.reshape(a, (-1,), "C"))
    problem = cp.Problem(cp.Minimize(g.scenarios.weights[b].double().numpy() @ cost), rows)
    return problem.solve(solver="CLARABEL")


def by_scipy(g, b):
    from scipy.optimize import LinearConstraint, minimize

    y, w = (v[b].double().numpy() for v in (g.scenarios.values, g.scenarios.weights))
    rows = g.task.feasible.rows()
    limits = LinearConstraint(rows.G.double().numpy(), ub=rows.h.double().numpy())

    def cost(a):
        off = y - a
        value = 20 * off.clip(0) + 5 * (-off).clip(0) + off**2
        return w @ value.sum(1), w @ (np.where(off > 0, -20.0, 5.0) - 2 * off)

    start = g.task.feasible.project(torch.zeros(g.task.feasible.dim)).double().numpy()
    return minimize(cost, start, jac=True, method="SLSQP", constraints=limits).fun


def compared(name, c, rows, one_goal, row_goal):
    g = instances(c, rows)
    one = 1e3 * least(partial(solve, g.rows(slice(0, 1))), 3)
    each = 1e3 * least(partial(solve, g), 1) / rows
    ours = solve(g).cost[:SOME].double().numpy()
    found = [
        at_most(f"decide one, {name}", one, one_goal, "ms"),
        at_most(f"decide {rows}, {name}: a row", each, row_goal, "ms"),
    ]
    for rival, call in (("cvxpy and Clarabel", by_cvxpy), ("scipy's SLSQP", by_scipy)):
        taken, theirs = once(lambda call=call: np.array([call(g, b) for b in range(SOME)]))
        more = float(((ours - theirs) / np.abs(theirs)).max())
        ms = 1e3 * taken / SOME
        note = f"{ms:.0f} and {each:.2g} ms a row, from {SOME}; our cost at most {more:.1e} above"
        found.append(reported(f"decide, {name}, against {rival}", ms / each, note=note))
    return found


def results():
    torch.set_num_threads(1)
    return [
        *compared("a shared capacity", cs.Budget(total=6.0, dim=7), MANY, 2, 1),
        *compared("ramps that bind", ramps(24, 0.3), 100, 5, 5),
        *compared("ramps that do not bind", ramps(24, 2.9), 100, 5, 5),
        *compared("five rows", several(5), 100, 50, 5),
    ]


if __name__ == "__main__":
    print(show(results()))
