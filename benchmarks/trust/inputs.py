"""Bad inputs of every public entry get an error of the right type that names what is wrong.

One table of (entry, argument, bad value): every setting of every public class against values of
the wrong type or range, and cases by hand for sets, tasks, data, functions and the command line.
An error is right where it is a ValueError, a TypeError or an OSError, or another of the library,
is raised by the library itself and not inside torch or numpy, and names the argument.
"""

import inspect
import math
import os
import sys
import tempfile
import traceback
import warnings
from dataclasses import MISSING, fields
from pathlib import Path
from typing import get_type_hints

import numpy as np
import torch
from campaign import Campaign, main

import costscape as cs
from costscape.data import Dataset, split, windows
from costscape.training.settings import Checked, _fits

HOME = str(Path(cs.__file__).parent)
RNG = np.random.default_rng(0)
X, Y = RNG.random((60, 3)), 3 * RNG.random((60, 2))
BOX = cs.Box(0.0, 4.0, dim=2)
TASK = cs.SeparableTask(lambda y, a: (y - a).abs(), BOX, convex=True)
WRONG = ("no such", math.nan, 2.5, -1, cs.Training, object(), None, [], {}, True)
RIGHT = (ValueError, TypeError, OSError, cs.Refusal)


def settings():
    """(class, setting, bad value, words) of every public class of settings."""
    needed = {"task": TASK, "method": cs.NearestNeighbours(TASK), "level": 0.9, "theta": 1.0}
    for name in cs.__all__:
        cls = getattr(cs, name)
        if not (isinstance(cls, type) and issubclass(cls, Checked)) or inspect.isabstract(cls):
            continue
        hints = get_type_hints(cls, include_extras=True)
        given = {
            f.name: needed[f.name]
            for f in fields(cls)
            if f.init and f.default is MISSING and f.default_factory is MISSING
        }
        for field in (f for f in fields(cls) if f.init):
            for bad in WRONG:
                if not _fits(bad, hints[field.name]):
                    settings_of = {**given, field.name: bad}
                    yield (
                        f"{name}({field.name}={bad!r})",
                        lambda cls=cls, made=settings_of: cls(**made),
                        field.name,
                    )


NAN, INF = math.nan, math.inf
SETS = {
    "lower": [
        ("Box", lambda v: cs.Box(v, 1.0, dim=2), ("a", NAN, INF, 2.0, [0.0] * 3, [], None, -3e38)),
    ],
    "upper": [
        ("Box", lambda v: cs.Box(0.0, v, dim=2), ("a", NAN, -INF, -1.0, [1.0] * 3, None, 1e30)),
        (
            "Budget",
            lambda v: cs.Budget(total=1.0, dim=2, upper=v),
            ("a", NAN, -1.0, [1.0] * 3, [1.0, -2.0], object()),
        ),
    ],
    "dim": [
        ("Box", lambda v: cs.Box(0.0, 1.0, dim=v), (0, -1, 1.5, "a", None, True, [2])),
        ("Simplex", lambda v: cs.Simplex(dim=v), (0, -1, 1.5, "a", None, True)),
        ("Budget", lambda v: cs.Budget(total=1.0, dim=v), (0, -1, 1.5, "a", None, True)),
    ],
    "total": [
        ("Simplex", lambda v: cs.Simplex(total=v, dim=2), (0, -1.0, NAN, INF, "a", None, 1e-40)),
        ("Budget", lambda v: cs.Budget(total=v, dim=2), (0, -1.0, NAN, INF, "a", None, 1e38)),
    ],
    "step": [
        ("Box", lambda v: cs.Box(0.0, 9.0, dim=2, step=v), (0.0, -1.0, "a", [1.0] * 3)),
        ("Whole", lambda v: cs.Whole(cs.Budget(total=9.0, dim=2), v), (0.0, -1.0, NAN, "a")),
    ],
    "Finite": [
        ("actions", lambda v: cs.Finite(v), ([], [1.0], [[]], "a", [[NAN]], [[INF]], [[1e30]], 3)),
    ],
    "Polytope": [
        (
            "G",
            lambda v: cs.Polytope(G=v, h=[1.0, 1.0]),
            ("a", [1.0, 1.0], [[0.0], [1.0]], [[NAN], [1.0]], None, [[1.0], [2.0]], [[1.0]]),
        ),
        (
            "h",
            lambda v: cs.Polytope(G=[[1.0], [-1.0]], h=v),
            ("a", NAN, INF, [1.0] * 3, None, [-1.0, -1.0]),
        ),
        ("sampler", lambda v: cs.Polytope(G=[[1.0], [-1.0]], h=1.0, sampler=v), ("a", 3)),
    ],
    "actions of": [
        ("contains", lambda v: BOX.contains(torch.zeros(v)), ((3,), (4, 1), ())),
    ],
    "Task": [
        ("cost", lambda v: cs.Task(v, BOX), (None, 3, "a", [])),
        ("feasible", lambda v: cs.Task(lambda y, a: a.sum(-1), v), (None, 3, "a", cs.Box, [])),
        ("convex", lambda v: cs.Task(TASK.f, BOX, convex=v), ("no", 1, None)),
        ("y_dims", lambda v: cs.Task(TASK.f, BOX, y_dims=v), (0, -1, 1.5, "a")),
        ("width", lambda v: cs.Task(TASK.f, BOX, width=v), (0, -1, 1.5, "a")),
        ("hindsight", lambda v: cs.Task(TASK.f, BOX, hindsight=v), (3, "a")),
        ("cvxpy", lambda v: cs.Task(TASK.f, BOX, cvxpy=v), (3, "a")),
        ("normal", lambda v: cs.Task(TASK.f, BOX, normal=v), (3, "a")),
        ("context", lambda v: cs.Task(TASK.f, BOX, context=v), ((), [1.5], [None])),
        ("chance", lambda v: cs.Task(TASK.f, BOX, chance=v), (3, "a", 0.9)),
        ("level", lambda v: cs.Chance(lambda y, a: y - a, level=v), (0, 1, 2.0, NAN, "a", None)),
        ("h", lambda v: cs.Chance(v), (3, "a", None)),
    ],
}


