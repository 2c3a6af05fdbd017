"""Which runs of a list have no row yet."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Protocol

from costscape.bench.report.read_rows import Row, label
from costscape.bench.report.row_facts import failure


class Planned(Protocol):
    """A run that a list asks for."""

    @property
    def problem(self) -> str: ...
    @property
    def method(self) -> str: ...
    @property
    def seed(self) -> int: ...
    @property
    def changes(self) -> Mapping[str, Any]: ...


def not_run(planned: Iterable[Planned], rows: Iterable[Row]) -> str:
    """A Markdown list of the runs without a row, methods with the same missing seeds together.

    A refusal is a row, a failure is none. Empty where no run is missing.
    """
    made = {
        (row["problem"], label(row["method"], row["changes"]), row["seed"])
        for row in rows
        if failure(row) is None
    }
    missing: dict[tuple[str, str], set[int]] = {}
    for run in planned:
        name = label(run.method, run.changes)
        if (run.problem, name, run.seed) not in made:
            missing.setdefault((run.problem, name), set()).add(run.seed)
    together: dict[tuple[str, tuple[int, ...]], list[str]] = {}
    for (problem, name), seeds in missing.items():
        together.setdefault((problem, tuple(sorted(seeds))), []).append(name)
    lines = [
        f"- {problem}, {_seeds(seeds)}: {', '.join(names)}"
        for (problem, seeds), names in together.items()
    ]
    return "\n".join(["## Not run", "", *lines]) if lines else ""


def _seeds(seeds: Sequence[int]) -> str:
    if len(seeds) == 1:
        return f"seed {seeds[0]}"
    if len(seeds) > 2 and all(b == a + 1 for a, b in pairwise(seeds)):
        return f"seeds {seeds[0]} to {seeds[-1]}"
    return f"seeds {', '.join(map(str, seeds[:-1]))} and {seeds[-1]}"
