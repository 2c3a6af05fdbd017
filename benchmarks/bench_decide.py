"""How long does it take to decide, and what is it to be compared with?

Four questions, one thread, all times of one process (processor time, so that neighbours on the
machine count less), each the median of several calls after a first one:

1. 1,000 instances, half of them convex and half not, S = 200 shared outcomes, two variables:
   the exact separable solver, 500 steps of projected Adam, and at what g. "worse" counts the
   instances on which the exact solver's g is above Adam's by more than 1e-5 of its size.
2. The convex half by cvxpy, one program for each instance: a few are timed, and scaled up.
3. One instance of wind bidding (LSTM of 2 x 256, S = 500, 12 hours): the encoder, the solver, and
   the slowest of 200 calls.
4. S = 100,000 outcomes over S = 1,000, for weights with a peak and for flat ones.

python benchmarks/bench_decide.py [adam cvxpy one many]
"""

import statistics
import sys
import time
from functools import partial

import torch

from costscape import DF2, Convex, ExpectedCost, ProjectedAdam, Scenarios, Separable, Training
from costscape.models import LSTM, Absolute
from costscape.tasks import synthetic_convex, synthetic_nonconvex, wind_bidding

INSTANCES, POINTS = 1000, 200


def times(call, repeats, clock=time.process_time):
    call()
    taken = []
    for _ in range(repeats):
        start = clock()
        call()
        taken.append(clock() - start)
    return taken


def instances(task, rng, rows=INSTANCES // 2, points=POINTS, sharp=3.0):
    weights = (sharp * torch.randn(rows, points, generator=rng)).softmax(-1)
    values = torch.randn(1, points, task.feasible.dim, generator=rng)
    return ExpectedCost(task, Scenarios(weights, values))


def solve(g, solver=None):
    return (solver or Separable()).minimise(g, g.task.feasible, len(g))


def line(name, value, goal=None, met=None):
    verdict = "" if goal is None else f"   goal {goal:<8} {'met' if met else 'missed'}"
    print(f"{name:46}{value:>12}{verdict}")


def against_adam():
    rng = torch.Generator().manual_seed(0)
    exact = adam = 0.0
    worse = 0
    for task in (synthetic_convex(), synthetic_nonconvex()):
        g = instances(task, rng)
        exact += statistics.median(times(lambda g=g: solve(g), 15))
        start = time.process_time()
        other = solve(g, ProjectedAdam(steps=500, starts=1)).cost
        adam += time.process_time() - start
        worse += int((solve(g).cost > other + 1e-5 * other.abs()).sum())
    line("projected Adam, 500 steps, 1,000 instances", f"{adam:.2f} s")
    line("exact separable", f"{1e3 * exact:.1f} ms")
    line("ratio", f"{adam / exact:.0f}", ">= 100", adam / exact >= 100)
    line("worse", worse, "0", worse == 0)


def against_cvxpy(some=20):
    g = instances(synthetic_convex(), torch.Generator().manual_seed(0))
    exact = statistics.median(times(lambda: solve(g), 15)) / len(g)
    few = g.rows(slice(0, some))
    program = statistics.median(times(lambda: solve(few, Convex()), 3)) / some
    apart = statistics.median(
        times(lambda: [solve(g.rows(slice(i, i + 1)), Convex()) for i in range(some)], 1)
    )
    line("exact separable, convex half, one instance", f"{1e6 * exact:.0f} us")
    line(f"cvxpy, compiled once ({some} timed, scaled)", f"{1e3 * program:.1f} ms")
    line("ratio", f"{program / exact:.0f}")
    line("cvxpy, a program for each (timed, scaled)", f"{1e3 * apart / some:.1f} ms")
    line("ratio", f"{apart / some / exact:.0f}", ">= 1000", apart / some / exact >= 1000)


def one_instance(calls=200):
    rng = torch.Generator().manual_seed(0)
    x = torch.randn(600, 24, 1, generator=rng).cumsum(1) / 5
    y = (x[:, -1] + torch.randn(600, 12, generator=rng).cumsum(1) / 3).abs()
    one = x[:1]
    for members in (1, 3):
        method = DF2(
            wind_bidding(),
            encoder=partial(LSTM, hidden=256),
            points=500,
            outcomes=Absolute(),
            members=members,
            training=Training(epochs=1, progress=False),
        ).fit(x, y)
        with torch.no_grad():
            encoder = times(lambda m=method: m.model_(one), calls)
            g = method.surface(one)
            solver = times(lambda g=g: solve(g), calls)
        whole = times(lambda m=method: m.decide(one), calls, time.perf_counter)
        e, s, w = (statistics.median(t) for t in (encoder, solver, whole))
        slowest = sorted(whole)[int(0.99 * calls)]
        print(f"-- wind, {members} network(s) of 500 outcomes")
        line("encoder, median", f"{1e3 * e:.2f} ms")
        line("solver, median", f"{1e3 * s:.2f} ms", "<= encoder", s <= e)
        line("decide, median on the clock", f"{1e3 * w:.2f} ms")
        line("99th of 100 over the median", f"{slowest / w:.1f}", "<= 3", slowest <= 3 * w)


def many_points():
    for name, sharp in (("peaked", 20.0), ("broad", 8.0), ("flat", 0.5)):
        for rows in (1, 100):
            rng = torch.Generator().manual_seed(0)
            taken = {}
            for points in (1000, 100_000):
                g = instances(synthetic_nonconvex(), rng, rows, points, sharp)
                repeats = 5 if name == "peaked" else 1
                kept = g.scenarios.pruned(Separable().prune).weights.shape[1]
                taken[points] = statistics.median(times(lambda g=g: solve(g), repeats))
            ratio = taken[100_000] / taken[1000]
            print(f"-- {name} weights, {rows} instance(s)")
            line("S = 1,000", f"{1e3 * taken[1000]:.1f} ms")
            line("outcomes kept of 100,000", kept)
            line("S = 100,000", f"{1e3 * taken[100_000]:.1f} ms")
            line("ratio", f"{ratio:.1f}", "<= 10", ratio <= 10)


PARTS = {
    "adam": against_adam,
    "cvxpy": against_cvxpy,
    "one": one_instance,
    "many": many_points,
}

if __name__ == "__main__":
    torch.set_num_threads(1)
    for part in sys.argv[1:] or PARTS:
        print(f"== {part}")
        PARTS[part]()