def _fit(x=X, y=Y, **more):
    return cs.NearestNeighbours(TASK, k=5).fit(x, y, **more)


def by_hand():
    """Cases of data and functions: (label, call, words that the error must have)."""
    model = _fit()
    yield from (
        (f"fit X {type(v).__name__} {np.shape(v)}", lambda v=v: _fit(x=v), "X")
        for v in (None, "a", 3, [], [[]], X[:5], X.astype(str), X + 1j, X[:0], [["a"]] * 60)
    )
    yield from (
        (f"fit Y {type(v).__name__} {np.shape(v)}", lambda v=v: _fit(y=v), "Y|cost")
        for v in (None, "a", 3, [], Y[:5], Y.astype(str), Y[:, :, None], np.full((60, 2), NAN))
    )
    yield from (
        (f"fit val {v!r:.30}", lambda v=v: _fit(val=v), "val")
        for v in (3, "ab", (X,), (X, Y[:5]), (X[:, :2], Y), (X, Y[:, :1]), (X[:0], Y[:0]))
    )
    yield from (
        (f"decide {type(v).__name__} {np.shape(v)}", lambda v=v: model.decide(v), "X|rows")
        for v in (None, "a", 3, [], X[:, :2], X[0], X[:0], np.full((2, 3), NAN), X[None])
    )
    yield from (
        (f"decide in {v!r:.30}", lambda v=v: model.decide(X, feasible=v), "feasible|set")
        for v in (3, "a", cs.Box(0.0, 1.0, dim=3), cs.Box, lambda x: 3)
    )
    yield from (
        (f"expected_cost {np.shape(v)}", lambda v=v: model.expected_cost(X, v), "a ")
        for v in (Y[:5], Y[:, :1], np.full((60, 2), NAN), "a", None)
    )
    yield from (
        (f"evaluate block={v!r}", lambda v=v: cs.evaluate(model, X, Y, block=v), "block")
        for v in (0, -1, 1.5, "a", True)
    )
    yield "evaluate Y", lambda: cs.evaluate(model, X, Y[:, :1]), "Y"
    yield "evaluate X", lambda: cs.evaluate(model, X[:, :1], Y), "X|rows"
    yield "evaluate unfitted", lambda: cs.evaluate(cs.NearestNeighbours(TASK), X, Y), "fit"
    yield "decide unfitted", lambda: cs.NearestNeighbours(TASK).decide(X), "fit"
    one = {"constant": cs.Constant(TASK)}
    for name, values in {
        "gap": (1.5, -1, "a"),
        "block": (1.5, 0, "a"),
        "seeds": (0, 1.5, "a"),
        "origins": (0, 1.5, "a"),
        "test": (0.0, 1.0, 2, "a", NAN),
        "prefer": ("fast", 3),
        "budget": ("soon", -1, 0),
        "methods": (3, [cs.Constant(TASK)], {"a": 3}, {}),
        "today": ("no such", 3.5),
    }.items():
        for v in values:
            given = {"methods": one, "progress": False, name: v}
            yield (
                f"compare {name}={v!r:.30}",
                lambda given=given: cs.compare(TASK, X, Y, **given),
                f"{name}|today",
            )
    data = Dataset(torch.rand(50, 2), torch.rand(50, 1))
    for name, values in {
        "reach": (-5, 1.5, "a"),
        "train": (0.0, -1, 2.0, NAN, "a"),
        "val": (0.0, -1, 2.0, NAN, "a"),
    }.items():
        for v in values:
            given = {"train": 0.6, "val": 0.2, name: v}
            yield f"split {name}={v!r}", lambda given=given: split(data, **given), name
    series = torch.zeros(20)
    for name in ("history", "gap", "horizon"):
        for v in (-1, 1.5, "a"):
            given = {"history": 2, "gap": 0, "horizon": 2, name: v}
            yield f"windows {name}={v!r}", lambda given=given: windows(series, **given), name
    for v in (3, "no/such/file", None):
        yield f"load {v!r}", lambda v=v: cs.load(v, TASK), "no such|load|[pP]ath|file|read"


