"""Which way of fitting DF2 decides best on validation data? The test part is never read.

Each variant changes one thing of DF2's default; on sequences the encoder may be another, too.
Members learn from each other's held-out stretches, so that a row has the mean over members of the
regret of each alone on its own stretch ("folds"). With --held the first four fifths of the
training part are the training part and the last fifth is the validation part, and what is scored,
the members together and each alone, is the validation part, as new to them as a test would be. On
the synthetic problems, whose data sets 100 and up no table contains, rows also have the gap. Rows
are kept in results/tuning, one JSON file each; what is there is not made again. Those without
"folds" are of fits whose members all held out the validation part.

python benchmarks/tune.py PROBLEM... [--variant NAME...] [--encoder NAME] [--members 5] [--held]
    [--seeds 0 1 2] [--device cuda] [--table]
"""

import argparse
import json
import time
from collections import defaultdict
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import torch

from costscape import (
    DF2,
    LSTM,
    Absolute,
    Anchored,
    Changes,
    Costs,
    Damped,
    LocationScale,
    Refined,
    Slopes,
    Training,
    WindowLevels,
    evaluate,
)
from costscape.data import last_week
from costscape.experiments.runs import problem_of
from costscape.methods.folds import fold
from costscape.models import Members
from costscape.report import text_table

KEPT = Path(__file__).parents[1] / "results" / "tuning"
PAPERS = {
    "outcomes": Absolute(),
    "target": Costs(False, False),
    "ema": None,
    "standardise": False,
    "training": {"decay": False},
}
VARIANTS = {
    "default": {},
    "location-scale": {"outcomes": LocationScale()},
    "location-scale, no lines": {"outcomes": LocationScale(lines=False)},
    "location-scale, all lines": {"outcomes": LocationScale(lines=True)},
    "absolute": {"outcomes": Absolute()},
    "anchored": {"outcomes": Anchored()},
    "window-levels": {"outcomes": WindowLevels()},
    "window-levels of location-scale": {"outcomes": WindowLevels(LocationScale(lines=False))},
    "absolute, costs": {"outcomes": Absolute(), "target": Costs()},
    "absolute, plain costs": {"outcomes": Absolute(), "target": Costs(False, False)},
    "anchored, costs": {"outcomes": Anchored(), "target": Costs()},
    "window-levels, costs": {"outcomes": WindowLevels(), "target": Costs()},
    "location-scale, costs": {"outcomes": LocationScale(lines=False), "target": Costs()},
    "absolute, no average of weights": {"outcomes": Absolute(), "ema": None},
    "absolute, constant rate": {"outcomes": Absolute(), "training": {"decay": False}},
    "absolute, rate 3e-4": {"outcomes": Absolute(), "training": {"lr": 3e-4}},
    "absolute, 20 epochs": {"outcomes": Absolute(), "training": {"epochs": 20}},
    "window-levels, 200 points": {"outcomes": WindowLevels(), "points": 200},
    "location-scale, 100 points": {"outcomes": LocationScale(), "points": 100},
    "location-scale, 8 actions": {"outcomes": LocationScale(lines=False), "actions": 8},
    "location-scale, fixed outcomes": {
        "outcomes": LocationScale(lines=False),
        "learn_values": False,
    },
    "as in the paper": PAPERS,
    "as in the paper, average of weights": {**PAPERS, "ema": 0.995},
    "as in the paper, standardised": {**PAPERS, "standardise": True},
    "as in the paper, slopes": {**PAPERS, "target": Slopes()},
    "as in the paper, rate falling": {**PAPERS, "training": {}},
    "anchored, rate 1e-3": {"outcomes": Anchored(), "training": {"lr": 1e-3}},
    "anchored to the end": {"outcomes": Anchored(60)},
    "anchored to the end, rate 1e-3": {"outcomes": Anchored(60), "training": {"lr": 1e-3}},
    "changes": {"outcomes": Changes(last_week)},
    "changes, anchored to the end": {"outcomes": Changes(last_week, Anchored(60))},
    "changes, damped": {"outcomes": Changes(Damped(last_week))},
    "changes, refined": {"outcomes": Changes(last_week, Refined())},
    "changes, refined, damped": {"outcomes": Changes(Damped(last_week), Refined())},
    "changes, refined, limited": {
        "outcomes": Changes(Damped(last_week, within=2.0), Refined(), seen=3.0)
    },
    "refined": {"outcomes": Refined()},
}
BESIDE = {  # members of both in turn, those of the first first
    "absolute beside location-scale": ("absolute", "location-scale"),
    "window-levels beside location-scale": ("window-levels", "location-scale"),
}
ENCODERS = {
    "default": None,
    "LSTM 64, dropout and noise": partial(LSTM, 1, hidden=64, dropout=0.3, noise=0.05),
    "LSTM 128": partial(LSTM, 1, hidden=128),
    "LSTM 128, dropout and noise": partial(LSTM, 1, hidden=128, dropout=0.3, noise=0.05),
    "LSTM 128, more of both": partial(LSTM, 1, hidden=128, dropout=0.5, noise=0.1),
    "LSTM 256, noise": partial(LSTM, 1, hidden=256, noise=0.1),
    "LSTM 256, dropout and noise": partial(LSTM, 1, hidden=256, dropout=0.3, noise=0.05),
    "LSTM 512": partial(LSTM, 1, hidden=512),
}


