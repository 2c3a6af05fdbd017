"""How long does it take to decide, and what is it to be compared with?

1. 1,000 instances, half of them convex and half not, S = 200 shared outcomes, two variables: the
   exact separable solver against 500 steps of projected Adam, and at what g. An instance counts as
   worse where the exact solver's g is above the other's by more than 1e-5 of its size.
2. The convex half against cvxpy (a program for each instance, and one program compiled for all)
   and against scipy's L-BFGS-B from the middle of the box: a few are timed, and scaled up.
3. One instance of wind bidding (LSTM of 2 x 256, S = 500, 12 hours): the encoder, the solver, and
   the third slowest of 200 calls. Between the calls a matrix product of about the same length is
   timed, which calls nothing of this library: its slow calls are the machine's.
4. S = 100,000 outcomes over S = 1,000, for weights with a peak and for flat ones, and what a
   decision costs beyond that of all outcomes, beside the stated bound.
5. 100,000 rows decided by the default DF2 of README's size (500 rows, 5 features, 7 coordinates,
   short fits), and by the same with four more networks whose outcomes all x share: processor
   seconds of one thread, scaled up from some rows, and the largest memory of the process. Two
   cores have 120 such seconds in a minute.

Processor seconds of one thread, the median of several calls after a first one. A virtual machine
counts as a process's own what its host takes away.

python benchmarks/bench_decide.py [adam cvxpy one many rows]
"""

import sys
from copy import deepcopy
from functools import partial
from resource import RUSAGE_SELF, getrusage
from statistics import median

import torch
from common import Result, at_least, at_most, least, machine, middle, once, reported, show

from costscape import DF2, Convex, ExpectedCost, ProjectedAdam, Scenarios, Separable, Training
from costscape.methods.ensemble import Blended
from costscape.models import LSTM, Absolute
from costscape.problems import inventory, synthetic_convex, synthetic_nonconvex, wind_bidding

INSTANCES, POINTS = 1000, 200
SHAPES = {"a peak": 20.0, "no peak": 0.5}  # spread of the logarithms of the weights


