"""Decisions by one thread and by two, and row by row and in a batch, agree to a stated tolerance.

The same fit and seed on one and on two threads may round sums otherwise. A row decided alone may
differ from the same row in a batch by the rounding of matrix products. Both are measured as the
difference of expected costs, a share of their mean, and of actions, a share of the set's width.
"""

import sys

import numpy as np
import torch
from campaign import Campaign, main

import costscape as cs

COST = 1e-3  # of the mean expected cost: what a decision by other threads may cost more
FLAT = 0.1  # of the width: actions where the cost is flat
ROWS = 10


def tasks():
    def terms(y, a):
        return 3 * (y - a).relu() + (a - y).relu()

    box, budget = cs.Box(0.0, 4.0, dim=2), cs.Budget(total=4.0, dim=2)
    return {
        "box": cs.SeparableTask(terms, box, convex=True),
        "budget": cs.SeparableTask(terms, budget, convex=True),
        "joint": cs.Task(
            lambda y, a: ((y - a) ** 2).sum(-1) + 0.1 * a.prod(-1), cs.Budget(total=4.0, dim=2)
        ),
    }


def methods(task):
    brief = cs.Training(epochs=2, progress=False, device="cpu")
    return {
        "NearestNeighbours": cs.NearestNeighbours(task, k=9),
        "TwoStage": cs.TwoStage(task, cs.Point(), training=brief),
        "DF2": cs.DF2.quick(task, training=brief),
    }


def fitted(method, x, y, threads):
    torch.set_num_threads(threads)
    try:
        model = method.fit(x, y)
        return model, model.decide(x[:ROWS])
    finally:
        torch.set_num_threads(1)


def run(few=0):
    found = Campaign(__file__, f"other threads or batches change costs by at most {COST:g}")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(100, 3)).astype(np.float32)
    y = (2 + 0.5 * x[:, :2] + 0.3 * rng.normal(size=(100, 2))).astype(np.float32)
    worst = {"cost, threads": 0.0, "cost, rows": 0.0, "action, threads": 0.0, "action, rows": 0.0}
    for label, task in tasks().items():
        for name, method in list(methods(task).items())[: few or None]:
            _, two = fitted(method, x, y, 2)
            model, one = fitted(method, x, y, 1)
            _, again = fitted(method, x, y, 1)
            alone = np.concatenate([model.decide(x[i : i + 1]) for i in range(ROWS)])
            found.case(np.array_equal(one, again), f"{label}, {name}: one thread, other bits")
            base = model.expected_cost(x[:ROWS], one)
            for kind, other in (("threads", two), ("rows", alone)):
                cost = model.expected_cost(x[:ROWS], other)
                more = float(np.abs(cost - base).max() / np.abs(base).mean())
                moved = float(np.abs(other - one).max() / 4)
                worst[f"cost, {kind}"] = max(worst[f"cost, {kind}"], more)
                worst[f"action, {kind}"] = max(worst[f"action, {kind}"], moved)
                words = f"{label}, {name}, {kind}: costs {more:.2g}, actions {moved:.2g}"
                found.case(more <= COST and moved <= FLAT, words)
    found.notes = {"worst": {key: float(f"{value:.2g}") for key, value in worst.items()}}
    return found


if __name__ == "__main__":
    sys.exit(main(run, __doc__, few=0))