def parts(data, held):
    """What a fit learns from, what it chooses on, and what it is scored on."""
    if not held:
        return data.train, data.val, data.val
    n = len(data.train)
    cut = 4 * n // 5
    return data.train[: cut - n // 50], data.train[cut:], data.val  # windows overlap: a gap


def row_of(
    name, variant, seed, device=None, quick=False, encoder="default", members=5, held=False
):
    """Fitted to the training part, scored on the validation part."""
    p = problem_of(name, seed, quick)
    train, chosen, val = parts(p.data, held)
    began = time.perf_counter()
    fits = [
        fitted(p, v, seed, device, quick, encoder, members, train, chosen)
        for v in BESIDE.get(variant, [variant])
    ]
    seconds = time.perf_counter() - began
    method = fits[0]
    turns = [fits[i % len(fits)] for i in range(len(method.model_.members))]
    models = [one.model_.members[i] for i, one in enumerate(turns)]
    method.model_ = Members(models).eval()
    # members learn from each other's stretches, so that all together are scored on new rows only
    whole = evaluate(method, val.x, val.y, truth=p.truth) if held or members == 1 else None
    single = []
    for i, member in enumerate(models):
        method.model_ = Members([member]).eval()
        rows = val if held else fold(train, chosen, i).held
        single.append(evaluate(method, rows.x, rows.y, truth=p.truth))
    gaps = [one.gap for one in single]
    return {
        "problem": name,
        "variant": variant,
        "encoder": encoder,
        "seed": seed,
        "quick": quick,
        "held": held,
        "members": len(models),
        "single": float(np.mean([one.regret for one in single])),
        "each": [one.regret for one in single],
        "averaged": whole and whole.regret,
        "single_gap": None if None in gaps else float(np.mean(gaps)),
        "averaged_gap": whole and whole.gap,
        "folds": True,
        "outcomes": type(method.outcomes_).__name__,
        "forms": [type(one.forms_[i]).__name__ for i, one in enumerate(turns)],
        "epochs": [one.history_[i].best_epoch + 1 for i, one in enumerate(turns)],
        "fit_seconds": seconds,
        "device": str(method.training.where()),
    }


def fitted(p, variant, seed, device, quick, encoder, members, train, chosen):
    """DF2 with one thing changed, fitted to the training part."""
    settings = {**p.df2, "members": members, "refit": False, **VARIANTS[variant]}
    told = settings.pop("training", {})
    told = told if isinstance(told, dict) else {"lr": told.lr, "epochs": told.epochs}
    training = Training(progress=False, device=device, score_every=p.score_every, **told)
    if quick:
        settings = {"points": 10, "actions": 4, **settings, "members": 2}
        training = replace(training, epochs=2)
    network = ENCODERS[encoder] or p.network
    method = DF2(p.task, network, **settings, solver=p.solver, seed=seed, training=training)
    return method.fit(train.x, train.y, val=(chosen.x, chosen.y))


def file_of(problem, variant, encoder, seed, held=False):
    said = variant if encoder == "default" else f"{variant}, {encoder}"
    said += ", held" if held else ", folds"
    return KEPT / f"{problem}--{said.replace(', ', '+').replace(' ', '-')}--{seed}.json"


def table(folder=KEPT):
    """The mean over seeds of the averaged members, single fits in brackets; gaps in 1e-4."""
    cells, problems = defaultdict(dict), []
    groups = defaultdict(list)
    for path in sorted(folder.glob("*.json")):
        row = json.loads(path.read_text())
        said = row["variant"] + ("" if row["encoder"] == "default" else f"; {row['encoder']}")
        groups[said, _group(row)].append(row)
    for (variant, problem), rows in groups.items():
        gap = rows[0]["single_gap"] is not None
        told = []
        for key, word in (("averaged", "{}"), ("single", "({})")):
            found = [row[key + "_gap" * gap] for row in rows]
            if None not in found:
                told.append(word.format(f"{1e4 * np.mean(found):.1f}" if gap else _short(found)))
        cells[variant][problem] = f"{' '.join(told)} n={len(rows)}"
        if problem not in problems:
            problems.append(problem)
    every = [f"{v}{e}" for v in (*VARIANTS, *BESIDE) for e in ("", *(f"; {e}" for e in ENCODERS))]
    ordered = [said for said in every if said in cells]
    return text_table(
        [{"": v, **{p: cells[v].get(p, "") for p in sorted(problems)}} for v in ordered]
    )


def _group(row):
    name = row["problem"].removeprefix("inventory-")
    if row.get("held"):
        return name + ", held"
    return name + ", folds" * row.get("folds", False)


def _short(found):
    mean = np.mean(found)
    return f"{mean:.2f}" if mean < 200 else f"{mean:,.0f}"


def main():
    asked = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    asked.add_argument("problems", nargs="*")
    asked.add_argument("--variant", action="append", choices=[*VARIANTS, *BESIDE])
    asked.add_argument("--encoder", default="default", choices=ENCODERS)
    asked.add_argument("--members", type=int, default=5)
    asked.add_argument("--held", action="store_true")
    asked.add_argument("--seeds", nargs="+", type=int, default=[0])
    asked.add_argument("--device")
    asked.add_argument("--table", action="store_true")
    told = asked.parse_args()
    torch.set_num_threads(1)
    KEPT.mkdir(parents=True, exist_ok=True)
    for seed in told.seeds:
        for problem in told.problems:
            for variant in told.variant or [*VARIANTS, *BESIDE]:
                path = file_of(problem, variant, told.encoder, seed, told.held)
                if path.exists():
                    continue
                part = path.with_suffix(".part")
                more = {"encoder": told.encoder, "members": told.members, "held": told.held}
                row = row_of(problem, variant, seed, told.device, **more)
                part.write_text(json.dumps(row, indent=1))
                part.rename(path)
                print(path.name, flush=True)
    if told.table or not told.problems:
        print(table())


if __name__ == "__main__":
    main()
