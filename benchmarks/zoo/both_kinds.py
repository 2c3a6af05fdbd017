"""Does one network decide better if its outcomes are of both kinds, absolute and anchored?

The softmax of such a network is over points of both kinds, so that attention chooses between
them for each x. Each row is one single fit: `anchored`, the default of one network, `absolute`,
and networks with 32 or 64 points of each kind. The table has, for each of them, the mean, median
and worst ratio of regret, on synthetic problems of the gap, to that of `anchored`. Rows are kept
in both_kinds.jsonl; `code` is the commit of the library that made them.

    python benchmarks/zoo/both_kinds.py                     # the table of the kept rows
    python benchmarks/zoo/both_kinds.py --run --out FILE    # all that FILE lacks
"""

from collections import defaultdict
from pathlib import Path
from statistics import mean, median

from studies import fit, study
from studies import read as read

KEPT = Path(__file__).with_suffix(".jsonl")
BASE = "anchored"
EACH = {"mixed32+32": 32, "mixed64+64": 64}  # points of each kind
VARIANTS = (BASE, "absolute", *EACH)
MEASURES = {"zoo": "regret", "synthetic": "gap"}  # by the beginning of a problem's name


def of_both_kinds(each):
    """What makes the network of DF2, in the place of DF2._network."""
    import torch

    from costscape.models import Units, by_shape, encoder_for
    from costscape.models.outcome_network import RANGE, OutcomeNetwork
    from costscape.scenarios import Scenarios

    class BothKinds(OutcomeNetwork):
        """An anchored network, the first half of whose points are labels as they are."""

        def __init__(self, form, encoder, units, x, y, start, learn_values):
            super().__init__(form, encoder, units, x, y, start, learn_values)
            self.absolute = len(start) // 2
            some = start[: self.absolute]
            with torch.no_grad():
                self.v[: self.absolute] = units.standard(x[some], y[some])

        def forward(self, x):
            z = self.units.inputs(x)
            q = self.encoder(z)
            scale = (RANGE * (self.log_scale(q) / RANGE).tanh()).exp()
            location = self.line(z.flatten(1)) + self.shift(q)
            fixed, moved = self.v[None].split([self.absolute, self.points - self.absolute], 1)
            moved = self._in_shape(location) + self._in_shape(scale) * moved
            v = torch.cat([fixed.expand(len(moved), *fixed.shape[1:]), moved], 1)
            return Scenarios(self._weights(q), self.units.undo(x, v), own=True)

    def network(method, train, form):
        x, y = train.x, train.y
        units, shape = Units(x, y, None, method.standardise), tuple(x.shape[1:])
        encoder = encoder_for(method.encoder or by_shape(shape), shape)
        start = torch.randperm(len(y))[: 2 * each].to(y.device)
        return BothKinds(form, encoder, units, x, y, start, method.learn_values)

    return network


def run(problem, variant):
    """The row of one fit, in a list."""
    import costscape as cs

    usual = cs.DF2._network
    if variant in EACH:
        cs.DF2._network = of_both_kinds(EACH[variant])
    form = cs.Absolute() if variant == "absolute" else cs.Anchored()
    try:
        method, facts = fit(problem, "df2-quick", lambda m, rows: m.changed(outcomes=form))
    finally:
        cs.DF2._network = usual
    (history,) = method.history_
    return [facts | {"variant": variant, "val": history.best, "epoch": history.best_epoch}]


def ratios(rows):
    """By group and variant: measure over that of BASE, of problems that have all variants."""
    by_problem = defaultdict(dict)
    for row in rows:
        by_problem[row["problem"]][row["variant"]] = row
    found = defaultdict(list)
    for problem, of in by_problem.items():
        if set(of) == set(VARIANTS):
            group = next(group for group in MEASURES if problem.startswith(group))
            measure = MEASURES[group]
            for variant in VARIANTS:
                found[group, variant].append(of[variant][measure] / of[BASE][measure])
    return found


def table(rows):
    """Lines of text: group, variant, mean, median and worst ratio, number of problems."""
    return [
        f"{group:10} {variant:11} {mean(of):.3f} {median(of):.3f} {max(of):.3f} n={len(of)}"
        for (group, variant), of in ratios(rows).items()
    ]


if __name__ == "__main__":
    cases = [(variant,) for variant in VARIANTS]
    study(__doc__, KEPT, cases, lambda row: (row["variant"],), run, table)
