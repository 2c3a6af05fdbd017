"""The terms of a contest as tables: the settings of each method, and the files of the data."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from costscape.bench.catalog import FAMILIES, METHODS
from costscape.bench.method_names import TUNED, method_of
from costscape.bench.network_terms import network_terms
from costscape.bench.problem_names import problem_named
from costscape.bench.tuning_rows import best_settings, best_trial
from costscape.methods import Method
from costscape.problems.files.samples import EMBEDDED, SHA256
from costscape.problems.files.sources import PUBLIC, digest, find
from costscape.problems.problem import Problem
from costscape.task import Refusal

COMPONENTS = 3  # of the mixture that stands for a family
COLUMNS = (
    *("method", "encoder", "dropout", "rate", "batch", "epochs", "steps", "patience", "smooth"),
    *("folds", "tuned"),
)
NONE = "-"
OTHER = "other content"


def usual_names() -> list[str]:
    """All named methods, with one mixture of each family."""
    return [*METHODS, *(f"{family}{COMPONENTS}" for family in FAMILIES)]


def settings_table(problem: str, methods: Sequence[str], tuning: Path, quick: bool = False) -> str:
    """What differs between methods on a problem, read from the methods themselves, as Markdown.

    Args:
        problem: name of the problem; its data of seed 0.
        methods: names of methods; those that refuse the problem are left out.
        tuning: the folder of searches, for names with +tuned.
        quick: whether the searches were quick ones.
    """
    p = problem_named(problem)(0)
    tuned = partial(best_settings, tuning, problem, quick)
    rows: list[Sequence[str]] = [COLUMNS, ["---"] * len(COLUMNS)]
    for name in methods:
        try:
            method = method_of(name, tuned)(p, 0)
        except Refusal:
            continue
        trials = _trials(name, problem, tuning, quick)
        rows.append([f"`{name}`", *_network(method, p), _folds(method), trials])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def data_table(check: bool = False) -> str:
    """The data files and their SHA-256, unpacked where the name ends in .gz, as Markdown.

    Args:
        check: whether to hash the files of this machine, too, and add what was found.
    """
    header = ["set", "file", "SHA-256", *["here"] * check]
    rows: list[Sequence[str]] = [header, ["---"] * len(header)]
    for name, files in PUBLIC.items():
        paths = find(name) if check else None
        for i, file in enumerate(files):
            here = NONE if paths is None else _same(digest(paths[i]) == file.sha256)
            rows.append([name, f"`{file.name}`", f"`{file.sha256}`", *[here] * check])
    for embedded, sha256 in SHA256.items():
        here = _same(digest(EMBEDDED / embedded) == sha256) if check else NONE
        rows.append(["embedded", f"`{embedded}`", f"`{sha256}`", *[here] * check])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _network(method: Method, p: Problem) -> list[str]:
    terms = network_terms(method, p.data.train)
    columns = COLUMNS[1:-2]
    return [NONE if terms is None else _text(terms[name]) for name in columns]


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _folds(method: Method) -> str:
    return str(getattr(method, "folds", 1))


def _trials(name: str, problem: str, tuning: Path, quick: bool) -> str:
    """How many trials chose the settings of a method."""
    searched, mark, _ = name.partition(TUNED)
    if not mark:
        return "no"
    return f"best of {best_trial(tuning, problem, quick, searched)['trials']}"


def _same(equal: bool) -> str:
    return "yes" if equal else OTHER
