"""Regret of some methods on the real problems at full size, test part, one seed.

Rows are kept in benchmarks/results/real_problems/, one file a run, and a kept row is not run
again; --table prints the kept rows and runs nothing. Each row says which data it was made on.

python benchmarks/real_problems.py [--table] [--problem wind ...] [--method constant ...]
    [--device cuda]
"""

import argparse
import json
from dataclasses import replace
from pathlib import Path

from costscape.report import text_table

STORE = Path(__file__).parent / "results" / "real_problems"
PROBLEMS = ("wind", "wind-farm", "inventory", "inventory-store", "vaccine", "vaccine-wave")
METHODS = ("constant", "wsaa-knn", "policy-net", "two-stage-gmm3", "df2")


def execute(problem, method, device):
    from costscape import evaluate
    from costscape.experiments import PROBLEMS as MAKE
    from costscape.experiments import method_of

    p = MAKE[problem](0)
    made = method_of(method)(p, 0)
    if hasattr(made, "training"):
        made = replace(made, training=replace(made.training, device=device))
    made.fit(p.data.train.x, p.data.train.y, val=(p.data.val.x, p.data.val.y))
    result = evaluate(made, p.data.test.x, p.data.test.y)
    return {
        "problem": problem,
        "method": method,
        "seed": 0,
        "cost": result.cost,
        "regret": result.regret,
        "fit_seconds": result.fit_seconds,
        "device": device,
        "source": p.source,
    }


def table(rows):
    return text_table(
        [
            {
                "problem": r["problem"],
                "method": r["method"],
                "cost": f"{r['cost']:.6g}",
                "regret": f"{r['regret']:.6g}",
                "fit s": f"{r['fit_seconds']:.0f}",
                "device": r["device"],
            }
            for r in sorted(rows, key=_place)
        ]
    )


def _place(row):
    return PROBLEMS.index(row["problem"]), METHODS.index(row["method"])


def kept():
    return [json.loads(path.read_text()) for path in sorted(STORE.glob("*.json"))]


def main(problems, methods, device):
    STORE.mkdir(parents=True, exist_ok=True)
    for problem in problems:
        for method in methods:
            path = STORE / f"{problem}--{method}.json"
            if not path.exists():
                part = path.with_suffix(".part")
                part.write_text(json.dumps(execute(problem, method, device), indent=1) + "\n")
                part.rename(path)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", action="store_true", help="print the kept rows, run nothing")
    parser.add_argument("--problem", nargs="+", choices=PROBLEMS, default=PROBLEMS)
    parser.add_argument("--method", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--device", default="cpu", help="of the fits: cpu or cuda")
    options = parser.parse_args()
    if not options.table:
        main(options.problem, options.method, options.device)
    print(table(kept()))
