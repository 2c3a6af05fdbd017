"""Are DF2's default decisions better than those of every opponent, and by how much?

Goals and results from the kept rows: `results/`, and `results/quality/` for the items of store 1,
the pooled store and the embedded wind farm. Which of two opponents is better is judged on the
seeds that both share with DF2, were it one; of equals the one with more seeds counts as the best.
Differences are paired, over seeds, or over items where a goal is about the mean over items, with
95 % intervals of Student's t, which one seed does not give.

A second table, of `results/turns/`, has opponents that are averaged as DF2's members are, five
fits that hold out stretches in turn (`python benchmarks/in_turn.py`): a named opponent is a single
fit, and never learns from the validation part.

python benchmarks/quality.py
"""

from collections import defaultdict
from dataclasses import dataclass
from math import sqrt
from pathlib import Path

import numpy as np

from costscape.report import best_of, read_rows, text_table

ROOT = Path(__file__).parents[1]
FOLDERS = (ROOT / "results", ROOT / "results" / "quality")
TURNS = ROOT / "results" / "turns"
OURS = ("df2", "df2-paper")


@dataclass(frozen=True)
class Line:
    what: str
    goal: str
    ours: str
    opponent: str
    difference: str
    met: bool | None  # None: not measured

    def cells(self):
        met = {True: "met", False: "missed", None: "not measured"}[self.met]
        names = ("problem", "goal", "DF2", "best opponent", "difference")
        given = (self.what, self.goal, self.ours, self.opponent, self.difference)
        return {**dict(zip(names, given, strict=True)), "": met}


def scores(rows, measure):
    """{problem: {method and changes: {seed: score}}} of the runs that were carried out."""
    found = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        if row[measure] is not None and not row["quick"]:
            changes = ", ".join(f"{k}={v}" for k, v in sorted(row["changes"].items()))
            name = row["method"] + (f" ({changes})" if changes else "")
            found[row["problem"]][name][row["seed"]] = row[measure]
    return found


def interval(differences):
    """The mean and its 95 % interval; without one where there is a single difference."""
    from scipy.stats import t

    d = np.asarray(differences)
    if len(d) < 2:
        return float(d.mean()), None, None
    half = float(t.ppf(0.975, len(d) - 1)) * d.std(ddof=1) / sqrt(len(d))
    return float(d.mean()), d.mean() - half, d.mean() + half


def is_ours(name):
    return name.split(" ")[0] in OURS


def best_opponent(found, ours):
    """Judged on seeds that ours has."""
    others = {name: by_seed for name, by_seed in found.items() if not is_ours(name)}
    return best_of({n: {s: d[s] for s in d if s in found[ours]} for n, d in others.items()})


def shown(value, unit=""):
    return f"{value:.4g}{unit}"


def with_interval(mean, low, high):
    return shown(mean) if low is None else f"{shown(mean)} [{shown(low)}, {shown(high)}]"


def against_best(found, what, goal, test, ours="df2"):
    """``test(our mean, their mean, high end of the difference)`` says whether the goal is met."""
    if ours not in found:
        return Line(what, goal, "", "", "", None)
    rival = best_opponent(found, ours)
    mean = np.mean(list(found[ours].values()))
    told = f"{shown(mean)} (n={len(found[ours])})"
    if rival is None:
        return Line(what, goal, told, "", "", None)
    seeds = sorted(found[ours].keys() & found[rival].keys())
    theirs = np.mean([found[rival][s] for s in seeds])
    mine = np.mean([found[ours][s] for s in seeds])
    d = interval([found[ours][s] - found[rival][s] for s in seeds])
    other = f"{rival}: {shown(theirs)} (n={len(seeds)})"
    high = d[2] if d[2] is not None else np.inf
    return Line(what, goal, told, other, with_interval(*d), bool(test(mine, theirs, high)))


