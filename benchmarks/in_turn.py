"""What do opponents decide where they are averaged as DF2's members are?

DF2's members learn from the validation part in turn and are averaged; a named opponent is one fit
that never learns from it. Here an opponent has five fits as well, each of which holds out another
stretch and chooses its epoch there, and decides by all their outcomes together. Rows are kept in
results/turns, their number of fits under changes as "members"; what is there is not made again.
`python benchmarks/quality.py` sets DF2 beside them.

python benchmarks/in_turn.py PROBLEM... --method NAME... [--draws 1000] [--members 5]
    [--seeds 0 1 2] [--device cuda] [--quick] [--store results/turns]
"""

import argparse
import time
from copy import deepcopy
from dataclasses import replace
from itertools import product
from pathlib import Path

import torch

from costscape import evaluate
from costscape.experiments.execute import blank
from costscape.experiments.rows import Rows
from costscape.experiments.runs import Run, prepare
from costscape.methods.folds import fold, together
from costscape.methods.surfaces import ScenarioMethod
from costscape.models import Members

KEPT = Path(__file__).parents[1] / "results" / "turns"


def fitted(method, train, val, members):
    """The first of them, with the networks of all."""
    if not isinstance(method, ScenarioMethod):
        raise SystemExit(
            f"Fits are averaged by their outcomes, which {type(method).__name__} does not have. "
            f"Take a method that forecasts, such as two-stage-gmm3."
        )
    pairs, fits = together(train, val), []
    for i in range(members):
        part = fold(train, val, i)
        own = pairs.x[part.rows], pairs.y[part.rows]
        one = replace(method, seed=method.seed + 1000 * i)
        fits.append(one.fit(*own, val=(part.held.x, part.held.y)))
    first = fits[0]
    first.model_ = Members([one.model_ for one in fits]).eval()
    return first


def row_of(run, members, device=None):
    """Paid in double precision, as all rows are."""
    made = prepare(run, device)
    p = made.problem
    began = time.perf_counter()
    method = fitted(made.method, p.data.train, p.data.val, members)
    seconds = time.perf_counter() - began
    at, test = method.task_.feasible.bounds[0].device, p.data.test
    payer = deepcopy(p.task).double().to(at)
    found = evaluate(method, test.x, test.y, truth=p.truth, task=payer)
    return {
        **blank(named(run, members)),
        "regret": found.regret,
        "cost": found.cost,
        "gap": found.gap,
        "standard_error": found.standard_error,
        "rows": found.rows,
        "fit_seconds": seconds,
        "decide_seconds": found.decide_seconds,
        "source": p.source,
        "recipe": recipe_of(run, members),
        "device": torch.cuda.get_device_name() if at.type == "cuda" else "cpu",
    }


def named(run, members):
    return replace(run, changes={**run.changes, "members": members})


def recipe_of(run, members):
    return f"{prepare(run).recipe}, {members} in turn"


def main():
    asked = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    asked.add_argument("problems", nargs="+")
    asked.add_argument("--method", action="append", required=True)
    asked.add_argument("--draws", type=int)
    asked.add_argument("--members", type=int, default=5)
    asked.add_argument("--seeds", nargs="+", type=int, default=[0])
    asked.add_argument("--device")
    asked.add_argument("--quick", action="store_true")
    asked.add_argument("--store", type=Path, default=KEPT)
    told = asked.parse_args()
    torch.set_num_threads(1)
    changes = {} if told.draws is None else {"draws": told.draws}
    rows = Rows(told.store)
    for seed, problem, name in product(told.seeds, told.problems, told.method):
        run = Run(problem, name, seed, changes, told.quick)
        kept = named(run, told.members)
        if not rows.finished(kept, recipe_of(run, told.members)):
            row = row_of(run, told.members, told.device)
            rows.write(kept, row)
            print(
                f"{kept.name}: regret {row['regret']:.5g}, {row['fit_seconds']:.0f} s", flush=True
            )


if __name__ == "__main__":
    main()
