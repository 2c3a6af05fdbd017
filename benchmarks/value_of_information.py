"""What is knowing next week's travel worth? Regrets of plans that do not look at it.

Regret = infections of the plan - infections of the best plan in hindsight (Frank-Wolfe, its gap
shown), in double precision, mean over the test weeks (one from each day, in the last 20 % of
2020-04-01..2021-02-28) and over the weeks of the whole time, whose travel differs more. Plans: the
best for the mean of all training days; the best of another of those weeks (mean over all pairs at
least a week apart); the best of the week before; in proportion to people.
Needs the mobility data (COSTSCAPE_DATA); rows are kept in
benchmarks/results/value_of_information/.

python benchmarks/value_of_information.py [--device cuda] [--every 1] [--tol 1e-6] [--table]
"""

import argparse
import json
import time
from itertools import product
from pathlib import Path

import torch
from vaccine_state import DAYS, TEST, TRAIN, read_epidemic, read_trips

from costscape.bench.report import text_table
from costscape.problems.vaccine_doses.allocation import proportional, vaccine, vaccine_wave
from costscape.problems.vaccine_doses.seirv import trip_shares
from costscape.scenarios import ExpectedCost, Scenarios
from costscape.solvers.frank_wolfe import FrankWolfe

SPANS = {"test": DAYS - int(TEST * DAYS) + 7, "all": 7}  # the week before is x
STORE = Path(__file__).parent / "results" / "value_of_information"
PROBLEMS = {"vaccine": vaccine, "vaccine-wave": vaccine_wave}
PLANS = ("average week", "another week", "week before", "proportional")


def best_plans(task, y, solver):
    g = ExpectedCost(task, Scenarios(y.new_ones(len(y), 1), y.unsqueeze(1)))
    found = solver.minimise(g, task.feasible, len(y))
    return found.action, solver.gap(g, task.feasible, found.action)


@torch.no_grad()
def execute(name, span, device, every, tol):
    begin = time.perf_counter()
    task = PROBLEMS[name](read_epidemic()).to(device)
    days = trip_shares(read_trips()).to(device)
    y = torch.stack([days[t : t + 7] for t in range(SPANS[span], DAYS - 6, every)])
    mean = days[: int(TRAIN * DAYS)].mean(0).expand(1, 7, -1, -1)
    plans, gap = best_plans(task, torch.cat([mean, y]), FrankWolfe(tol=tol))
    average, best = plans[0], plans[1:]
    least = task.cost(y, best)
    table = torch.cat([task.cost(y, plan) - least for plan in best[:, None]]).reshape(len(y), -1)
    row = torch.arange(len(y), device=device) * every
    apart = (row[:, None] - row).abs() >= 7
    before = (row - row[:, None]) == 7  # [plan, week]
    regrets = {
        "average week": task.cost(y, average) - least,
        "another week": table[apart],
        "week before": table[before],
        "proportional": task.cost(y, proportional(task)) - least,
    }
    return {
        "problem": name,
        "span": span,
        "weeks": len(y),
        "every": every,
        "tol": tol,
        "infections": [float(least.min()), float(least.max())],
        "gap": float(gap.max()),
        "regret": {key: float(r.mean()) for key, r in regrets.items() if len(r)},
        "most": {key: float(r.max()) for key, r in regrets.items() if len(r)},
        "seconds": time.perf_counter() - begin,
        "device": device,
    }


def show(rows):
    table = [
        {
            "problem": r["problem"],
            "of": r["span"],
            "weeks": str(r["weeks"]),
            "least infections": f"{r['infections'][0]:,.0f} to {r['infections'][1]:,.0f}",
            "gap up to": f"{r['gap']:.2g}",
            **{p: f"{r['regret'][p]:,.3f}" if p in r["regret"] else "" for p in PLANS},
        }
        for r in rows
    ]
    print(text_table(table))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--every", type=int, default=1, help="take one test week in so many")
    parser.add_argument("--tol", type=float, default=1e-6)
    parser.add_argument("--table", action="store_true", help="print kept rows, run nothing")
    args = parser.parse_args()
    rows = []
    for name, span in product(PROBLEMS, SPANS):
        path = STORE / f"{name}--{span}.json"
        if not args.table:
            row = execute(name, span, args.device, args.every, args.tol)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(row, indent=1) + "\n")
        if path.exists():
            rows.append(json.loads(path.read_text()))
    show(rows)


if __name__ == "__main__":
    main()
