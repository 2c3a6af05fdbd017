"""Which rate, width, points, actions and steps serve one DF2 network on many problems?

Each row is one network of one form on one generated problem of the zoo, with some settings
changed. The table has, for each change and form, the mean and the worst ratio of regret to the
base settings. Rows are kept in single_networks.jsonl; `code` is the commit they were made by.

    python benchmarks/zoo/single_networks.py                      # the table of the kept rows
    python benchmarks/zoo/single_networks.py --run rate=0.01 layers=2 points=128 --out FILE
"""

import argparse
import json
import os
import time
from collections import defaultdict
from functools import partial
from pathlib import Path

KEPT = Path(__file__).with_suffix(".jsonl")
DEFAULT = {
    "rate": 0.01,
    "layers": 2,
    "points": 64,
    "actions": 12,
    "steps": 1000,
    "batch": 64,
    "outcome_share": 0.3,
}
BASE = DEFAULT | {"rate": 0.003, "layers": 1, "actions": 16, "outcome_share": 0.0}  # of the table


def run(problem, form, settings):
    """The row of one network."""
    import torch

    import costscape as cs
    from costscape.bench.provenance import commit
    from costscape.bench.zoo import ZOO
    from costscape.training import settings as train

    torch.set_num_threads(1)
    s = DEFAULT | settings
    p = ZOO[problem](0)
    data, task = p.data, p.task
    columns = data.train.x[0].numel()
    forms = {
        "absolute": cs.Absolute(),
        "anchored": cs.Anchored(),
        "location-scale": cs.LocationScale(),
    }
    batch = int(s["batch"])
    steps = -(-len(data.train) // batch)
    epochs = min(max(-(-int(s["steps"]) // steps), train.EPOCHS[0]), train.EPOCHS[1])
    method = cs.DF2(
        task,
        partial(cs.MLP, columns, layers=int(s["layers"])) if data.train.x.ndim == 2 else None,
        outcomes=forms[form],
        points=None if form == "absolute" else int(s["points"]),
        actions=None if form == "absolute" else int(s["actions"]),
        outcome_share=s["outcome_share"],
        folds=1,
        training=cs.Training(
            epochs=epochs, batch_size=batch, lr=s["rate"], progress=False, device="cpu"
        ),
    )
    begin = time.process_time()
    method.fit(data.train.x, data.train.y, val=(data.val.x, data.val.y))
    seconds = time.process_time() - begin
    found = cs.evaluate(method, data.test.x, data.test.y, truth=p.truth)
    (history,) = method.history_
    return {
        "problem": problem,
        "form": form,
        "settings": s,
        "regret": found.regret,
        "gap": found.gap,
        "seconds": seconds,
        "best_epoch": history.best_epoch + 1,
        "epochs": len(history.losses),
        "code": commit(),
    }


def read(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def table(rows):
    """Lines of text: a change, then mean and worst ratio of regret, and problems, by form."""
    regret = defaultdict(dict)
    for row in rows:
        key = json.dumps(row["settings"], sort_keys=True)
        regret[key, row["form"]][row["problem"]] = row["regret"]
    base = json.dumps(BASE, sort_keys=True)
    lines = [f"base: {base}"]
    for (settings, form), found in sorted(regret.items()):
        shared = sorted(set(found) & set(regret[base, form]))
        if settings == base or not shared:
            continue
        ratios = [found[p] / regret[base, form][p] for p in shared]
        changed = {k: v for k, v in json.loads(settings).items() if BASE[k] != v}
        mean = sum(ratios) / len(ratios)
        words = ", ".join(f"{k}={v}" for k, v in changed.items())
        lines.append(f"{words:32} {form:15} {mean:.3f} {max(ratios):.3f} n={len(shared)}")
    return lines


def main():
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--run", nargs="*", metavar="NAME=VALUE", help="settings to change")
    asked.add_argument(
        "--problem", nargs="*", help="of the zoo; those of the kept rows by default"
    )
    asked.add_argument("--out", type=Path, default=KEPT)
    given = asked.parse_args()
    if given.run is None:
        print("\n".join(table(read(KEPT))))
        return

    settings = {k: float(v) for k, v in (word.split("=") for word in given.run)}
    names = given.problem or sorted({row["problem"] for row in read(KEPT)})
    for name in names:
        for form in ("absolute", "anchored", "location-scale"):
            row = run(name, form, settings)
            with given.out.open("a") as file:
                file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
