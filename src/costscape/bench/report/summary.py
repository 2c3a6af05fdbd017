"""Rows -> cells: mean and sd over seeds, and the paired difference to the best opponent.

The measure m of a problem is the gap where every successful run has one, else the regret, else
the cost. The best opponent of a problem has the lowest mean m of all methods whose names do not
start with df2 or blend, on the seeds it shares with each (``rivals``); a method with a single seed
counts only if no other has more. ``differences`` compares each method with it; a difference whose
interval holds 0 is a tie. Quick runs have smaller data, so they are a problem of their own.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from costscape.bench.report.best_opponent import best_of
from costscape.bench.report.differences import PairedDifference, paired
from costscape.bench.report.read_rows import Row, label
from costscape.bench.report.row_facts import MEASURES, counted, failure, place, title, title_of

OURS = ("df2", "blend")  # how names of methods of ours start; a blend has DF2 in it


@dataclass(frozen=True)
class Stat:
    """``sd`` has n - 1 in the denominator; None of a single number."""

    mean: float
    sd: float | None
    n: int


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
    quick: bool = False
    is_best_opponent: bool = False
    difference: PairedDifference | None = None

    @property
    def label(self) -> str:
        return label(self.method, self.changes)

    @property
    def title(self) -> str:
        """The problem, and whether the runs are quick ones."""
        return title(self.problem, self.quick)

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


def summarise(rows: Sequence[Row]) -> list[Cell]:
    """Problems in a fixed order; in each, df2 and blend first, then by the mean of the measure."""
    problems: dict[str, dict[str, list[Row]]] = {}
    for (problem, name), runs in grouped(rows).items():
        problems.setdefault(problem, {})[name] = runs
    return [cell for p in sorted(problems, key=place) for cell in _problem(problems[p])]


def grouped(rows: Iterable[Row]) -> dict[tuple[str, str], list[Row]]:
    """The runs of each title and label, in order of seed."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in sorted(rows, key=lambda row: int(row["seed"])):
        groups.setdefault((title_of(row), label(row["method"], row["changes"])), []).append(row)
    return groups


def _problem(groups: dict[str, list[Row]]) -> list[Cell]:
    served = [row for runs in groups.values() for row in _served(runs)]
    measure = next(
        (key for key in MEASURES if served and all(row[key] is not None for row in served)),
        "regret",
    )
    cells = [_cell(group, measure) for group in groups.values()]
    most = max(len(cell.seeds) for cell in cells)
    scored = {name: _scored(runs, measure) for name, runs in groups.items()}
    best = _best_opponent(cells, scored)
    if best is not None:
        against = scored[best.label]
        cells = [
            replace(cell, is_best_opponent=True)
            if cell is best
            else replace(cell, difference=paired(scored[cell.label], against, measure, best.label))
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
        quick=bool(first.get("quick")),
    )


def _best_opponent(cells: list[Cell], scored: dict[str, dict[int, Row]]) -> Cell | None:
    others = sorted((c for c in cells if not c.is_ours and c.score is not None), key=_rank)
    several = [cell for cell in others if len(cell.seeds) > 1]
    best = best_of(
        {
            cell.label: {s: float(row[cell.measure]) for s, row in scored[cell.label].items()}
            for cell in several or others
        }
    )
    return next((cell for cell in others if cell.label == best), None)


def _served(rows: list[Row]) -> list[Row]:
    return [row for row in rows if not row["refused"] and failure(row) is None]


def _scored(rows: list[Row], measure: str) -> dict[int, Row]:
    """The successful rows by seed."""
    return {row["seed"]: row for row in _served(rows) if row[measure] is not None}


def _stat(values: Iterable[Any]) -> Stat | None:
    known = np.array([value for value in values if value is not None], dtype=np.float64)
    if not len(known):
        return None
    sd = float(known.std(ddof=1)) if len(known) > 1 else None
    return Stat(float(known.mean()), sd, len(known))


def _rank(cell: Cell) -> tuple[bool, float, str]:
    return (not cell.is_ours, cell.score.mean if cell.score else math.inf, cell.label)
