"""How long does an update for 1 % new rows take, beside a full fit?

A newsvendor with three products and five features, 2,000 rows and 20 new ones. The goal is a tenth
of a full fit for each method that trains or grows; neighbours append their rows, and the time is
that of the comparison on held-out rows. The same update on a series whose level moves says what
updates are worth: five batches of 100 rows, then 2,000 test rows at the last level. Seconds of one
thread.

python benchmarks/bench_update.py
"""

import time
import warnings
from functools import partial

import numpy as np
import torch
from common import at_most, reported, show

import costscape as cs

ROWS, NEW, BATCHES, BATCH, TEST = 2000, 20, 5, 100, 2000
TASK = cs.SeparableTask(
    lambda y, a: 4 * (y - a).relu() + (a - y).relu(), cs.Box(0.0, 12.0, dim=3), convex=True
)
QUIET = cs.Training(progress=False)
METHODS = {
    "DF2.quick": partial(cs.DF2.quick, TASK, training=QUIET),
    "DF2": partial(cs.DF2, TASK, training=QUIET),
    "TwoStage": partial(cs.TwoStage, TASK, training=QUIET),
    "RandomForest": partial(cs.RandomForest, TASK),
    "NearestNeighbours": partial(cs.NearestNeighbours, TASK),
}


def rows(n, seed, shift=0.0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 5))
    return x, np.abs(3 + shift + x[:, :3] + rng.normal(size=(n, 3)))


def results():
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # a fit whose last epoch was the best
    cs.NearestNeighbours(TASK).fit(*rows(100, 8)).update(*rows(20, 9))  # imports are not timed
    found = []
    for name, make in METHODS.items():
        model = make()
        begin = time.perf_counter()
        model.fit(*rows(ROWS, seed=0))
        full = time.perf_counter() - begin
        done = model.update(*rows(NEW, seed=1))
        note = f"{done.seconds:.2f} of {full:.1f} s; {'updated' if done.updated else 'old stays'}"
        goal = partial(at_most, goal=0.1) if name != "NearestNeighbours" else reported
        title = f"update {name} for 1 % new rows, over a full fit"
        found.append(goal(title, done.seconds / full, unit="times", note=note))
        test = rows(TEST, seed=2, shift=1.0)
        before = cs.evaluate(model, *test).cost
        steps = [rows(BATCH, 10 + i, (i + 1) / BATCHES) for i in range(BATCHES)]
        kept = sum(model.update(*step).updated for step in steps)
        after = cs.evaluate(model, *test).cost
        note = f"{before:.2f} to {after:.2f}; {kept} of {BATCHES} updates"
        title = f"cost of {name} after a drift, updated over not"
        found.append(reported(title, after / before, note=note))
    return found


if __name__ == "__main__":
    print(show(results()))
