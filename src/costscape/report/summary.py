"""Rows -> cells: mean and sd over seeds, and the paired difference to the best opponent.

    d_i  = m_i(method) - m_i(opponent)                     over the seeds i that both have
    95 % = mean d +- t_{.975, n-1} sd(d) / sqrt(n)         Student, paired

m is the problem's measure: the gap where every run that went through has one, else the regret,
else the cost. The best opponent of a problem has the lowest mean m of all methods whose names do
not start with df2, on the seeds it shares with each (``rivals``); those with a single seed are
asked only if no other has more. A difference whose interval holds 0 is a tie.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from costscape.report.rivals import best_of
from costscape.report.rows import Row, label

MEASURES = ("gap", "regret", "cost")
ORDER = (
    "synthetic-convex",
    "synthetic-nonconvex",
    "wind",
    "wind-farm",
    "inventory",
    "inventory-store",
    "vaccine",
    "vaccine-wave",
)
OURS = "df2"


@dataclass(frozen=True)
class Stat:
    """``sd`` has n - 1 in the denominator; None of a single number."""

    mean: float
    sd: float | None
    n: int


@dataclass(frozen=True)
class Difference:
    """Method minus opponent over ``n`` common seeds; no interval of fewer than two."""

    opponent: str
    n: int
    mean: float | None
    low: float | None
    high: float | None

    @property
    def verdict(self) -> str:
        if self.n == 0:
            return "no common seed"
        if self.low is None or self.high is None:
            return "one common seed, no interval"
        if self.low <= 0 <= self.high:
            return "tie"
        return "better" if self.high < 0 else "worse"


@dataclass(frozen=True)
class Cell:
    """One method with its changes on one problem.

    ``seeds`` went through, ``failed`` of ``runs`` did not; ``most`` is the largest number of
    seeds a method has on the problem. ``difference`` is None for the best opponent itself, and
    where there is nothing to compare. Seconds are means.
    """

    problem: str
    method: str
    changes: Mapping[str, Any]
    measure: str
    seeds: tuple[int, ...]
    runs: int
    failed: int
    most: int
    refused: str | None
    regret: Stat | None
    gap: Stat | None
    cost: Stat | None
    fit_seconds: float | None
    decide_seconds: float | None
    devices: tuple[str, ...]
    is_best_opponent: bool = False
    difference: Difference | None = None

    @property
    def label(self) -> str:
        return label(self.method, self.changes)

    @property
    def is_ours(self) -> bool:
        return self.method.startswith(OURS)

    @property
    def score(self) -> Stat | None:
        """The cell's statistics of the problem's measure."""
        found: Stat | None = getattr(self, self.measure)
        return found

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a bare number would hide: fewer seeds than others, and failed runs."""
        n = len(self.seeds)
        fewer = f"({n} seed{'s' * (n != 1)})" if 0 < n < self.most else ""
        failed = f"failed ({self.failed} of {self.runs})" if self.failed else ""
        return tuple(remark for remark in (fewer, failed) if remark)


@dataclass(frozen=True)
class Trouble:
    """One run, or all of a method on a problem, without a number, and why."""

    problem: str
    label: str
    seeds: tuple[int, ...]
    kind: str
    sentence: str


def summarise(rows: Sequence[Row]) -> list[Cell]:
    """Problems in a fixed order; in each, names of df2 first, then by the mean of the measure."""
    problems: dict[str, dict[str, list[Row]]] = {}
    for (problem, name), runs in grouped(rows).items():
        problems.setdefault(problem, {})[name] = runs
    return [cell for p in sorted(problems, key=_place) for cell in _problem(problems[p])]


def troubles(rows: Sequence[Row]) -> list[Trouble]:
    """Refusals once a method, failures once a sentence."""
    found: dict[tuple[str, str, str, str], list[int]] = {}
    for row in sorted(rows, key=lambda row: (_place(row["problem"]), row["method"], row["seed"])):
        sentence = row["refused"] or failure(row)
        if sentence:
            kind = "refused" if row["refused"] else "failed"
            key = (row["problem"], label(row["method"], row["changes"]), kind, sentence)
            found.setdefault(key, []).append(row["seed"])
    return [Trouble(p, name, tuple(s), kind, why) for (p, name, kind, why), s in found.items()]


def failure(row: Row) -> str | None:
    """Why a run gave no number: the last line of its traceback, or what it lacks."""
    if row["refused"]:
        return None
    if row["error"] is not None:
        lines = [line.strip() for line in row["error"].splitlines() if line.strip()]
        return lines[-1] if lines else "the run failed without a word"
    known = {key: row[key] for key in MEASURES if row[key] is not None}
    for key, value in known.items():
        if not math.isfinite(value):
            return f"the {key} is {value}"
    return None if known else "no regret, gap or cost was kept"


