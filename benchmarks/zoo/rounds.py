"""Which rates serve the rounds of LANCER and TaskMet?

Each row is one fit of one method on one problem of the zoo, or on a synthetic problem drawn with a
seed that no kept run has. Both rates of the rounds are the defaults times ``times``: landscape and
forecast in LANCER, metric and forecast in TaskMet. The least-squares start is that of all
networks. ``epoch`` is the best round, -1 the start, and ``val`` its cost on the validation rows.
The table has, for each method and choice of multiples, the mean ratio of regret to that with the
defaults, the least and the worst, and in how many fits the start was kept. Of several multiples
the fit with the lowest ``val`` is taken. Rows are kept in rounds.jsonl; `code` is the commit of
the library that made them.

    python benchmarks/zoo/rounds.py                     # the table of the kept rows
    python benchmarks/zoo/rounds.py --run --out FILE    # all that FILE lacks
"""

from dataclasses import replace
from itertools import product
from pathlib import Path

from studies import Choices, fit, study
from studies import read as read

KEPT = Path(__file__).with_suffix(".jsonl")
METHODS = ("lancer", "taskmet")
BASE = 1.0
TIMES = (0.3, BASE, 3.0)
CHOICES = (*((times,) for times in TIMES), TIMES)
of_times = Choices("times", TIMES, BASE, CHOICES)


def with_rates(method, times):
    """The method with both rates of its rounds multiplied."""
    if hasattr(method, "landscape"):
        parts = {name: getattr(method, name) for name in ("landscape", "descent")}
        return method.changed(**{k: replace(v, lr=v.lr * times) for k, v in parts.items()})
    inner = replace(method.inner, lr=method.inner.lr * times)
    return method.changed(rate=method.rate * times, inner=inner)


def run(problem, name, times, device="cpu"):
    """The row of one fit."""
    method, facts = fit(problem, name, lambda method, _: with_rates(method, times), device)
    rounds = method.history_[1]
    return facts | {"times": times, "val": rounds.best, "epoch": rounds.best_epoch}


def main():
    from costscape.task import Refusal

    def rows_of(problem, *case):
        try:
            return [run(problem, *case)]
        except Refusal:  # TaskMet needs the slope of a decision
            return []

    cases = list(product(METHODS, TIMES))
    study(__doc__, KEPT, cases, lambda row: (row["method"], row["times"]), rows_of, of_times.table)


if __name__ == "__main__":
    main()
