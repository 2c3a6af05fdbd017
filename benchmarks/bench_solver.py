"""How much faster is the exact separable solver than 500 steps of projected Adam, at what g?

1,000 instances, half of them convex and half not, S = 200 shared outcomes, two variables. One
thread, both in one process, the least of three repeats for the exact one. "worse" counts the
instances on which the exact solver's g is above Adam's by more than 1e-5 of its size.

python benchmarks/bench_solver.py
"""

import time

import torch

from costscape import ExpectedCost, ProjectedAdam, Scenarios, Separable
from costscape.tasks import synthetic_convex, synthetic_nonconvex

INSTANCES, POINTS = 1000, 200


def timed(solver, g, repeats):
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        found = solver.minimise(g, g.task.feasible, len(g))
        times.append(time.perf_counter() - start)
    return found.cost, min(times)


def main():
    torch.set_num_threads(1)
    rng = torch.Generator().manual_seed(0)
    totals = {"exact": 0.0, "adam": 0.0}
    worse = 0
    for task in (synthetic_convex(), synthetic_nonconvex()):
        weights = (3 * torch.randn(INSTANCES // 2, POINTS, generator=rng)).softmax(-1)
        values = torch.randn(1, POINTS, 2, generator=rng)
        g = ExpectedCost(task, Scenarios(weights, values))
        exact, seconds = timed(Separable(), g, repeats=3)
        totals["exact"] += seconds
        adam, seconds = timed(ProjectedAdam(steps=500, starts=1), g, repeats=1)
        totals["adam"] += seconds
        worse += int((exact > adam + 1e-5 * adam.abs()).sum())
    print(f"projected Adam, 500 steps  {totals['adam']:8.2f} s for {INSTANCES} instances")
    print(f"exact separable            {totals['exact']:8.2f} s")
    ratio = totals["adam"] / totals["exact"]
    print(
        f"ratio                      {ratio:8.0f}   goal 20   {'met' if ratio >= 20 else 'missed'}"
    )
    print(f"worse                      {worse:8d}   goal 0    {'met' if worse == 0 else 'missed'}")


if __name__ == "__main__":
    main()