def grouped(rows: Iterable[Row]) -> dict[tuple[str, str], list[Row]]:
    """The runs of each problem and label, in order of seed."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in sorted(rows, key=lambda row: int(row["seed"])):
        groups.setdefault((row["problem"], label(row["method"], row["changes"])), []).append(row)
    return groups


def sources(rows: Iterable[Row]) -> dict[str, int]:
    """The data that was used, and by how many runs; data drawn anew for each seed count as one."""
    told = (row.get("source") for row in rows)
    return counted(source and re.sub(r", seed \d+$", ", drawn by seed", source) for source in told)


def quick(rows: Sequence[Row]) -> str | None:
    """The warning that rows of small runs need; None without any."""
    small = sum(bool(row.get("quick")) for row in rows)
    if not small:
        return None
    return (
        f"{small} of {len(rows)} runs are quick ones, made small to show that everything works: "
        f"their numbers compare nothing."
    )


def counted(values: Iterable[Any]) -> dict[str, int]:
    """How often each value occurs, the most frequent first; None is left out."""
    counts: dict[str, int] = {}
    for value in values:
        if value is not None:
            counts[str(value)] = counts.get(str(value), 0) + 1
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _place(problem: str) -> tuple[int, str]:
    return (ORDER.index(problem) if problem in ORDER else len(ORDER), problem)


def _problem(groups: dict[str, list[Row]]) -> list[Cell]:
    served = [row for runs in groups.values() for row in _served(runs)]
    measure = next(
        (key for key in MEASURES if served and all(row[key] is not None for row in served)),
        "regret",
    )
    cells = [_cell(group, measure) for group in groups.values()]
    most = max(len(cell.seeds) for cell in cells)
    best = _best_opponent(cells, {name: _scores(runs, measure) for name, runs in groups.items()})
    if best is not None:
        against = _scores(groups[best.label], measure)
        cells = [
            replace(cell, is_best_opponent=True)
            if cell is best
            else replace(
                cell,
                difference=_difference(_scores(groups[cell.label], measure), against, best.label),
            )
            if cell.score is not None
            else cell
            for cell in cells
        ]
    return sorted((replace(cell, most=most) for cell in cells), key=_rank)


def _cell(rows: list[Row], measure: str) -> Cell:
    first = rows[0]
    seeds = [row["seed"] for row in rows]
    if len(set(seeds)) < len(seeds):
        twice = next(seed for seed in seeds if seeds.count(seed) > 1)
        raise ValueError(
            f"A summary needs each run once, but {label(first['method'], first['changes'])} on "
            f"{first['problem']} has seed {twice} more than once. Keep one row of it."
        )
    served = _served(rows)
    times = {key: _stat(row[key] for row in served) for key in ("fit_seconds", "decide_seconds")}
    return Cell(
        problem=first["problem"],
        method=first["method"],
        changes=dict(first["changes"]),
        measure=measure,
        seeds=tuple(row["seed"] for row in served),
        runs=len(rows),
        failed=sum(failure(row) is not None for row in rows),
        most=0,
        refused=" ".join(counted(row["refused"] or None for row in rows)) or None,
        regret=_stat(row["regret"] for row in served),
        gap=_stat(row["gap"] for row in served),
        cost=_stat(row["cost"] for row in served),
        fit_seconds=times["fit_seconds"].mean if times["fit_seconds"] else None,
        decide_seconds=times["decide_seconds"].mean if times["decide_seconds"] else None,
        devices=tuple(counted(row["device"] for row in served)),
    )


def _best_opponent(cells: list[Cell], scores: dict[str, dict[int, float]]) -> Cell | None:
    others = sorted((c for c in cells if not c.is_ours and c.score is not None), key=_rank)
    several = [cell for cell in others if len(cell.seeds) > 1]
    best = best_of({cell.label: scores[cell.label] for cell in several or others})
    return next((cell for cell in others if cell.label == best), None)


def _served(rows: list[Row]) -> list[Row]:
    return [row for row in rows if not row["refused"] and failure(row) is None]


def _scores(rows: list[Row], measure: str) -> dict[int, float]:
    return {row["seed"]: float(row[measure]) for row in _served(rows) if row[measure] is not None}


def _difference(ours: dict[int, float], theirs: dict[int, float], opponent: str) -> Difference:
    common = sorted(ours.keys() & theirs.keys())
    found = _stat(ours[seed] - theirs[seed] for seed in common)
    if found is None:
        return Difference(opponent, 0, None, None, None)
    if found.sd is None:
        return Difference(opponent, 1, found.mean, None, None)
    from scipy.stats import t  # slow to import

    half = float(t.ppf(0.975, found.n - 1)) * found.sd / math.sqrt(found.n)
    return Difference(opponent, found.n, found.mean, found.mean - half, found.mean + half)


def _stat(values: Iterable[Any]) -> Stat | None:
    known = np.array([value for value in values if value is not None], dtype=np.float64)
    if not len(known):
        return None
    sd = float(known.std(ddof=1)) if len(known) > 1 else None
    return Stat(float(known.mean()), sd, len(known))


def _rank(cell: Cell) -> tuple[bool, float, str]:
    return (not cell.is_ours, cell.score.mean if cell.score else math.inf, cell.label)
