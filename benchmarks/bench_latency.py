"""What does a decision take, by set and solver, and how much memory?

Seven numbers are decided from 14 features by a `NearestNeighbours` model of 2,000 rows with 50
outcomes, so that the time is that of the solver. Each case has a process of its own. `one` is the
processor time of `decide` and `expected_cost` for one row, `batch` that of each of 64 rows, both
the median of some calls on one thread. Memory is the peak of the process after 64 rows, less that
before: what decisions add to torch and the model. Ratios are to the `Box` of the same run.

python benchmarks/bench_latency.py          # the table
python benchmarks/bench_latency.py box      # one case, as JSON
"""

import json
import subprocess
import sys
from pathlib import Path

import torch
from common import middle, reported

import costscape as cs
from costscape.bench.report import text_table

D, ROWS, BATCH, WHOLE = 7, 2_000, 64, 3.0


def terms(y, a):
    return 4 * (y - a).relu() + (a - y).relu()


def joint(y, a):
    """No sum over coordinates: the square of the total."""
    return terms(y, a).sum(-1) + 0.1 * a.sum(-1) ** 2


def apart(feasible):
    return cs.SeparableTask(terms, feasible, convex=True)


def together(feasible):
    return cs.Task(joint, feasible, convex=True)


def ramps():
    """Neighbouring coordinates differ by 0.5 at most, between 0 and 3."""
    steps = torch.eye(D)[1:] - torch.eye(D)[:-1]
    G = torch.cat([torch.eye(D), -torch.eye(D), steps, -steps])
    h = torch.cat([torch.full((D,), WHOLE), torch.zeros(D), torch.full((2 * D - 2,), 0.5)])
    return cs.Polytope(G=G, h=h)


def packs():
    """Multiples of 0.5."""
    return cs.Whole(cs.Box(0.0, WHOLE, dim=D), 0.5)


def listed():
    """200 actions."""
    return cs.Finite(WHOLE * torch.rand(200, D, generator=torch.Generator().manual_seed(0)))


CASES = {
    "box": ("Box, separable cost", lambda: apart(cs.Box(0.0, WHOLE, dim=D))),
    "packs": ("Whole packs, separable cost", lambda: apart(packs())),
    "list": ("Finite, 200 actions", lambda: together(listed())),
    "budget": ("Budget, separable cost", lambda: apart(cs.Budget(total=8.0, dim=D))),
    "ramps": ("Polytope of ramps, separable cost", lambda: apart(ramps())),
    "joint": ("Box, joint cost", lambda: together(cs.Box(0.0, WHOLE, dim=D))),
    "joint-budget": ("Budget, joint cost", lambda: together(cs.Budget(total=8.0, dim=D))),
}


def measure(name):
    """One case in this process."""
    torch.set_num_threads(1)
    rng = torch.Generator().manual_seed(0)
    x = torch.rand(ROWS, 14, generator=rng)
    y = x[:, :D] + x[:, D:] + 0.5 * torch.rand(ROWS, D, generator=rng)
    task = CASES[name][1]()
    model = cs.NearestNeighbours(task, k=50).fit(x, y)
    objective = cs.ExpectedCost(model.task_, model.scenarios(x[:1]))
    solver = type(cs.Auto().pick(objective, model.task_.feasible)).__name__

    def call(rows):
        a = model.decide(rows)
        return model.expected_cost(rows, a)

    call(x[:1])
    before = peak()
    one = middle(lambda: call(x[:1]), 9)
    batch = middle(lambda: call(x[:BATCH]), 3) / BATCH
    return {"solver": solver, "one": one, "batch": batch, "memory": peak() - before}


def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1]) / 1024


def measured():
    """All cases, each in a process of its own."""
    found = {}
    for name in CASES:
        words = [sys.executable, __file__, name]
        done = subprocess.run(words, check=True, capture_output=True, text=True)
        found[name] = json.loads(done.stdout)
    return found


def results():
    found = measured()
    base = found["box"]["one"]
    return [
        reported(
            f"decide one, {CASES[name][0]} ({case['solver']}), over a Box",
            case["one"] / base,
            note=f"{1e3 * case['one']:.2f} ms",
        )
        for name, case in found.items()
    ]


def table():
    """Rows of the documentation's table."""
    found = measured()
    base = found["box"]
    return text_table(
        [
            {
                "set and cost": CASES[name][0],
                "solver": case["solver"],
                "one row": f"{1e3 * case['one']:.3g} ms",
                "ratio": f"{case['one'] / base['one']:.2g}",
                f"a row of {BATCH}": f"{1e3 * case['batch']:.2g} ms",
                "ratio ": f"{case['batch'] / base['batch']:.2g}",
                "memory": f"{case['memory']:.0f} MiB",
            }
            for name, case in found.items()
        ]
    )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(measure(sys.argv[1])))
    else:
        print(table())
