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

from itertools import product
from pathlib import Path

from studies import Choices, fit, study
from studies import read as read

KEPT = Path(__file__).with_suffix(".jsonl")
METHODS = ("egl", "egl-directed", "lodl-pe", "lodl-directed", "lodl-gmm1")
BASE = 1.5
SPREADS = (0.25, 0.5, 1.0, BASE)
CHOICES = (*((spread,) for spread in SPREADS), (0.5, BASE), SPREADS)
of_spread = Choices("spread", SPREADS, BASE, CHOICES)


def run(problem, name, spread, device="cpu"):
    """The row of one fit."""
    method, facts = fit(problem, name, lambda method, _: method.changed(spread=spread), device)
    second = method.history_[1]
    return facts | {"spread": spread, "val": second.best, "epoch": second.best_epoch}


def main():
    study(
        __doc__,
        KEPT,
        list(product(METHODS, SPREADS)),
        lambda row: (row["method"], row["spread"]),
        lambda problem, *case: [run(problem, *case)],
        of_spread.table,
    )


if __name__ == "__main__":
    main()
