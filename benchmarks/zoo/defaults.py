"""Which settings of DF2's default, and which rates of its opponents, serve on many problems?

Each row has the test regret of one method on one problem of the zoo, with some settings changed.
All methods are cross-fitted. The first table has the mean and the worst ratio of regret to the
best opponent of each problem; the second the ratio to DF2's default itself; the third has the
first by kind of set. Rows are kept in defaults.jsonl; `code` is the commit they were made by.

    python benchmarks/zoo/defaults.py                                  # tables of the kept rows
    python benchmarks/zoo/defaults.py --run df2 df2/steps=2000 --workers 2 --out FILE
    python benchmarks/zoo/defaults.py --run two-stage-gmm3/rate=0.01 --problem zoo-linear
"""

import argparse
import json
import os
import time
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

KEPT = Path(__file__).with_suffix(".jsonl")
OPPONENTS = ("wsaa-knn", "wsaa-forest", "two-stage-gmm3")


def settings_of(name):
    """("df2", {"steps": 2000.0}) of "df2/steps=2000"."""
    method, *words = name.split("/")
    return method, {k: float(v) for k, v in (word.split("=") for word in words)}


def change_defaults(s):
    """Set the constants of DF2's default that are not settings of its constructor."""
    from costscape.methods import ensemble
    from costscape.methods.df2 import slopes
    from costscape.models import outcome_network
    from costscape.training import settings

    outcome_network.OWN_POINTS = int(s.pop("points", outcome_network.OWN_POINTS))
    outcome_network.SHARED_POINTS = int(s.pop("shared_points", outcome_network.SHARED_POINTS))
    slopes.OWN_ACTIONS = int(s.pop("actions", slopes.OWN_ACTIONS))
    slopes.SHARED_ACTIONS = int(s.pop("shared_actions", slopes.SHARED_ACTIONS))
    settings.STEPS = int(s.pop("steps", settings.STEPS))
    settings.PATIENCE = s.pop("patience_part", settings.PATIENCE)
    ensemble.BEHIND = s.pop("behind", ensemble.BEHIND)


def run(problem, name, device="cpu"):
    """The row of one fit, in a process of its own."""
    import warnings
    from dataclasses import replace

    import torch

    import costscape as cs
    from costscape.bench.method_names import method_of
    from costscape.bench.provenance import commit
    from costscape.bench.zoo import ZOO

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    method_name, s = settings_of(name)
    change_defaults(s)
    p = ZOO[problem](0)
    joint = method_name in ("df2", "blend")
    method = method_of(method_name if joint else f"{method_name}+crossfit")(p, 0)
    training = method.trains()
    if training is not None:
        quiet = replace(training, progress=False, device=device, lr=s.pop("rate", training.lr))
        quiet = replace(quiet, batch_size=int(s.pop("batch", quiet.batch_size)))
        method = method.changed(training=quiet)
    for key in ("folds",):
        if key in s:
            s[key] = int(s[key])
    method = method.changed(**s) if s else method
    begin = time.process_time()
    pairs = p.data
    method.fit(pairs.train.x, pairs.train.y, val=(pairs.val.x, pairs.val.y))
    fitted = time.process_time()
    found = cs.evaluate(method, pairs.test.x, pairs.test.y, truth=p.truth)
    return {
        "problem": problem,
        "method": name,
        "regret": found.regret,
        "gap": found.gap,
        "fit_seconds": fitted - begin,
        "decide_seconds": time.process_time() - fitted,
        "chosen": method.chosen(),
        "code": commit(),
    }


def read(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def ratios(found, base):
    """Mean and worst of found[p] / base[p], and how many problems have both."""
    shared = sorted(set(found) & set(base))
    if not shared:
        return None
    of = {p: found[p] / base[p] for p in shared}
    worst = max(of, key=of.get)
    return f"{sum(of.values()) / len(of):.3f} {of[worst]:.3f} n={len(of):<3} worst on {worst}"


def table(rows, measure="regret"):
    """Lines of text: each method against the best opponent, then DF2's variants against df2."""
    found = defaultdict(dict)
    for row in rows:
        found[row["method"]][row["problem"]] = row[measure]
    best = {
        p: min(found[name][p] for name in OPPONENTS)
        for p in found["df2"]
        if all(p in found[name] for name in OPPONENTS)
    }
    lines = [f"{measure} over that of the best cross-fitted opponent: mean, worst"]
    lines += [f"{name:36} {ratios(found[name], best)}" for name in sorted(found)]
    lines.append(f"{measure} over that of the same method without a change: mean, worst")
    for name in sorted(found):
        base = name.split("/")[0]
        if name != base and (line := ratios(found[name], found[base])):
            lines.append(f"{name:36} {line}")
    return lines


def by_set(rows, measure="regret"):
    """Lines of text: DF2 and the blend against the best opponent, by the kind of the set."""
    from costscape.bench.zoo import ZOO

    kinds = defaultdict(list)
    for row in rows:
        problem = row["problem"]
        if row["method"] == "df2":
            kinds[type(ZOO[problem](0).task.feasible).__name__].append(problem)
    lines = [f"{measure} over that of the best cross-fitted opponent, by set: mean, worst"]
    for kind, problems in sorted(kinds.items()):
        found = defaultdict(dict)
        for row in rows:
            if row["problem"] in problems:
                found[row["method"]][row["problem"]] = row[measure]
        best = {
            p: min(found[name][p] for name in OPPONENTS)
            for p in problems
            if all(p in found[name] for name in OPPONENTS)
        }
        lines += [f"{kind:10} {name:6} {ratios(found[name], best)}" for name in ("df2", "blend")]
    return lines


def main():
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--run", nargs="*", metavar="METHOD/NAME=VALUE")
    asked.add_argument("--problem", nargs="*", help="of the zoo; all by default")
    asked.add_argument("--workers", type=int, default=1)
    asked.add_argument("--device", default="cpu", help="cpu or cuda")
    asked.add_argument("--seconds", type=float, default=float("inf"), help="start nothing later")
    asked.add_argument("--out", type=Path, default=KEPT)
    given = asked.parse_args()
    if given.run is None:
        rows = read(given.out)
        print("\n".join(table(rows) + by_set(rows)))
        return
    from costscape.bench.zoo import ZOO

    end = time.monotonic() + given.seconds
    jobs = [(p, name) for name in given.run for p in given.problem or ZOO]
    with (
        ProcessPoolExecutor(given.workers, max_tasks_per_child=1) as pool,
        given.out.open("a") as file,
    ):
        started = [pool.submit(_in_time, job, given.device, end) for job in jobs]
        for done in as_completed(started):
            if (row := done.result()) is not None:
                file.write(json.dumps(row) + "\n")
                file.flush()


def _in_time(job, device, end):
    return run(*job, device) if time.monotonic() < end else None


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
