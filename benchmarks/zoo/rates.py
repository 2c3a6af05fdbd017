"""Which rate serves the networks of the opponents on many problems?

Each row is one single fit of one method on one problem of the zoo with one rate; encoder and
schedule are those of all networks. The table has, for each method and rate, the mean and the worst
ratio of regret to that with a rate of 3e-3. Rows are kept in rates.jsonl; `code` is the commit
they were made by.

    python benchmarks/zoo/rates.py                        # the table of the kept rows
    python benchmarks/zoo/rates.py --run --out FILE       # all that FILE lacks
"""

import argparse
import json
from collections import defaultdict
from dataclasses import replace
from itertools import product
from pathlib import Path

KEPT = Path(__file__).with_suffix(".jsonl")
METHODS = (
    "two-stage-pe",
    "two-stage-gmm3",
    "two-stage-gmm10",
    "two-stage-quantiles",
    "policy-net",
)
RATES, BASE = (1e-3, 3e-3, 1e-2), 3e-3


def run(problem, name, rate):
    """The row of one fit."""
    import torch

    import costscape as cs
    from costscape.bench.method_names import method_of
    from costscape.bench.provenance import commit
    from costscape.bench.zoo import ZOO

    torch.set_num_threads(1)
    p = ZOO[problem](0)
    method = method_of(name)(p, 0)
    training = replace(method.trains(), lr=rate, device="cpu", progress=False)
    method = method.changed(training=training)
    data = p.data
    method.fit(data.train.x, data.train.y, val=(data.val.x, data.val.y))
    found = cs.evaluate(method, data.test.x, data.test.y, truth=p.truth)
    return {
        "problem": problem,
        "method": name,
        "rate": rate,
        "regret": found.regret,
        "gap": found.gap,
        "code": commit(),
    }


def read(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def ratios(rows):
    """By method and rate: of each problem that has all rates, regret over that with BASE."""
    regret = defaultdict(dict)
    for row in rows:
        regret[row["method"], row["problem"]][row["rate"]] = row["regret"]
    found = defaultdict(list)
    for (method, _), by_rate in sorted(regret.items()):
        if set(by_rate) == set(RATES) and by_rate[BASE] > 0:
            for rate in RATES:
                found[method, rate].append(by_rate[rate] / by_rate[BASE])
    return found


def table(rows):
    """Lines of text: method, rate, mean and worst ratio, number of problems."""
    found = ratios(rows)
    for rate in RATES:
        found["all", rate] = [r for name in METHODS for r in found[name, rate]]
    return [
        f"{name:22} {rate:<6g} {sum(of) / len(of):.3f} {max(of):.3f} n={len(of)}"
        for (name, rate), of in found.items()
        if of
    ]


def main():
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--run", action="store_true", help="make the rows that --out lacks")
    asked.add_argument("--out", type=Path, default=KEPT, help="file of the rows")
    asked.add_argument(
        "--problem", nargs="*", help="of the zoo; those of the kept rows by default"
    )
    given = asked.parse_args()
    if given.run:
        there = read(given.out) if given.out.exists() else []
        done = {(r["problem"], r["method"], r["rate"]) for r in there}
        problems = given.problem or sorted({row["problem"] for row in read(KEPT)})
        for key in product(problems, METHODS, RATES):
            if key not in done:
                row = run(*key)
                with given.out.open("a") as file:
                    file.write(json.dumps(row) + "\n")
    print("\n".join(table(read(given.out))))


if __name__ == "__main__":
    main()
