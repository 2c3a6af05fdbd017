"""How long do forest weights take, fit and decide, beside scikit-learn and scipy put together?

The convex synthetic problem, 200 trees with at least 20 rows in a leaf. The rival grows the same
forest, counts shared leaves tree by tree in numpy, and minimises each weighted cost by scipy's
L-BFGS-B with its slope by hand; a few decisions are timed and scaled up. Both sides grow the
forest by scikit-learn, so fitting differs only in what is laid out for deciding. DF2 decides the
same rows from 500 outcomes, where the forest weighs all 3,500. Processor seconds of one thread. No
goal was set for this one.

python benchmarks/bench_forest.py
"""

from functools import partial

import numpy as np
import torch
from common import middle, once, reported, show
from scipy.optimize import Bounds, minimize
from sklearn.ensemble import RandomForestRegressor

from costscape import DF2, Absolute, RandomForest, Training
from costscape.bench import PROBLEMS

TREES, LEAF, DECIDED, SOME = 200, 20, 500, 20


def weights(forest, leaves, x):
    """(n, rows): the mean over trees of 1[same leaf] / rows in it."""
    w = np.zeros((len(x), len(leaves)))
    for mine, theirs in zip(forest.apply(x).T, leaves.T, strict=True):
        same = mine[:, None] == theirs
        w += same / same.sum(1, keepdims=True)
    return w / leaves.shape[1]


def cost_and_slope(a, w, y):
    """The cost of synthetic-convex."""
    short, spare = np.maximum(y - a, 0), np.maximum(a - y, 0)
    cost = 5 * short + 20 * spare + 0.5 * short**2 + 0.2 * spare**2
    slope = np.where(y > a, -5 - short, 20 + 0.4 * spare)
    return w @ cost.sum(1), w @ slope


def decide(forest, leaves, x, y, box):
    lower, upper = (end.double().numpy() for end in box.bounds)
    found = []
    for w in weights(forest, leaves, x):
        near = w > 0
        start = w @ y
        answer = minimize(
            cost_and_slope,
            start.clip(lower, upper),
            args=(w[near], y[near]),
            jac=True,
            bounds=Bounds(lower, upper),
            method="L-BFGS-B",
        )
        found.append(answer.x)
    return np.stack(found)


def results():
    torch.set_num_threads(1)
    problem = PROBLEMS["synthetic-convex"](0)
    train, task = problem.data.train, problem.task
    x, y = train.x.numpy(), train.y.double().numpy()
    new = problem.data.test.x[:DECIDED]
    forest = RandomForestRegressor(TREES, min_samples_leaf=LEAF, random_state=0, n_jobs=1)
    theirs_fit, leaves = once(lambda: forest.fit(x, y).apply(x))
    method = RandomForest(task, trees=TREES, min_leaf=LEAF)
    val = (train.x[:8], train.y[:8])
    ours_fit, _ = once(lambda: method.fit(train.x, train.y, val=val))
    few = new[:SOME]
    plainly = partial(decide, forest, leaves, few.numpy(), y, task.feasible)
    theirs = middle(plainly, 1) / SOME * DECIDED
    ours = middle(partial(method.decide, new), 3)
    training = Training(epochs=1, progress=False, device="cpu")
    settings = {"points": 500, "outcomes": Absolute(), "folds": 1}
    net = DF2(task, training=training, **settings)
    net.fit(train.x, train.y, val=val)
    by_df2 = middle(partial(net.decide, new), 3)
    g = method.surface(few)
    rival = torch.from_numpy(plainly()).float()
    more = float((g(method.decide(few)[:, None]) / g(rival[:, None])).max()) - 1
    name = f"decide {DECIDED} by forest weights"
    note = f"{theirs:.1f} and {ours:.2f} s, from {SOME}; our g at most {max(more, 0):.1e} above"
    return [
        reported(
            "fit a forest, scikit-learn over costscape",
            theirs_fit / ours_fit,
            note=f"{theirs_fit:.2f} and {ours_fit:.2f} s",
        ),
        reported(f"{name}, scikit-learn and scipy over costscape", theirs / ours, note=note),
        reported(f"{name}, over DF2", ours / by_df2, note=f"{ours:.2f} and {by_df2:.3f} s"),
    ]


if __name__ == "__main__":
    print(show(results()))
