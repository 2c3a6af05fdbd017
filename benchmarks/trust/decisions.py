"""Decisions of random problems lie in their sets, by numpy and the definitions alone.

Every kind of set, every kind of cost, one or two precisions, units from 1e-8 to 1e8.
"""

import sys
import warnings

import numpy as np
import torch
from campaign import Campaign, main
from random_problems import KINDS, random_problem

import costscape as cs

ROWS = 500  # decisions of one problem
OFF = {torch.float32: 1e-5, torch.float64: 1e-9}  # of the size, put down to rounding


def run(n=2000, seed=0, rows=ROWS, minutes=0.0):
    found = Campaign(__file__, "every decision is finite and in its set (by numpy)", minutes)
    rng = np.random.default_rng(seed)
    worst, k = 0.0, 0
    while found.count < n and not found.late:
        name, cost, apart = KINDS[int(rng.integers(len(KINDS)))]
        dtype = (torch.float32, torch.float64)[int(rng.integers(2))]
        u, money = 10.0 ** rng.integers(-8, 9, 2)
        words = f"{name}, {cost}, {'sum' if apart else 'joint'}, {dtype}, {u:g}, {money:g}, {k}"
        batch, k = min(rows, n - found.count), k + 1
        try:
            g, C, definition = random_problem(name, cost, apart, rng, u, money, dtype, batch)
            with warnings.catch_warnings():
                warnings.simplefilter("error", RuntimeWarning)
                a = cs.Auto().minimise(g, C, batch).action.double().numpy()
        except Exception as error:
            found.case(False, f"{words}: {type(error).__name__}: {error}", batch, batch)
            continue
        share = definition.broken(a) / OFF[dtype]
        bad = int((~(share <= 1)).sum())
        worst = max(worst, float(np.nanmax(share)))
        found.case(bad == 0, f"{words}: {share.max():.3g} of the tolerance", batch, bad)
    found.notes = {"problems": k, "worst share of the tolerance": round(worst, 4)}
    return found


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(main(run, __doc__, n=2000, seed=0, rows=ROWS, minutes=0.0))
