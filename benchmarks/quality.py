"""How good are the decisions of DF2 beside those of the best opponent?

Three tables from the rows of results/, one line a problem: single fits (df2-quick, df2-paper and
opponents that are fitted once), single fits with searched settings (names with +tuned), and
cross-fitted ones (df2, blend and opponents whose name ends in +crossfit). A search and the mean of
several fits help every method, so a method is compared only with those of its table.

The score is the gap on synthetic problems and the regret elsewhere, the mean over n seeds. The
difference is df2-quick, or df2, minus the best opponent, paired by seed and test row. Its 95 %
interval is over blocks of test rows and seeds, or Student's over seeds where the costs of each
test row are not stored. Ten items of one store count as one problem, and so do nine stores and ten
bakeries on which nothing was chosen; each counts with the mean over its seeds, and the items,
stores or bakeries take the place of seeds. Where a problem was cut at several origins, it has a
line for them, too. An opponent with one seed, or less than half the seeds of another, is the best
only if no other has more; the last column names those with a lower score on their seeds. Two seeds
with equal results at every test row, those of a method without chance, stand for all seeds.

python benchmarks/quality.py
"""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from costscape.bench.report import read_rows, summarise, text_table
from costscape.bench.report.fit_kinds import kind_of
from costscape.bench.report.number_format import interval, number
from costscape.bench.report.problem_tables import interval_kind
from costscape.bench.report.row_facts import failure
from costscape.bench.report.summary import Cell, grouped

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
OURS = ("df2", "blend")  # and names that go on after them with - or +
SINGLE, TUNED, CROSSFITTED = ("df2-quick", "df2-paper"), ("df2-quick+tuned",), ("df2", "blend")
TITLES = {SINGLE: "Single fits", TUNED: "Tuned single fits", CROSSFITTED: "Cross-fitted"}
NUMBERED = re.compile(r"(inventory-(?:item|store)|bakery)(\d+)(, \d+ origins)?")
MANY = {
    "inventory-item": "inventory-items 1-10",
    "inventory-store": "inventory-stores 2-10",
    "bakery": "ten bakeries",
}
# nothing was chosen on their rows; they have no column in the README
SHELF = (MANY["inventory-store"], MANY["bakery"], "restaurant")
# those of other papers have no column in the README
OTHERS = (
    *("shortest-path-deg1", "shortest-path-deg4", "shortest-path-deg6"),
    *("shortest-path-linear-deg6", "scheduling", "cubic-top1", "cubic-top1-linear"),
)
PROBLEMS = (
    *("synthetic-convex", "synthetic-nonconvex", "wind", "wind-farm", "inventory"),
    *("inventory-store", *MANY.values(), "restaurant", "vaccine", "vaccine-wave"),
    *OTHERS,
)
NOT_RUN = "not run"


@dataclass(frozen=True)
class Line:
    """A problem in one of the tables: a cell of each method of ours, and of the best opponent."""

    problem: str
    ours: dict[str, Cell | None]
    best: Cell | None
    lower: tuple[Cell, ...]  # opponents with few seeds and a lower score than all others

    @property
    def first(self):
        """The cell whose difference is shown: df2-quick or df2."""
        return next(iter(self.ours.values()))

    def texts(self):
        d = self.first and self.first.difference
        shown = d is not None and d.mean is not None
        return {
            "problem": self.problem,
            **{name: score(cell) for name, cell in self.ours.items()},
            "best opponent": f"{score(self.best)} {self.best.label}" if self.best else NOT_RUN,
            "difference [95 %]": interval(d.mean, d.low, d.high) if shown else "",
            "interval over": interval_kind(d) or "",
            "": d.verdict if d is not None else "",
            "lower with fewer seeds": ", ".join(cell.label for cell in self.lower),
        }


def score(cell):
    if cell is None or cell.score is None:
        return NOT_RUN
    return f"{number(cell.score.mean)} (n={cell.score.n})"


