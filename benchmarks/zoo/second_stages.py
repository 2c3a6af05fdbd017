"""Which rate serves the second stages of LODL and EGL, and do they need early stopping?

Each fit trains its second stage eight times from the same start: with the rate of the first stage
times 1, 0.3, 0.1 and 0.03, with early stopping as the first stage has it, and without. A row has
the regret and the validation cost of one of them; a rate of 0 is the start. The table has, for
each choice of rates, the mean ratio of regret to that with a rate of 1 and early stopping, the
default. Of several rates the one with the lowest validation cost is taken, and the start where
none decides better than it, as in DFL. Rows are kept in second_stages.jsonl; `code` is the commit
of the library that made them.

    python benchmarks/zoo/second_stages.py                     # the table of the kept rows
    python benchmarks/zoo/second_stages.py --run --out FILE    # all that FILE lacks
"""

from collections import defaultdict
from dataclasses import fields, replace
from itertools import product
from pathlib import Path
from statistics import mean

from studies import read as read
from studies import study

KEPT = Path(__file__).with_suffix(".jsonl")
METHODS = ("egl", "lodl-pe", "lodl-gmm1")
RATES = (1.0, 0.3, 0.1, 0.03)
CHOICES = (*((rate,) for rate in RATES), (0.3, 0.03), (1.0, 0.1), (1.0, 0.3, 0.03), RATES)


def run(problem, name, device="cpu"):
    """The rows of one fit."""
    import torch

    import costscape as cs
    from costscape.bench.method_names import method_of
    from costscape.bench.problem_names import problem_named
    from costscape.bench.provenance import commit
    from costscape.training.fit_state import copy_of
    from costscape.training.settings import RATE

    torch.set_num_threads(1)
    made, _, seed = problem.partition(" seed ")
    p = problem_named(made)(int(seed or 0))
    named, found = method_of(name)(p, 0), {}

    def all_ways(self, task, model, loss, train, val, ways, pairs=None):
        """In the place of the second stage: every rate, with and without early stopping."""
        usual, start = self.training.for_rows(len(train)), copy_of(model)
        for stop, rate in product((True, False), RATES):
            model.load_state_dict(start)
            patience = usual.patience if stop else usual.epochs
            way = replace(ways[0], lr=rate * (self.training.lr or RATE))
            way = replace(way, patience=patience)
            history = self._stage(task, model, loss, train, val, "decisions", way, pairs)
            found[rate, stop] = history, copy_of(model)
        model.load_state_dict(start)
        return [history]

    kind = type(named)
    watched = type(kind.__name__, (kind,), {"_refine": all_ways})
    method = watched(**{f.name: getattr(named, f.name) for f in fields(named) if f.init})
    training = replace(method.trains(), device=device, progress=False)
    method, data = method.changed(training=training), p.data
    method.fit(data.train.x, data.train.y, val=(data.val.x, data.val.y))

    def row(rate, stop, history=None):
        paid = cs.evaluate(method, data.test.x, data.test.y, truth=p.truth)
        return {
            "problem": problem,
            "method": name,
            "rate": rate,
            "stop": stop,
            "regret": paid.regret,
            "gap": paid.gap,
            "val": history and history.best,
            "epoch": history and history.best_epoch,
            "code": commit(),
        }

    rows = [row(0, True)]
    for (rate, stop), (history, state) in found.items():
        method.model_.load_state_dict(state)
        rows.append(row(rate, stop, history))
    return rows


def regret(rows, rates, stop):
    """The regret of a fit whose second stage chooses from ``rates``."""
    better = [rows[rate, stop] for rate in rates if rows[rate, stop]["epoch"] >= 0]
    return min(better, key=lambda row: row["val"], default=rows[0, True])["regret"]


def ratios(rows):
    """By method, choice and stopping: regret over that of the default, one for each problem."""
    fits = defaultdict(dict)
    for row in rows:
        fits[row["method"], row["problem"]][row["rate"], row["stop"]] = row
    found = defaultdict(list)
    for (method, _), of in sorted(fits.items()):
        usual = regret(of, (1.0,), True)
        for stop, rates in product((True, False), CHOICES):
            ratio = regret(of, rates, stop) / usual
            found[method, rates, stop].append(ratio)
            found["all", rates, stop].append(ratio)
        found[method, (0,), True].append(of[0, True]["regret"] / usual)
        found["all", (0,), True].append(of[0, True]["regret"] / usual)
    return found


def table(rows):
    """Lines of text: method, rates, early stopping, mean, least and worst ratio, problems."""
    lines = []
    for (name, rates, stop), of in sorted(ratios(rows).items(), key=lambda item: item[0][0]):
        title = "start" if rates == (0,) else ", ".join(f"{rate:g}" for rate in rates)
        way = "stops" if stop else "never"
        lines.append(
            f"{name:10} {title:18} {way} {mean(of):.3f} {min(of):.2f} {max(of):.2f} n={len(of)}"
        )
    return lines


def main():
    cases = [(method,) for method in METHODS]
    study(__doc__, KEPT, cases, lambda row: (row["method"],), run, table)


if __name__ == "__main__":
    main()
