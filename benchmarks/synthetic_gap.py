"""The gap of each method on both synthetic problems, mean over five data sets.

gap = E[f(y, a(x)) | x] - min_a E[f(y, a) | x], in closed form, mean over the 750 test x of each
data set. Methods that draw from a forecast stand there with M = 100 draws, the paper's number, and
with M = 1000. Rows are kept in benchmarks/results/synthetic_gap/, one file a run, and a kept row
is not run again; --table prints the table of the kept rows and runs nothing; --workers runs
several at once, one thread each.

python benchmarks/synthetic_gap.py [--table] [--method df2 ...] [--workers 2] [--device cuda]
    [--out DIR]
"""

import argparse
import json
import os
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from statistics import mean, stdev

from costscape.report import text_table

STORE = Path(__file__).parent / "results" / "synthetic_gap"
PROBLEMS = ("synthetic-convex", "synthetic-nonconvex")
DRAWN = (  # decide by M draws of a mixture
    *(f"two-stage-gmm{k}" for k in (1, 3, 10, 1000)),
    *("dfl-gmm1", "dfl-gmm3", "so-ebm-gmm1", "so-ebm-gmm3", "lodl-gmm1", "lodl-gmm3"),
)
OTHERS = (
    *("df2", "df2-paper", "policy-net", "two-stage-pe", "dfl-pe", "lodl-pe", "egl", "lancer"),
    *("taskmet", "wsaa-knn", "wsaa-forest", "wsaa-kernel", "cme", "no-attention", "constant"),
)
# (method, M), M None where nothing is drawn
METHODS = [(name, None) for name in OTHERS[:4]]
METHODS += [(name, draws) for name in DRAWN for draws in (100, 1000)]
METHODS += [(name, None) for name in OTHERS[4:]]
SEEDS = range(5)


def execute(problem, method, draws, seed, device):
    import torch

    from costscape import evaluate
    from costscape.experiments import PROBLEMS as MAKE_PROBLEM
    from costscape.experiments import method_of

    torch.set_num_threads(1)
    p = MAKE_PROBLEM[problem](seed)
    made = method_of(method)(p, seed)
    if draws is not None:
        made = replace(made, draws=draws)
    if hasattr(made, "training"):
        made = replace(made, training=replace(made.training, progress=False, device=device))
    made.fit(p.data.train.x, p.data.train.y, val=(p.data.val.x, p.data.val.y))
    result = evaluate(made, p.data.test.x, p.data.test.y, truth=p.truth)
    return {
        "problem": problem,
        "method": method,
        "draws": draws,
        "seed": seed,
        "gap": result.gap,
        "regret": result.regret,
        "fit_seconds": result.fit_seconds,
        "decide_seconds": result.decide_seconds,
        "threads": 1,
        "device": device if hasattr(made, "training") else "cpu",
    }


def name_of(problem, method, draws, seed):
    drawn = "" if draws is None else f"-M{draws}"
    return f"{problem}--{method}{drawn}--{seed}.json"


def sweep(methods, draws_only, workers, store, device):
    store.mkdir(parents=True, exist_ok=True)
    runs = [
        (problem, method, draws, seed)
        for method, draws in METHODS
        for problem in PROBLEMS
        for seed in SEEDS
        if method in methods
        and (draws_only is None or draws == draws_only)
        and not any((at / name_of(problem, method, draws, seed)).exists() for at in (STORE, store))
    ]
    os.environ["OMP_NUM_THREADS"] = "1"
    # spawned, since a forked torch may hang
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        waiting = {pool.submit(execute, *run, device): run for run in runs}
        for done, future in enumerate(as_completed(waiting), 1):
            path = store / name_of(*waiting[future])
            part = path.with_suffix(".part")
            part.write_text(json.dumps(future.result(), indent=1) + "\n")
            part.rename(path)
            print(f"{done} of {len(runs)}: {path.stem}", flush=True)


def table(rows):
    def cell(problem, method, draws):
        wanted = (problem, method, draws)
        gaps = [r["gap"] for r in rows if (r["problem"], r["method"], r.get("draws")) == wanted]
        return f"{mean(gaps):.4f} (sd {stdev(gaps):.4f})" if len(gaps) == len(SEEDS) else "-"

    return text_table(
        [
            {"method": m, "M": str(draws or ""), **{p: cell(p, m, draws) for p in PROBLEMS}}
            for m, draws in METHODS
        ]
    )


def kept():
    return [json.loads(path.read_text()) for path in sorted(STORE.glob("*.json"))]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", action="store_true", help="print the kept rows, run nothing")
    names = [*OTHERS, *DRAWN]
    parser.add_argument("--method", nargs="+", choices=names, default=names)
    parser.add_argument("--draws", type=int, help="only the rows with this M")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--device", default="cpu", help="of the fits: cpu or cuda")
    parser.add_argument("--out", type=Path, default=STORE, help="where new rows go")
    options = parser.parse_args()
    if not options.table:
        sweep(options.method, options.draws, options.workers, options.out, options.device)
    print(table(kept()))
