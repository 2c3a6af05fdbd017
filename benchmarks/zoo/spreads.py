"""How far from the forecast should LODL and EGL sample decisions?

Each row is one fit of one method on one problem of the zoo, or on a synthetic problem drawn with a
seed that no kept run has, with samples whose standard deviation is ``spread`` times that of the
residuals. ``epoch`` is the best epoch of the second stage, -1 the start, and ``val`` its cost on
the validation rows. The table has, for each method and spread, the mean ratio of regret to that
with the default, the least and the worst, and in how many fits the start was kept. Of several
spreads the fit with the lowest ``val`` is taken. Rows are kept in spreads.jsonl; `code` is the
commit of the library that made them.

    python benchmarks/zoo/spreads.py                     # the table of the kept rows
    python benchmarks/zoo/spreads.py --run --out FILE    # all that FILE lacks
"""

from collections import defaultdict
from itertools import product
from pathlib import Path
from statistics import mean

from studies import fit, study
from studies import read as read

KEPT = Path(__file__).with_suffix(".jsonl")
METHODS = ("egl", "egl-directed", "lodl-pe", "lodl-directed", "lodl-gmm1")
BASE = 1.5
SPREADS = (0.25, 0.5, 1.0, BASE)
CHOICES = (*((spread,) for spread in SPREADS), (0.5, BASE), SPREADS)


def run(problem, name, spread, device="cpu"):
    """The row of one fit."""
    method, facts = fit(problem, name, lambda method, _: method.changed(spread=spread), device)
    second = method.history_[1]
    return facts | {"spread": spread, "val": second.best, "epoch": second.best_epoch}


def fits(rows):
    """By method and problem: the rows of all spreads, by spread; those that have them all."""
    found = defaultdict(dict)
    for row in rows:
        found[row["method"], row["problem"]][row["spread"]] = row
    return {key: of for key, of in sorted(found.items()) if set(of) >= set(SPREADS)}


def ratios(rows):
    """By method and choice of spreads: regret over that with BASE, one for each problem."""
    found = defaultdict(list)
    for (method, _), of in fits(rows).items():
        for choice in CHOICES:
            chosen = min((of[spread] for spread in choice), key=lambda row: row["val"])
            ratio = chosen["regret"] / of[BASE]["regret"]
            for name in (method, "all"):
                found[name, choice].append(ratio)
    return found


def table(rows):
    """Lines of text: method, spreads, mean, least and worst ratio, starts kept, problems."""
    kept = defaultdict(int)
    for (method, _), of in fits(rows).items():
        for spread in SPREADS:
            for name in (method, "all"):
                kept[name, (spread,)] += of[spread]["epoch"] < 0
    return [
        f"{name:14} {', '.join(f'{spread:g}' for spread in choice):18} {mean(of):.3f} "
        f"{min(of):.2f} {max(of):.2f} start kept {kept.get((name, choice), '-')} n={len(of)}"
        for (name, choice), of in sorted(ratios(rows).items(), key=lambda item: item[0][0])
    ]


def main():
    study(
        __doc__,
        KEPT,
        list(product(METHODS, SPREADS)),
        lambda row: (row["method"], row["spread"]),
        lambda problem, *case: [run(problem, *case)],
        table,
    )


if __name__ == "__main__":
    main()
