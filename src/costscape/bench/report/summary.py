"""Rows -> cells: mean and sd over seeds, and the paired difference to the best opponent.

The measure m of a problem is the gap where every successful run has one, else the regret, else
the cost. The caller names its methods; all others are opponents. The best opponent of a problem
has the lowest mean m on common seeds (``best_of``); an opponent counts if it has half the seeds of
any other of its kind, at least two where that has several. Two seeds with equal results stand for
all (``seedless``). There is one best opponent for each kind of fits (``fit_kinds``).
``differences`` compares each method with that of its kind or, where its kind has none, with the
best of all; a difference whose interval holds 0 is a tie. Quick runs have smaller data, so they
are a problem of their own. A method whose second stage changes nothing (``two_stage_starts``) is
neither the best opponent nor compared with it, and one that learned from a ``share`` of the
training rows is not the best opponent.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from costscape.bench.report.differences import PairedDifference, paired
from costscape.bench.report.fit_kinds import KINDS, kind_of
from costscape.bench.report.read_rows import Row, label
from costscape.bench.report.row_facts import MEASURES, counted, failure, place, title_of
from costscape.bench.report.seedless import for_every_seed
from costscape.bench.report.two_stage_starts import START, is_unchanged, start_of

MAIN, OURS, BEST, OTHER = "main", "ours", "best", "other"  # roles of cells


@dataclass(frozen=True)
class Stat:
    """``sd`` has n - 1 in the denominator; None of a single number."""

    mean: float
    sd: float | None
    n: int


@dataclass(frozen=True)
class Cell:
    """One method with its changes on one problem.

    - ``title``: the problem, and whether the runs are quick ones.
    - ``seeds``: of the runs that succeeded; ``failed`` of ``runs`` did not.
    - ``most``: the largest number of seeds that a method has on the problem.
    - ``role``: MAIN for the first named method without changes, OURS for other named methods,
      BEST for the best opponent of its kind, OTHER for other opponents.
    - ``difference``: to a best opponent, which it names; None for itself, and if there is nothing
      to compare.
    - ``fit_seconds``, ``decide_seconds``: means.
    - ``by_origin``: the mean measure at each origin, where the runs have origins.
    - ``unchanged``: in how many runs the second stage changed nothing, so that the decisions are
      those of the two-stage start; ``judged`` is in how many that is known.
    """

    problem: str
    title: str
    method: str
    changes: Mapping[str, Any]
    measure: str
    seeds: tuple[int, ...]
    runs: int
    failed: int
    refused: str | None
    regret: Stat | None
    gap: Stat | None
    cost: Stat | None
    fit_seconds: float | None
    decide_seconds: float | None
    devices: tuple[str, ...]
    quick: bool
    role: str
    most: int = 0
    difference: PairedDifference | None = None
    by_origin: tuple[float, ...] = ()
    unchanged: int = 0
    judged: int = 0

    @property
    def is_its_start(self) -> bool:
        """Whether no run is known to have moved from its two-stage start."""
        return 0 < self.unchanged == self.judged

    @property
    def label(self) -> str:
        return label(self.method, self.changes)

    @property
    def kind(self) -> str:
        """Whether it is fitted once, and with searched settings; one of KINDS."""
        return kind_of(self.method, self.changes)

    @property
    def is_ours(self) -> bool:
        return self.role in (MAIN, OURS)

    @property
    def is_best_opponent(self) -> bool:
        return self.role == BEST

    @property
    def score(self) -> Stat | None:
        """The cell's statistics of the problem's measure."""
        stat: Stat | None = getattr(self, self.measure)
        return stat

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a bare number would hide: fewer seeds, second stages without effect, failures."""
        n = len(self.seeds)
        fewer = f"({n} seed{'s' * (n != 1)})" if 0 < n < self.most else ""
        failed = f"failed ({self.failed} of {self.runs})" if self.failed else ""
        same = ""
        if 0 < self.unchanged < self.judged:
            same = f"({START} in {self.unchanged} of {self.judged})"
        return tuple(remark for remark in (fewer, same, failed) if remark)


