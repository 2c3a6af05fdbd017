"""The gap of each method on both synthetic problems, mean over five data sets.

gap = E[f(y, a(x)) | x] - min_a E[f(y, a) | x], in closed form, mean over the 750 test x of each
data set. Rows are kept in benchmarks/results/synthetic_gap/, one file a run, and a kept row is not
run again; --table prints the table of the kept rows and runs nothing.

python benchmarks/synthetic_gap.py [--table] [--method df2 ...]
"""

import argparse
import json
import os
from pathlib import Path
from statistics import mean, stdev

from costscape.report import text_table

STORE = Path(__file__).parent / "results" / "synthetic_gap"
PROBLEMS = ("synthetic-convex", "synthetic-nonconvex")
METHODS = ("df2", "df2-paper", "wsaa-knn", "constant")
SEEDS = range(5)


def execute(problem, method, seed):
    from costscape import evaluate
    from costscape.experiments import METHODS as MAKE
    from costscape.experiments import PROBLEMS as MAKE_PROBLEM

    p = MAKE_PROBLEM[problem](seed)
    fitted = MAKE[method](p, seed).fit(
        p.data.train.x, p.data.train.y, val=(p.data.val.x, p.data.val.y)
    )
    result = evaluate(fitted, p.data.test.x, p.data.test.y, truth=p.truth)
    return {
        "problem": problem,
        "method": method,
        "seed": seed,
        "gap": result.gap,
        "regret": result.regret,
        "fit_seconds": result.fit_seconds,
        "decide_seconds": result.decide_seconds,
        "threads": int(os.environ.get("OMP_NUM_THREADS", "0")) or None,
    }


def sweep(methods):
    STORE.mkdir(parents=True, exist_ok=True)
    for problem in PROBLEMS:
        for method in methods:
            for seed in SEEDS:
                path = STORE / f"{problem}--{method}--{seed}.json"
                if not path.exists():
                    part = path.with_suffix(".part")
                    part.write_text(json.dumps(execute(problem, method, seed), indent=1) + "\n")
                    part.rename(path)


def table(rows):
    def cell(problem, method):
        gaps = [r["gap"] for r in rows if (r["problem"], r["method"]) == (problem, method)]
        return f"{mean(gaps):.4f} (sd {stdev(gaps):.4f}, {len(gaps)} sets)" if gaps[1:] else "-"

    return text_table([{"method": m, **{p: cell(p, m) for p in PROBLEMS}} for m in METHODS])


def kept():
    return [json.loads(path.read_text()) for path in sorted(STORE.glob("*.json"))]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", action="store_true", help="print the kept rows, run nothing")
    parser.add_argument("--method", nargs="+", choices=METHODS, default=METHODS)
    options = parser.parse_args()
    if not options.table:
        sweep(options.method)
    print(table(kept()))
