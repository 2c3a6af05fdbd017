"""Units and constants change no decision: every solver and set against its answer at 1.

The cost of the decision in other units, computed in double precision and in the units of 1, is
compared with that at 1, as a share of the spread of the cost over the set.
"""

import sys
import warnings

import numpy as np
import torch
from campaign import Campaign, main
from random_problems import SETS

import costscape as cs

MISS = 1e-3
MONEY = (1e-8, 1e-4, 1e4, 1e8)
UNITS = (1e-6, 1e-3, 1e3, 1e6)
CONSTANTS = (1e6, -1e6)  # beside costs of about 1, in double precision
ROWS, OUTCOMES = 3, 6

SOLVERS = {
    "Auto, sum": (cs.Auto(), True, False),
    "Auto, joint": (cs.Auto(), False, False),
    "Convex": (cs.Convex(), False, True),
    "ProjectedAdam": (cs.ProjectedAdam(), False, False),
    "FrankWolfe": (cs.FrankWolfe(), False, False),
    "MirrorDescent": (cs.MirrorDescent(), False, False),
}


def problem(name, apart, program, u, money, constant, dtype):
    """g of a smooth convex cost in units of u and money; the same random numbers for all."""
    rng = np.random.default_rng(5)
    make, _ = SETS[name](rng, 3, u)
    C = make(lambda v: torch.tensor(v, dtype=dtype))
    y, w = rng.uniform(-1, 2, (ROWS, OUTCOMES, C.dim)), rng.dirichlet(np.ones(OUTCOMES), ROWS)

    def terms(y, a):
        return money * (((y - a) / u) ** 2 + 2 * (y - a).relu() / u) + constant / C.dim

    def written(y, a):
        import cvxpy as cp

        away = (y - np.ones((len(y), 1)) @ a) / u
        return money * cp.sum(cp.square(away) + 2 * cp.pos(away), axis=1) + constant

    if apart:
        task = cs.SeparableTask(terms, C, convex=True)
    else:
        task = cs.Task(
            lambda y, a: terms(y, a).sum(-1), C, convex=True, cvxpy=written if program else None
        )
    given = cs.Scenarios(*(torch.tensor(v, dtype=dtype) for v in (w, u * y)), own=True)
    return cs.ExpectedCost(task, given), C, (w, y)


def paid(w, y, a):
    away = y - a[:, None]
    return (w * (away**2 + 2 * np.maximum(away, 0)).sum(-1)).sum(-1)


def decided(solver, name, apart, program, u, money, constant, dtype):
    g, C, numbers = problem(name, apart, program, u, money, constant, dtype)
    if (reason := solver.refuses(g, C)) is not None:
        return reason
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        a = solver.minimise(g, C, ROWS).action.double().numpy() / u
    some = C.sample(200, torch.Generator().manual_seed(0)).double().numpy() / u
    spread = np.ptp([paid(*numbers, np.tile(v, (ROWS, 1))) for v in some], axis=0)
    return paid(*numbers, a), spread


def run(few=0):
    found = Campaign(__file__, f"cost in other units within {MISS:g} of the spread of that at 1")
    double, single = torch.float64, torch.float32
    changes = [(u, 1.0, 0.0, t) for u in UNITS for t in (double, single)]
    changes += [(1.0, m, 0.0, t) for m in MONEY for t in (double, single)]
    changes += [(1e6, 1e-8, 0.0, single), (1e-6, 1e8, 0.0, single)]
    changes += [(1.0, 1.0, c, double) for c in CONSTANTS]
    changes = changes[:: max(1, len(changes) // few)] if few else changes
    worst = {}
    for label, (solver, apart, program) in SOLVERS.items():
        for name in list(SETS)[:: 3 if few else 1]:
            at_one = decided(solver, name, apart, program, 1.0, 1.0, 0.0, double)
            if isinstance(at_one, str):
                continue
            for u, money, constant, dtype in changes:
                words = f"{label} on {name}, units {u:g}, money {money:g}, {constant:g}, {dtype}"
                try:
                    there = decided(solver, name, apart, program, u, money, constant, dtype)
                except Exception as error:
                    found.case(False, f"{words}: {type(error).__name__}: {error}")
                    continue
                spread = np.maximum(at_one[1], 1e-9)
                miss = float(((there[0] - at_one[0]) / spread).max())
                worst[label] = max(worst.get(label, 0.0), miss)
                found.case(miss <= MISS, f"{words}: {miss:.3g}")
    found.notes = {"worst": {key: float(f"{value:.2g}") for key, value in worst.items()}}
    return found


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(main(run, __doc__, few=0))
