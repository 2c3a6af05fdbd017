"""How long does a user wait for a first model, with DF2.quick and with DF2's defaults?

Two problems, their data generated with a fixed seed:

    week     the ten lines of the README: 500 rows, 5 features, 7 days,
             f(y, a) = sum_i 20 (y_i - a_i)+ + 5 (a_i - y_i)+ + (y_i - a_i)^2 on [0, 3]^7,
             as a plain Task, which does not say that the cost is a sum over days
    budget   a cost that is no sum over products: 2,000 rows, 3 features, 4 products,
             f(y, a) = sum_i 8 (y_i - a_i)+ + 2 (a_i - y_i)+ + 0.5 (sum_i y_i - sum_i a_i)^2,
             a >= 0 with sum_i a_i <= 6

Processor seconds of one thread, a single fit each. A first fit of one epoch is not timed: it
loads what torch loads at first use.

python benchmarks/bench_first_try.py
"""

from functools import partial

import torch
from common import at_most, once, show

import costscape as cs

GOALS = {"week": (10, 90), "budget": (20, 180)}  # seconds of DF2.quick and of DF2


def week(rows=500, features=5, days=7):
    rng = torch.Generator().manual_seed(0)
    x = torch.rand(rows, features, generator=rng)
    y = 0.5 + x.mean(1, keepdim=True) + 0.3 * torch.randn(rows, days, generator=rng).abs()

    def cost(y, a):
        short, spare = (y - a).clamp(min=0), (a - y).clamp(min=0)
        return (20 * short + 5 * spare + (y - a) ** 2).sum(-1)

    return cs.Task(cost, cs.Box(0.0, 3.0, dim=days)), x, y


def budget(rows=2000, features=3, products=4):
    rng = torch.Generator().manual_seed(0)
    x = torch.rand(rows, features, generator=rng)
    mean = 0.5 + 2 * x @ torch.rand(features, products, generator=rng)
    y = mean * (0.5 + torch.rand(rows, products, generator=rng))

    def cost(y, a):
        short, spare = (y - a).clamp(min=0), (a - y).clamp(min=0)
        return (8 * short + 2 * spare).sum(-1) + 0.5 * (y.sum(-1) - a.sum(-1)) ** 2

    return cs.Task(cost, cs.Budget(total=6.0, dim=products)), x, y


PROBLEMS = {"week": week, "budget": budget}


def results(problems=PROBLEMS, **training):
    """``training``: settings of the fits; a test takes few epochs."""
    torch.set_num_threads(1)
    settings = {"progress": False, "device": "cpu", **training}
    found = []
    for name, make in problems.items():
        task, x, y = make()
        cs.DF2.quick(task, training=cs.Training(**{**settings, "epochs": 1})).fit(x, y)
        methods = {
            "DF2.quick": cs.DF2.quick(task, training=cs.Training(**settings)),
            "DF2": cs.DF2(task, training=cs.Training(**settings)),
        }
        for (word, method), goal in zip(methods.items(), GOALS[name], strict=True):
            seconds, _ = once(partial(method.fit, x, y))
            note = f"{len(x):,} rows, {task.feasible.dim} decisions"
            found.append(at_most(f"first try, {name}: {word}.fit", seconds, goal, "s", note))
    return found


if __name__ == "__main__":
    print(show(results()))
