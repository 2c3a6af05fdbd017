"""Which way of fitting DF2 decides best on validation data? The test part is never read.

Each variant changes one thing of DF2's default. A row has the regret on the validation part of a
single fit (the mean over members) and of all members together; on the synthetic problems, whose
data sets 100 and up no table contains, also the gap there. Rows are kept in results/tuning, one
JSON file each; what is there is not made again.

python benchmarks/tune.py PROBLEM... [--variant NAME...] [--seeds 0 1 2] [--device cuda] [--table]
"""

import argparse
import json
import time
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from costscape import (
    DF2,
    Absolute,
    Anchored,
    Costs,
    LocationScale,
    Training,
    WindowLevels,
    evaluate,
)
from costscape.experiments.runs import problem_of
from costscape.methods.df2 import Members
from costscape.report import text_table

KEPT = Path(__file__).parents[1] / "results" / "tuning"
VARIANTS = {
    "default": {},
    "location-scale": {"outcomes": LocationScale()},
    "absolute": {"outcomes": Absolute()},
    "anchored": {"outcomes": Anchored()},
    "window-levels": {"outcomes": WindowLevels()},
    "absolute, costs": {"outcomes": Absolute(), "target": Costs()},
    "absolute, plain costs": {"outcomes": Absolute(), "target": Costs(False, False)},
    "anchored, costs": {"outcomes": Anchored(), "target": Costs()},
    "location-scale, costs": {"outcomes": LocationScale(), "target": Costs()},
    "absolute, no average of weights": {"outcomes": Absolute(), "ema": None},
    "location-scale, 8 actions": {"outcomes": LocationScale(), "actions": 8},
    "location-scale, fixed outcomes": {"outcomes": LocationScale(), "learn_values": False},
}


def row_of(name, variant, seed, device=None, quick=False):
    """Fitted to the training part, scored on the validation part."""
    p = problem_of(name, seed, quick)
    settings = {**p.df2, **VARIANTS[variant]}
    training = Training(progress=False, device=device)
    if quick:
        settings = {"points": 10, "actions": 4, "members": 2, **settings}
        training = replace(training, epochs=2)
    method = DF2(p.task, p.network, **settings, solver=p.solver, seed=seed, training=training)
    train, val = p.data.train, p.data.val
    began = time.perf_counter()
    method.fit(train.x, train.y, val=(val.x, val.y))
    seconds = time.perf_counter() - began
    whole = evaluate(method, val.x, val.y, truth=p.truth)
    members = list(method.model_.members)
    single, gaps = [], []
    for member in members:
        method.model_ = Members([member]).eval()
        one = evaluate(method, val.x, val.y, truth=p.truth)
        single.append(one.regret)
        gaps.append(one.gap)
    return {
        "problem": name,
        "variant": variant,
        "seed": seed,
        "quick": quick,
        "single": float(np.mean(single)),
        "averaged": whole.regret,
        "single_gap": None if whole.gap is None else float(np.mean(gaps)),
        "averaged_gap": whole.gap,
        "outcomes": type(method.outcomes_).__name__,
        "epochs": [history.best_epoch + 1 for history in method.history_],
        "fit_seconds": seconds,
        "device": str(method.training.where()),
    }


def table(folder=KEPT):
    """The mean over seeds of the averaged members, single fits in brackets; gaps in 1e-4."""
    cells, problems = defaultdict(dict), []
    groups = defaultdict(list)
    for path in sorted(folder.glob("*.json")):
        row = json.loads(path.read_text())
        groups[row["variant"], _group(row["problem"])].append(row)
    for (variant, problem), rows in groups.items():
        gap = rows[0]["averaged_gap"] is not None
        both = [np.mean([r[k + "_gap" * gap] for r in rows]) for k in ("averaged", "single")]
        words = "{:.1f} ({:.1f})" if gap else "{:.2f} ({:.2f})"
        told = words.format(*(1e4 * b if gap else b for b in both))
        cells[variant][problem] = f"{told} n={len(rows)}"
        if problem not in problems:
            problems.append(problem)
    ordered = [v for v in VARIANTS if v in cells]
    return text_table(
        [{"": v, **{p: cells[v].get(p, "") for p in sorted(problems)}} for v in ordered]
    )


def _group(problem):
    return "inventory, items" if problem.startswith("inventory-item") else problem


def main():
    asked = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    asked.add_argument("problems", nargs="*")
    asked.add_argument("--variant", action="append", choices=VARIANTS)
    asked.add_argument("--seeds", nargs="+", type=int, default=[0])
    asked.add_argument("--device")
    asked.add_argument("--table", action="store_true")
    told = asked.parse_args()
    torch.set_num_threads(1)
    KEPT.mkdir(parents=True, exist_ok=True)
    for seed in told.seeds:
        for problem in told.problems:
            for variant in told.variant or VARIANTS:
                path = (
                    KEPT
                    / f"{problem}--{variant.replace(', ', '+').replace(' ', '-')}--{seed}.json"
                )
                if path.exists():
                    continue
                part = path.with_suffix(".part")
                part.write_text(json.dumps(row_of(problem, variant, seed, told.device), indent=1))
                part.rename(path)
                print(path.name, flush=True)
    if told.table or not told.problems:
        print(table())


if __name__ == "__main__":
    main()
