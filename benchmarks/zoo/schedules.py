"""Which rate and which patience serve the networks of all methods on many problems?

Each row is one single fit of one method on one problem of the zoo, or on a synthetic problem
drawn with a seed that no kept run has; encoder and number of steps are those of all networks.
Early stopping waits for one part in ``part`` of the epochs; with None it never stops. The table
has, for each method, rate and part, the mean and the worst ratio of regret to that with a rate of
3e-3 and a fifth of the epochs, the default, and the mean seconds of a fit. Rows are kept in
schedules.jsonl; `code` is the commit they were made by.

    python benchmarks/zoo/schedules.py                        # the table of the kept rows
    python benchmarks/zoo/schedules.py --run --out FILE       # all that FILE lacks
"""

from collections import defaultdict
from dataclasses import replace
from itertools import product
from pathlib import Path
from statistics import mean

from studies import fit, study
from studies import read as read

KEPT = Path(__file__).with_suffix(".jsonl")
METHODS = (
    "df2-quick",
    "two-stage-gmm3",
    "two-stage-quantiles",
    "policy-net",
    "two-stage-pe",
)
BASE = (3e-3, 5)
SCHEDULES = (BASE, (1e-2, 5), (1e-3, None), (3e-3, None), (1e-2, None))


def run(problem, name, rate, part, device="cpu"):
    """The row of one fit."""

    def change(method, rows):
        training = replace(method.trains(), lr=rate)
        epochs = training.for_rows(rows).epochs
        patience = epochs if part is None else max(1, epochs // part)
        return method.changed(training=replace(training, patience=patience))

    _, facts = fit(problem, name, change, device)
    return facts | {"rate": rate, "part": part}


def ratios(rows):
    """By method and schedule: of problems that have all schedules, regret over that with BASE."""
    regret = defaultdict(dict)
    for row in rows:
        regret[row["method"], row["problem"]][row["rate"], row["part"]] = row["regret"]
    found = defaultdict(list)
    for (method, _), by_schedule in sorted(regret.items()):
        if set(by_schedule) >= set(SCHEDULES) and by_schedule[BASE] > 0:
            for schedule in SCHEDULES:
                found[method, schedule].append(by_schedule[schedule] / by_schedule[BASE])
    return found


def table(rows):
    """Lines of text: method, rate, part, mean and worst ratio, seconds, number of problems."""
    found, seconds = ratios(rows), defaultdict(list)
    for row in rows:
        for name in (row["method"], *(["all opponents"] * (row["method"] in METHODS[1:]))):
            seconds[name, (row["rate"], row["part"])].append(row["seconds"])
    for schedule in SCHEDULES:
        found["all opponents", schedule] = [
            ratio for name in METHODS[1:] for ratio in found[name, schedule]
        ]
    return [
        f"{name:20} {rate:<6g} {part or 'none':<5} {mean(of):.3f} {max(of):6.3f} "
        f"{mean(seconds[name, (rate, part)]):.1f} s  n={len(of)}"
        for (name, (rate, part)), of in found.items()
        if of
    ]


def main():
    cases = [(method, *schedule) for method, schedule in product(METHODS, SCHEDULES)]
    study(
        __doc__,
        KEPT,
        cases,
        lambda row: (row["method"], row["rate"], row["part"]),
        lambda problem, *case: [run(problem, *case)],
        table,
    )


if __name__ == "__main__":
    main()