def instances(task, rng, rows=INSTANCES // 2, points=POINTS, sharp=3.0):
    weights = (sharp * torch.randn(rows, points, generator=rng)).softmax(-1)
    values = torch.randn(1, points, task.feasible.dim, generator=rng)
    return ExpectedCost(task, Scenarios(weights, values))


def solve(g, solver=None):
    return (solver or Separable()).minimise(g, g.task.feasible, len(g))


def worse(ours, theirs):
    """On how many instances."""
    return int((ours > theirs + 1e-5 * theirs.abs()).sum())


def against_adam():
    rng = torch.Generator().manual_seed(0)
    exact = adam = 0.0
    count = 0
    for task in (synthetic_convex(), synthetic_nonconvex()):
        g = instances(task, rng)
        exact += middle(partial(solve, g), 15)
        taken, other = once(partial(solve, g, ProjectedAdam(steps=500, starts=1)))
        adam += taken
        count += worse(solve(g).cost, other.cost)
    note = f"{adam:.2f} s and {1e3 * exact:.1f} ms"
    name = "decide 1,000, separable cost, against 500 steps of projected Adam"
    return [
        at_least(name, adam / exact, 100, note=note),
        at_most("instances decided worse than by Adam", count, 0, "of 1,000"),
    ]


def against_programs(some=20):
    g = instances(synthetic_convex(), torch.Generator().manual_seed(0))
    exact = middle(partial(solve, g), 15) / len(g)
    few = g.rows(slice(0, some))
    each = [g.rows(slice(i, i + 1)) for i in range(some)]
    together = middle(partial(solve, few, Convex()), 3) / some
    apart = middle(lambda: [solve(one, Convex()) for one in each], 1) / some
    scipy = middle(lambda: [by_scipy(one) for one in each], 1)
    costs = torch.tensor([by_scipy(one) for one in each])
    note = f"{{:.1f}} ms and {1e6 * exact:.0f} us an instance, from {some}".format
    count = worse(solve(few).cost, costs)
    return [
        at_least(
            "decide, convex cost, against a cvxpy loop",
            apart / exact,
            1000,
            note=note(1e3 * apart),
        ),
        reported(
            "decide, convex cost, against one cvxpy program compiled for all",
            together / exact,
            note=note(1e3 * together),
        ),
        reported(
            "decide, convex cost, against scipy's L-BFGS-B",
            scipy / some / exact,
            note=note(1e3 * scipy / some) + f"; worse than scipy on {count}",
        ),
    ]


def by_scipy(g):
    """The least g that scipy finds; gradients by torch."""
    from scipy.optimize import Bounds, minimize

    lower, upper = (end.double().numpy() for end in g.task.feasible.bounds)

    def value(a):
        at = torch.tensor(a, dtype=torch.float32, requires_grad=True)
        cost = g(at[None, None])[0, 0]
        (slope,) = torch.autograd.grad(cost, at)
        return float(cost.detach()), slope.double().numpy()

    middle_of = (lower + upper) / 2
    return minimize(value, middle_of, jac=True, bounds=Bounds(lower, upper), method="L-BFGS-B").fun


def one_instance(calls=200):
    rng = torch.Generator().manual_seed(0)
    x = torch.randn(600, 24, 1, generator=rng).cumsum(1) / 5
    y = (x[:, -1] + torch.randn(600, 12, generator=rng).cumsum(1) / 3).abs()
    one = x[:1]
    found = []
    for folds in (1, 4):
        method = DF2(
            wind_bidding(),
            encoder=partial(LSTM, hidden=256),
            points=500,
            outcomes=Absolute(),
            folds=folds,
            training=Training(epochs=1, progress=False, device="cpu"),
        ).fit(x, y)
        with torch.no_grad():
            surface = method.surface(one)
            encoder, solver = map(
                median, in_turn([partial(method.model_, one), partial(solve, surface)], calls)
            )
        length = encoder + solver
        whole, other = in_turn([partial(method.decide, one), product(length)], calls)
        slowest, slow = (sorted(taken)[int(0.99 * calls)] for taken in (whole, other))
        name = f"decide one, wind, {folds} network{'s' if folds > 1 else ''}"
        found += [
            reported(
                f"{name}: solver over encoder",
                solver / encoder,
                note=f"{1e3 * solver:.2f} and {1e3 * encoder:.2f} ms",
            ),
            at_most(
                f"{name}: 99th of 100 over the median",
                slowest / median(whole),
                3,
                "times",
                f"{1e3 * slowest:.2f} and {1e3 * median(whole):.2f} ms",
            ),
            reported(
                f"{name}: the same of a matrix product between the calls",
                slow / median(other),
                note=f"{1e3 * slow:.2f} and {1e3 * median(other):.2f} ms",
            ),
        ]
    return found


def in_turn(works, calls):
    """The seconds of each call of each, one after the other: all have the same neighbours."""
    taken = [[] for _ in works]
    for work in works:
        work()
    for _ in range(calls):
        for work, seconds in zip(works, taken, strict=True):
            seconds.append(once(work)[0])
    return taken


def product(seconds, n=384):
    """A product of matrices of 0.6 MB, again and again for about so long."""
    m = torch.ones(n, n)
    times_over = max(1, round(seconds / least(partial(torch.mm, m, m), 20)))
    return lambda: [torch.mm(m, m) for _ in range(times_over)]


def many_points():
    found = []
    for shape, sharp in SHAPES.items():
        rng = torch.Generator().manual_seed(0)
        task = synthetic_nonconvex()
        few = instances(task, rng, 1, 1000, sharp)
        many = instances(task, rng, 1, 100_000, sharp)
        short, long = map(median, in_turn([partial(solve, few), partial(solve, many)], 5))
        name = f"decide 1 with S = 100,000 over S = 1,000, weights with {shape}"
        note = f"{1e3 * long:.1f} and {1e3 * short:.1f} ms"
        found.append(reported(name, long / short, note=note))
        best = solve(many, Separable(prune=0.0))
        found.append(within_bound(name, many, best))
    return found


def within_bound(name, g, best):
    """g(a) - g(a of all outcomes), and the bound: prune times the spread of f."""
    a = solve(g)
    exact = ExpectedCost(deepcopy(g.task).double(), double(g.scenarios))
    both = torch.stack([a.action, best.action], 1).double()
    more = float(exact(both)[0] @ torch.tensor([1.0, -1.0], dtype=torch.float64))
    # both searches stop at cells 2^-20 of the box wide, where g is flat to single precision
    rounding = 2.0**-20 * float(exact(both).abs().max())
    bound = Separable().prune * spread(g) + rounding
    words = f"{more:.2g} more at most {bound:.2g}"
    return Result(
        f"{name}: its answer", "<= the stated bound", words, more <= bound, more, machine()
    )


def spread(g, actions=65):
    """The most that a move within C changes f of an outcome, summed over coordinates."""
    lower, upper = g.task.feasible.bounds
    a = lower + torch.linspace(0, 1, actions)[:, None] * (upper - lower)
    ends = [g.task.terms(g.scenarios.values, each.unsqueeze(1)) for each in a.split(1)]
    high, low = torch.cat(ends).amax(0), torch.cat(ends).amin(0)
    return float((high - low).amax(0).sum())


def double(s):
    return Scenarios(s.weights.double(), s.values.double())


def many_rows(some=5_000, rows=100_000):
    """For both blends: outcomes of each x come from 8 networks, or also from 4 that share them."""
    found = []
    for outcomes in (None, Absolute()):
        rng = torch.Generator().manual_seed(0)
        x = torch.rand(500, 5, generator=rng)
        y = 3 * torch.rand(500, 7, generator=rng) * x[:, :1] + x[:, 1:2]
        training = Training(epochs=3, progress=False, device="cpu")
        method = DF2(inventory(), training=training).fit(x, y)
        if outcomes is not None:
            shared = DF2(inventory(), outcomes=outcomes, training=training).fit(x, y)
            method.model_ = Blended([method.model_, shared.model_]).eval()
        new = torch.rand(some, 5, generator=rng)
        method.decide(new[:500])
        taken, _ = once(partial(method.decide, new))
        points = method.scenarios(new[:1]).weights.shape[1]
        name = f"decide {rows:,} rows, default DF2, {points:,} outcomes of each x"
        found.append(at_most(name, taken * rows / some, 120, note=f"from {some:,} rows"))
    return [*found, at_most("the same: memory", peak_mib(), 1024, "MiB")]


def peak_mib():
    return getrusage(RUSAGE_SELF).ru_maxrss / 1024


PARTS = {
    "adam": against_adam,
    "cvxpy": against_programs,
    "one": one_instance,
    "many": many_points,
    "rows": many_rows,
}


def results(parts=tuple(PARTS)):
    torch.set_num_threads(1)
    return [result for part in parts for result in PARTS[part]()]


if __name__ == "__main__":
    print(show(results(sys.argv[1:] or PARTS)))