def at_most(found, what, bound, ours):
    if ours not in found:
        return Line(what, f"<= {bound:g}", "", "", "", None)
    values = list(found[ours].values())
    told = f"{shown(np.mean(values))} (n={len(values)})"
    return Line(what, f"<= {bound:g}", told, "", "", bool(np.mean(values) <= bound))


def over_items(found, what, goal):
    """One number for each item, the mean over its seeds; the items are the pairs."""
    items = sorted(p for p in found if p.startswith("inventory-item") and "df2" in found[p])
    means = defaultdict(dict)
    for item in items:
        for name, by_seed in found[item].items():
            means[name][item] = np.mean(list(by_seed.values()))
    whole = {name: by_item for name, by_item in means.items() if len(by_item) == len(items)}
    return against_best(whole, what, goal, lambda mine, theirs, high: high < 0)


def lines(folders=FOLDERS):
    rows = [row for folder in folders if folder.is_dir() for row in read_rows(folder)]
    regret, gap = scores(rows, "regret"), scores(rows, "gap")
    wind, farm, wave = regret["wind"], regret["wind-farm"], regret["vaccine-wave"]
    below = "under it, interval below 0"

    def clear(mine, theirs, high):
        return high < 0

    return [
        at_most(wind, "wind, single fit", 59.5, "df2 (members=1)"),
        at_most(wind, "wind, averaged fits", 58.4, "df2"),
        against_best(wind, "wind", "5 % under it", lambda m, t, high: m <= 0.95 * t),
        over_items(regret, "inventory, ten items", below),
        against_best(regret["inventory-store"], "inventory, pooled store", below, clear),
        against_best(
            wave, "vaccine-wave", "2 % under it, interval below 0",
            lambda m, t, high: m <= 0.98 * t and high < 0,
        ),
        against_best(
            regret["vaccine"], "vaccine", "a tie at the optimum", lambda m, t, high: m < 1
        ),
        *(
            against_best(
                gap[f"synthetic-{kind}"], f"synthetic {kind}, gap", "44 % of its",
                lambda m, t, high: m <= 0.44 * t,
            )
            for kind in ("convex", "nonconvex")
        ),
        against_best(farm, "embedded wind farm", below, clear),
    ]  # fmt: skip


def table():
    return text_table([line.cells() for line in lines()])


def averaged(folders=FOLDERS, turns=TURNS):
    """DF2 beside each opponent that is averaged as it is; items are one problem, and its pairs."""
    ours = [row for folder in folders for row in read_rows(folder) if row["method"] == "df2"]
    rows = [row for row in ours if not row["changes"]] + read_rows(turns)
    found = defaultdict(lambda: defaultdict(dict))
    gap = scores(rows, "gap")
    for problem, methods in scores(rows, "regret").items():
        for name, by_seed in methods.items():
            if problem.startswith("inventory-item"):
                found["inventory, ten items"][name][problem] = np.mean(list(by_seed.values()))
            elif problem in gap:
                found[f"{problem}, gap"][name] = gap[problem][name]
            else:
                found[problem][name] = by_seed
    cells = []
    for problem, methods in sorted(found.items()):
        mine = methods.pop("df2", {})
        for name, theirs in sorted(methods.items()):
            if pairs := sorted(mine.keys() & theirs.keys()):
                cells.append({"problem": problem, **_beside(name, mine, theirs, pairs)})
    return text_table(cells)


def _beside(name, mine, theirs, pairs):
    mean, low, high = interval([mine[i] - theirs[i] for i in pairs])
    clear = low is not None and not low <= 0 <= high
    return {
        "pairs": str(len(pairs)),
        "DF2": shown(np.mean([mine[i] for i in pairs])),
        "opponent": shown(np.mean([theirs[i] for i in pairs])),
        "averaged opponent": name,
        "difference": with_interval(mean, low, high),
        "": ("better" if mean < 0 else "worse") if clear else "tie",
    }


if __name__ == "__main__":
    print(table())
    print(f"\nAgainst opponents averaged likewise\n\n{averaged()}")
