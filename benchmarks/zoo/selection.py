"""How should candidates be weighted, and is a fit on all rows better than the mean of the folds?

Each row has the test regrets on one problem of the zoo: of single fits, of cross-fitted ones, of
fits to all rows with the settings the folds chose, and of blends by greedy selection, by the
slopes loss and with equal weights, of DF2's forms and of all candidates. Off boxes and lists the
regrets are those of 120 test rows with a short run of projected Adam. Rows are kept in
selection.jsonl; `code` is the commit they were made by.

    python benchmarks/zoo/selection.py             # the table of the kept rows
"""

import json
from pathlib import Path

KEPT = Path(__file__).with_suffix(".jsonl")
BLENDS = ("forms greedy", "forms slopes", "forms equal", "all greedy", "all slopes", "all equal")


def read():
    return [json.loads(line) for line in KEPT.read_text().splitlines()]


def best_opponent(row):
    """The least regret of a cross-fitted opponent."""
    return min(v for name, v in row["crossfit"].items() if not name.startswith("df2"))


def mean_ratio(pairs):
    """Mean and worst ratio of the pairs, and how many there are."""
    ratios = [one / other for one, other in pairs]
    return f"{sum(ratios) / len(ratios):.3f} {max(ratios):.3f} n={len(ratios)}"


def table(rows):
    lines = ["regret over that of the best cross-fitted opponent: mean, worst"]
    for name in BLENDS:
        pairs = [(row["blend"][name], best_opponent(row)) for row in rows]
        lines.append(f"{name:14} {mean_ratio(pairs)}")
    lines.append("a fit on all rows over the mean of the folds: mean, worst")
    for name in ("forest", "knn"):
        pairs = [(row["all_rows"][name], row["crossfit"][name]) for row in rows]
        lines.append(f"{name:14} {mean_ratio(pairs)}")
    lines.append("cross-fitted over a single fit: mean, worst")
    for name in ("df2 anchored", "gmm3", "forest", "knn"):
        pairs = [(row["crossfit"][name], row["single"][name]) for row in rows if row["single"]]
        lines.append(f"{name:14} {mean_ratio(pairs)}")
    return lines


if __name__ == "__main__":
    print("\n".join(table(read())))