def summarise(rows: Sequence[Row], ours: Sequence[str] = ()) -> list[Cell]:
    """Summarise the runs of each method on each problem.

    - ``rows``: as ``read_rows`` returns them.
    - ``ours``: the methods whose opponents are wanted. A name stands also for names that go on
      after it with "-" or "+": "df2" for df2-paper.

    Problems are in a fixed order. In each, kinds follow each other; the named methods are first,
    then the lowest measure.
    """
    problems: dict[str, dict[str, list[Row]]] = {}
    for (problem, name), runs in grouped(rows).items():
        problems.setdefault(problem, {})[name] = runs
    return [cell for p in sorted(problems, key=place) for cell in _problem(problems[p], ours)]


def grouped(rows: Iterable[Row]) -> dict[tuple[str, str], list[Row]]:
    """The runs of each title and label, in order of seed."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in sorted(rows, key=lambda row: int(row["seed"])):
        groups.setdefault((title_of(row), label(row["method"], row["changes"])), []).append(row)
    return groups


def is_named(method: str, ours: Sequence[str]) -> bool:
    """Whether the method is one of ours."""
    return any(method == name or method.startswith((f"{name}-", f"{name}+")) for name in ours)


def best_of(scores: Mapping[str, Mapping[Any, float]]) -> str | None:
    """The best of {name: {seed: score}}, where not all have the same seeds; less is better.

    From those with most seeds to those with fewest, each is compared with the best so far by the
    mean over the seeds of both: to have run the easy seeds only wins nothing. One that has none
    of its seeds, or the same mean to four digits, does not replace it: methods that end where
    others began differ in later digits only.
    """
    best = None
    for name in sorted((n for n in scores if scores[n]), key=lambda n: -len(scores[n])):
        common = scores[name].keys() & scores[best].keys() if best else set[Any]()
        if best is None or (
            common and _rounded_mean(scores[name], common) < _rounded_mean(scores[best], common)
        ):
            best = name
    return best


def _rounded_mean(scores: Mapping[Any, float], seeds: Iterable[Any]) -> float:
    return float(f"{np.mean([scores[seed] for seed in sorted(seeds)]):.4g}")


def _problem(groups: dict[str, list[Row]], ours: Sequence[str]) -> list[Cell]:
    served = [row for runs in groups.values() for row in _served(runs)]
    measure = next(
        (key for key in MEASURES if served and all(row[key] is not None for row in served)),
        "regret",
    )
    cells = [_cell(group, measure, ours, _starts(group, groups)) for group in groups.values()]
    most = max(len(cell.seeds) for cell in cells)
    scored = {
        name: {row["seed"]: row for row in _served(runs) if row[measure] is not None}
        for name, runs in groups.items()
    }
    tests = _test_rows(scored)
    scored = {name: for_every_seed(runs, measure, tests) for name, runs in scored.items() if runs}
    ranked = [c for c in sorted(cells, key=_rank) if not c.is_its_start and c.score is not None]
    # with fewer rows a fit answers another question, and is not chosen among by its test costs
    others = [cell for cell in ranked if not cell.is_ours and "share" not in cell.changes]
    best = {kind: _best([c for c in others if c.kind == kind], scored, measure) for kind in KINDS}
    of_all = _best([cell for cell in others if cell.label in best.values()], scored, measure)
    compared = []
    for cell in cells:
        difference, opponent = None, best[cell.kind] or of_all
        if opponent is not None and cell.label != opponent and cell in ranked:
            difference = paired(scored[cell.label], scored[opponent], measure, opponent)
        role = BEST if cell.label == best[cell.kind] else cell.role
        compared.append(replace(cell, role=role, most=most, difference=difference))
    return sorted(compared, key=_rank)


def _best(
    cells: Sequence[Cell], scored: Mapping[str, Mapping[int, Row]], measure: str
) -> str | None:
    """The label of the best of these opponents, leaving out those with few seeds.

    Seeds that none of them was run with do not count, though some may stand for every seed.
    """
    seeds = {seed for cell in cells for seed in cell.seeds}
    scores = {
        cell.label: {s: float(row[measure]) for s, row in scored[cell.label].items() if s in seeds}
        for cell in cells
    }
    most = max(map(len, scores.values()), default=0)
    enough = max(min(2, most), most / 2)
    return best_of({name: found for name, found in scores.items() if len(found) >= enough})


def _test_rows(scored: Mapping[str, Mapping[int, Row]]) -> dict[int, Any]:
    """The digest of the test rows of each seed; None where methods differ.

    A row without a digest, as old ones are, says nothing of its test rows.
    """
    digests: dict[int, set[Any]] = {}
    for runs in scored.values():
        for seed, row in runs.items():
            digests.setdefault(seed, set()).update({row.get("test_rows")} - {None})
    return {seed: found.pop() if len(found) == 1 else None for seed, found in digests.items()}


def _starts(rows: list[Row], groups: dict[str, list[Row]]) -> dict[int, Row]:
    """The two-stage runs, by seed, from which these runs start; none where they are not kept."""
    name = start_of(rows[0]["method"])
    same = groups.get(label(name, rows[0]["changes"]), []) if name else []
    return {row["seed"]: row for row in _served(same)}


def _cell(rows: list[Row], measure: str, ours: Sequence[str], starts: Mapping[int, Row]) -> Cell:
    first, name = rows[0], label(rows[0]["method"], rows[0]["changes"])
    seeds = [row["seed"] for row in rows]
    if len(set(seeds)) < len(seeds):
        twice = next(seed for seed in seeds if seeds.count(seed) > 1)
        raise ValueError(
            f"A summary needs each run once, but {name} on {first['problem']} has seed {twice} "
            f"more than once. Keep one row of it."
        )
    served = _served(rows)
    known = [is_unchanged(row, starts.get(row["seed"]), measure) for row in served]
    fit, decide = (_stat(served, f"{what}_seconds") for what in ("fit", "decide"))
    main = MAIN if ours and name == ours[0] else OURS
    return Cell(
        problem=first["problem"],
        title=title_of(first),
        method=first["method"],
        changes=dict(first["changes"]),
        measure=measure,
        seeds=tuple(row["seed"] for row in served),
        runs=len(rows),
        failed=sum(failure(row) is not None for row in rows),
        refused=" ".join(counted(row["refused"] or None for row in rows)) or None,
        regret=_stat(served, "regret"),
        gap=_stat(served, "gap"),
        cost=_stat(served, "cost"),
        fit_seconds=fit.mean if fit else None,
        decide_seconds=decide.mean if decide else None,
        devices=tuple(counted(row["device"] for row in served)),
        quick=bool(first.get("quick")),
        role=main if is_named(first["method"], ours) else OTHER,
        by_origin=_by_origin(served, measure),
        unchanged=known.count(True),
        judged=len(known) - known.count(None),
    )


def _by_origin(rows: list[Row], measure: str) -> tuple[float, ...]:
    """The mean over seeds at each origin; empty where a row has no origins or no measure."""
    parts = [[one[measure] for one in row.get("by_origin", ())] for row in rows]
    if not parts or not all(parts) or any(value is None for part in parts for value in part):
        return ()
    return tuple(float(value) for value in np.mean(parts, axis=0))


def _served(rows: list[Row]) -> list[Row]:
    """The rows of runs that succeeded."""
    return [row for row in rows if not row["refused"] and failure(row) is None]


def _stat(rows: list[Row], field: str) -> Stat | None:
    known = np.array([row[field] for row in rows if row[field] is not None], dtype=np.float64)
    if not len(known):
        return None
    sd = float(known.std(ddof=1)) if len(known) > 1 else None
    return Stat(float(known.mean()), sd, len(known))


def _rank(cell: Cell) -> tuple[int, bool, float, str]:
    score = cell.score.mean if cell.score else math.inf
    return (KINDS.index(cell.kind), not cell.is_ours, score, cell.label)
