"""The terms of a contest as tables: the settings of each method, and the files of the data."""

import inspect
from collections.abc import Sequence
from functools import partial
from math import ceil
from pathlib import Path
from typing import Any

from costscape.bench.catalog import FAMILIES, METHODS
from costscape.bench.method_names import TUNED, method_of
from costscape.bench.problem_names import problem_named
from costscape.bench.search_space import inner_of
from costscape.bench.tuning_rows import best_settings, best_trial
from costscape.methods import Method
from costscape.methods.saving import from_json, to_json
from costscape.models.encoders import by_shape
from costscape.problems import __file__ as problems
from costscape.problems.files.sources import PUBLIC, digest, find
from costscape.problems.problem import Problem
from costscape.task import Refusal

COMPONENTS = 3  # of the mixture that stands for a family
COLUMNS = (
    *("method", "encoder", "dropout", "rate", "batch", "epochs", "steps", "patience", "smooth"),
    *("folds", "tuned"),
)
NONE = "-"
EMBEDDED = Path(problems).parent / "embedded"


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
    for path in sorted(EMBEDDED.glob("*.*z")):
        rows.append(["embedded", f"`{path.name}`", f"`{digest(path)}`", *["yes"] * check])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _network(method: Method, p: Problem) -> list[str]:
    """The encoder and the training of a method."""
    inner, train = inner_of(method), p.data.train
    training = inner.trains()
    if training is None:
        return [NONE] * 8
    now = training.for_rows(len(train))
    rate = training.lr or inner.default_rate
    assert now.epochs is not None
    steps = now.epochs * ceil(len(train) / now.batch_size)
    encoder, dropout = _encoder(inner, p)
    numbers = (now.batch_size, now.epochs, steps, now.patience, now.smooth)
    return [encoder, dropout, "several" if rate is None else f"{rate:g}", *map(str, numbers)]


def _encoder(method: Method, p: Problem) -> tuple[str, str]:
    """The class with its layers and their width, and the dropout."""
    if "encoder" not in method.setting_names():
        return "several", "several"
    usual = to_json(by_shape(tuple(p.data.train.x.shape[1:])))
    builder: Any = getattr(method, "encoder", None)
    if builder is None:
        builder = from_json(method.resolved_defaults(p.data.train).get("encoder", usual))
    kind = builder.func if isinstance(builder, partial) else builder
    takes = {name: arg.default for name, arg in inspect.signature(builder).parameters.items()}
    size = f" {takes['layers']} x {takes['hidden']}" if "layers" in takes else ""
    return f"{kind.__name__}{size}", f"{takes.get('dropout', 0.0):g}"


def _folds(method: Method) -> str:
    return str(getattr(method, "folds", 1))


def _trials(name: str, problem: str, tuning: Path, quick: bool) -> str:
    """How many trials chose the settings of a method."""
    searched, mark, _ = name.partition(TUNED)
    if not mark:
        return "no"
    return f"best of {best_trial(tuning, problem, quick, searched)['trials']}"


def _same(equal: bool) -> str:
    return "yes" if equal else "other content"
