"""Facts about single rows: their title, why they failed, their data, how many are alike."""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from costscape.bench.report.read_rows import Row, label

MEASURES = ("gap", "regret", "cost")
ORDER = (
    "synthetic-convex",
    "synthetic-nonconvex",
    "wind",
    "wind-farm",
    "inventory",
    "inventory-store",
    "restaurant",
    "vaccine",
    "vaccine-wave",
    "scheduling",
    "scheduling-measured",
)
QUICK = " (quick)"  # after the problem of quick runs


@dataclass(frozen=True)
class Trouble:
    """One run, or all of a method on a problem, without a number, and why."""

    problem: str
    label: str
    seeds: tuple[int, ...]
    kind: str
    sentence: str


def title(problem: str, quick: bool) -> str:
    """The name under which a problem's runs are compared."""
    return f"{problem}{QUICK}" if quick else problem


def title_of(row: Row) -> str:
    return title(row["problem"], bool(row.get("quick")))


def place(name: str) -> tuple[int, str, int, str]:
    """The order of titles: known problems first, then by name."""
    problem = name.removesuffix(QUICK)
    return (ORDER.index(problem) if problem in ORDER else len(ORDER), *by_number(name))


def by_number(name: str) -> tuple[str, int, str]:
    """A key that sorts by name, with 10 after 3.

    >>> sorted(["item10", "item3", "item"], key=by_number)
    ['item', 'item3', 'item10']
    """
    stem, count, rest = re.fullmatch(r"(\D*)(\d*)(.*)", name).groups()  # type: ignore[union-attr]
    return stem, int(count or 0), rest


def troubles(rows: Sequence[Row]) -> list[Trouble]:
    """Refusals once a method, failures once a sentence."""
    seeds_of: dict[tuple[str, str, str, str], list[int]] = {}
    for row in sorted(rows, key=lambda row: (place(title_of(row)), row["method"], row["seed"])):
        sentence = row["refused"] or failure(row)
        if sentence:
            kind = "refused" if row["refused"] else "failed"
            key = (title_of(row), label(row["method"], row["changes"]), kind, sentence)
            seeds_of.setdefault(key, []).append(row["seed"])
    return [Trouble(p, name, tuple(s), kind, why) for (p, name, kind, why), s in seeds_of.items()]


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


def sources(rows: Iterable[Row]) -> dict[str, int]:
    """The data that was used, and by how many runs; data drawn anew for each seed count as one."""
    names = (row.get("source") for row in rows)
    return counted(
        source and re.sub(r", seed \d+$", ", drawn by seed", source) for source in names
    )


def quick(rows: Sequence[Row]) -> str | None:
    """The warning that rows of small runs need; None without any."""
    small = sum(bool(row.get("quick")) for row in rows)
    if not small:
        return None
    return (
        f"{small} of {len(rows)} runs are quick ones, made small to show that everything works: "
        f"do not compare these numbers."
    )


def counted(values: Iterable[Any]) -> dict[str, int]:
    """How often each value occurs, the most frequent first; None is left out."""
    counts: dict[str, int] = {}
    for value in values:
        if value is not None:
            counts[str(value)] = counts.get(str(value), 0) + 1
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