def read(folder=RESULTS):
    """The rows of full size, with the items of a store as one problem beside the single ones."""
    rows = [row for row in read_rows(folder) if not row["quick"]]
    found = grouped(row for row in rows if NUMBERED.fullmatch(row["problem"]))
    items = [mean_over_seeds(runs) for runs in found.values()]
    return rows + [as_pair(row, items) for row in items]


def mean_over_seeds(runs):
    """One row for the runs of a method that gave a number: the mean of each measure.

    Costs of each test row are averaged where all runs have them, of the same test rows. The row
    has the chosen epochs of all runs, so a second stage counts as without effect only if it had
    none with any seed.
    """
    served = [row for row in runs if not row["refused"] and failure(row) is None]
    if not served:
        return runs[0]
    fields = ("regret", "gap", "cost", "fit_seconds", "decide_seconds")
    means = {name: mean([row[name] for row in served]) for name in fields}
    same = len({row["test_rows"] for row in served}) == 1
    arrays = {
        name: np.mean([row["by_test_row"][name] for row in served], axis=0)
        for name in served[0]["by_test_row"]
        if same and all(name in row["by_test_row"] for row in served)
    }
    merged = {**served[0], **means, "by_test_row": arrays}
    if "by_origin" in merged:
        origins = zip(*(row["by_origin"] for row in served), strict=True)
        merged["by_origin"] = [{k: mean([o[k] for o in one]) for k in one[0]} for one in origins]
    if all("chosen" in row for row in served):
        fits = [fit for row in served for fit in row["chosen"].get("fits", [row["chosen"]])]
        merged["chosen"] = {"fits": fits}
    return merged


def mean(values):
    """The mean; None where a value is missing."""
    return None if None in values else sum(values) / len(values)


def as_pair(row, items):
    """The row as one of a problem of MANY, the item, store or bakery being its seed.

    They share the dates of their test rows, and a date may be bad for all of them. So the test
    rows count as shared, unless methods were tested on different rows of the item.
    """
    digests = {other["test_rows"] for other in items if other["problem"] == row["problem"]}
    same = row["test_rows"] is not None and len(digests - {None}) == 1
    kind, number, origins = NUMBERED.fullmatch(row["problem"]).groups(default="")
    shared = {"problem": MANY[kind] + origins, "test_rows": "dates" if same else None}
    return {**row, **shared, "seed": int(number)}


def of_table(rows, ours):
    """The rows that belong to the table of SINGLE, TUNED or CROSSFITTED methods."""
    kind = kind_of(ours[0], {})
    return [row for row in rows if kind_of(row["method"], row["changes"]) == kind]


def lines(rows, ours):
    """A line for each problem of the table, with cells of None where nothing was run."""
    found = {}
    for cell in summarise(of_table(rows, ours), OURS):
        found.setdefault(cell.problem, {})[cell.label] = cell
    names = [name for problem in PROBLEMS for name in (problem, *_with_origins(problem, found))]
    shown = [problem for problem in names if ours is not TUNED or problem in found]
    return [_line(problem, found.get(problem, {}), ours) for problem in shown]


def _with_origins(problem, found):
    return sorted(name for name in found if name.startswith(f"{problem}, "))


def _line(problem, cells, ours):
    best = next((cell for cell in cells.values() if cell.is_best_opponent), None)
    lower = [
        cell
        for cell in cells.values()
        if best and cell.score and not cell.is_ours and len(cell.seeds) < cell.most
        if "share" not in cell.changes
        if cell.difference and cell.difference.mean is not None and cell.difference.mean < 0
    ]
    return Line(problem, {name: cells.get(name) for name in ours}, best, tuple(lower))


def table(rows, ours):
    texts = [line.texts() for line in lines(rows, ours)]
    if not texts:
        return NOT_RUN
    empty = [name for name in texts[0] if name and not any(line[name] for line in texts)]
    return text_table([{k: v for k, v in line.items() if k not in empty} for line in texts])


def tables(folder=RESULTS):
    """The tables, by title."""
    rows = read(folder)
    return {title: table(rows, ours) for ours, title in TITLES.items()}


if __name__ == "__main__":
    print("\n\n".join(f"{title}\n\n{text}" for title, text in tables().items()))