def csv_files(folder):
    """Files that a table refuses: (label, call, words)."""
    texts = {
        "empty": "",
        "header only": "date,sales\n",
        "a word in the numbers": "date,sales\n2024-01-01,1\n2024-01-02,many\n",
        "1e300": "date,sales\n" + "".join(f"2024-01-{d:02},1e300\n" for d in range(1, 29)),
        "inf": "date,sales\n2024-01-01,1\n2024-01-02,inf\n",
        "no date": "date,sales\nsoon,1\nlater,2\n",
        "a date twice": "date,sales\n2024-01-01,1\n2024-01-01,2\n",
        "no such column": "date,other\n2024-01-01,1\n2024-01-02,2\n",
        "binary": "\x00\x01\x02",
    }
    for label, text in texts.items():
        path = folder / f"{label}.csv"
        path.write_text(text)

        def read(path=path):
            table = cs.Table(path, date="date", outcome="sales", lags=[1, 2])
            task = cs.SeparableTask(lambda y, a: (y - a).abs(), cs.Box(0.0, 4.0, dim=1))
            return cs.NearestNeighbours(task, k=2).fit(table.X, table.Y)

        yield f"table {label}", read, "column|date|row|file|csv|finite|rows|Y|X"


def command_lines(folder):
    """Command lines that end with a sentence and a status that is not 0."""
    return [
        ["no-such-command"],
        ["run"],
        ["run", "no-such-problem", "--method", "constant"],
        ["run", "synthetic-convex", "--method", "no-such-method"],
        ["run", "synthetic-convex", "--method", "constant", "--seed", "x"],
        ["run", "synthetic-convex", "--method", "constant", "--no-such-option"],
        ["run", "synthetic-convex", "--method", "constant", "--device", "gpu9"],
        ["run", "synthetic-convex", "--method", "constant", "--set", "k"],
        ["table", "--store", str(folder / "none")],
        ["report", "--store", str(folder / "none")],
        ["fetch", "no-such-data"],
        ["try"],
        ["try", str(folder / "none.csv")],
        ["try", str(folder)],
        ["fit", str(folder / "none")],
        ["check", str(folder / "none")],
        ["decide", str(folder / "none")],
        ["compare", str(folder / "none")],
        ["update", str(folder / "none")],
        ["merge"],
        ["tune", "no-such-problem"],
        ["zoo", "--method", "no-such-method"],
        ["paper", "--problem", "no-such-problem"],
        ["contest", "no-such"],
        ["serve", str(folder / "none")],
        ["demo", "--seed", "x"],
    ]


def fault(call, words):
    """Why the answer to a bad input is not right, or an empty text."""
    import re

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            warnings.simplefilter("error", RuntimeWarning)
            got = call()
    except RIGHT as error:
        frames = traceback.extract_tb(error.__traceback__)
        ours = frames[-1].filename.startswith(HOME)
        # an error of Python's own call names the argument itself
        own = isinstance(error, TypeError) and re.search("argument|PathLike", str(error))
        if not ours and not own and not isinstance(error, OSError):
            return f"raised in {frames[-1].filename}: {type(error).__name__}: {error}"
        return "" if re.search(words, str(error)) else f"does not name {words}: {error}"
    except RuntimeError as error:
        return "" if re.search(words, str(error)) else f"RuntimeError: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return f"no error, but {type(got).__name__}"


def command_fault(line):
    from typer.testing import CliRunner

    from costscape.cli import app

    done = CliRunner().invoke(app, line)
    if done.exit_code == 0:
        return "exit status 0"
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        return f"traceback: {type(done.exception).__name__}: {done.exception}"
    return "" if done.output.strip() else "no words"


def table():
    """All cases in Python: (label, call, words)."""
    yield from settings()
    for words, entries in SETS.items():
        for name, make, values in entries:
            for v in values:
                yield (
                    f"{name} {words}={v!r:.40}",
                    lambda make=make, v=v: make(v),
                    f"{words}|{name}",
                )
    yield from by_hand()


def run(every=1, lines=1):
    """``every``: each k-th case of the table; ``lines``: 0 leaves out the command line."""
    found = Campaign(__file__, "a bad input gets an error that names it")
    here = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        for label, call, words in [*table(), *csv_files(Path(folder))][::every]:
            text = fault(call, words)
            found.case(not text, f"{label}: {text}")
        os.chdir(folder)  # what a command line writes goes with the folder
        for line in command_lines(Path(folder)) if lines else ():
            text = command_fault(line)
            found.case(not text, f"costscape {' '.join(line)}: {text}")
        os.chdir(here)
    return found


if __name__ == "__main__":
    sys.exit(main(run, __doc__, every=1, lines=1))
