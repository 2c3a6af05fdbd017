"""Trouble in the data is named, or decisions stay finite, in the set and as good as a constant.

Columns that are constant, equal or of any size, one row, heavy tails, outcomes outside the set,
numbers that are missing or too large, frames in another order.
"""

import sys
import warnings

import numpy as np
import pandas as pd
import torch
from campaign import Campaign, main

import costscape as cs

ROWS = 120
SLACK = 1.1  # against the best constant action, on the rows of the fit


def pairs(seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(ROWS, 3))
    return x, 2 + 0.5 * x[:, :2] + 0.1 * rng.normal(size=(ROWS, 2)), rng


def _scaled(size):
    def change(x, y, rng):
        return x * size, y

    return change


def _column(value):
    def change(x, y, rng):
        return np.column_stack([x, value(x, rng)]), y

    return change


def _put(where, value):
    def change(x, y, rng):
        x, y = x.copy(), y.copy()
        (x if where == "x" else y)[7, 1] = value
        return x, y

    return change


SOUND = {  # a model must come out
    "as it is": lambda x, y, rng: (x, y),
    **{f"scale {s:g}": _scaled(s) for s in (1e-12, 1e-6, 1e6, 1e12)},
    "scales side by side": lambda x, y, rng: (x * [1e-12, 1.0, 1e12], y),
    "constant column": _column(lambda x, rng: np.ones(ROWS)),
    "constant column, large": _column(lambda x, rng: np.full(ROWS, 1e9)),
    "all columns constant": lambda x, y, rng: (np.ones_like(x), y),
    "same column twice": _column(lambda x, rng: x[:, 0]),
    "heavy tails in x": _column(lambda x, rng: rng.standard_cauchy(ROWS) ** 3),
    "an outlier in x": _put("x", 1e15),
    "an outlier in y": _put("y", 1e6),
    # tails of finite variance: a forecast of the mean promises nothing without it
    "heavy tails in y": lambda x, y, rng: (x, y + 0.3 * rng.standard_t(3, (ROWS, 2))),
    "same row 60 times": lambda x, y, rng: (np.repeat(x[:2], 60, 0), np.repeat(y[:2], 60, 0)),
    "constant outcome": lambda x, y, rng: (x, np.ones_like(y)),
    "outcomes below the set": lambda x, y, rng: (x, y - 100),
    "outcomes above the set": lambda x, y, rng: (x, y + 100),
    "all outcomes 0": lambda x, y, rng: (x, 0 * y),
    "eight rows": lambda x, y, rng: (x[:8], y[:8]),
    "one column": lambda x, y, rng: (x[:, 0], y),
    "more columns than rows": lambda x, y, rng: (rng.normal(size=(ROWS, 200)), y),
    "integers": lambda x, y, rng: ((10 * x).astype(int), y),
    "float16": lambda x, y, rng: (x.astype(np.float16), y.astype(np.float16)),
    "fortran order": lambda x, y, rng: (np.asfortranarray(x), np.asfortranarray(y)),
    "negative stride": lambda x, y, rng: (x[::-1], y[::-1]),
}
BAD = {  # an error must come, with these words
    "NaN in x": (_put("x", np.nan), "X needs numbers that are finite"),
    "NaN in y": (_put("y", np.nan), "Y needs numbers that are finite"),
    "infinite x": (_put("x", np.inf), "X needs numbers that are finite"),
    "1e300 in x": (_put("x", 1e300), "X needs numbers that are finite in float32"),
    "1e300 in y": (_put("y", -1e300), "Y needs numbers that are finite in float32"),
    "one row": (lambda x, y, rng: (x[:1], y[:1]), "rows to learn from"),
    "no rows": (lambda x, y, rng: (x[:0], y[:0]), "at least one row"),
    "no columns": (lambda x, y, rng: (x[:, :0], y), "one column"),
    "rows missing": (lambda x, y, rng: (x, y[:-1]), "same number of rows"),
    "texts": (lambda x, y, rng: (x.astype(str), y), "real numbers"),
    "objects": (lambda x, y, rng: (x.astype(object) + 1j, y), "real numbers"),
    "dates": (lambda x, y, rng: (x.astype("datetime64[s]"), y), "real numbers"),
    "ragged lists": (lambda x, y, rng: ([[1.0], [1.0, 2.0]], y[:2]), "rows of equal length"),
    "y of three axes": (lambda x, y, rng: (x, y[..., None]), "axes"),
    "seconds since 1970": (lambda x, y, rng: (1.6e9 + np.arange(ROWS), y), "Subtract their mean"),
    "frames in another order": (
        lambda x, y, rng: (pd.DataFrame(x), pd.DataFrame(y, index=np.arange(ROWS)[::-1])),
        "same order",
    ),
    "frames of other labels": (
        lambda x, y, rng: (
            pd.DataFrame(x, index=np.arange(ROWS) + 5),
            pd.DataFrame(y, index=np.arange(ROWS) + 9),
        ),
        "same labels",
    ),
    "dates that go back": (
        lambda x, y, rng: (
            pd.DataFrame(x, index=pd.date_range("2024", periods=ROWS)[::-1]),
            pd.DataFrame(y, index=pd.date_range("2024", periods=ROWS)[::-1]),
        ),
        "order of time",
    ),
}


def terms(y, a):
    return 3 * (y - a).relu() + (a - y).relu()


def methods():
    task = cs.SeparableTask(terms, cs.Box(0.0, 4.0, dim=2), convex=True)
    brief = cs.Training(epochs=30, lr=0.01, progress=False, device="cpu")
    return {
        "NearestNeighbours": cs.NearestNeighbours(task, k=5),
        "KernelSmoother": cs.KernelSmoother(task),
        "RandomForest": cs.RandomForest(task, trees=10),
        "TwoStage": cs.TwoStage(task, cs.Point(), training=brief),
        "DF2": cs.DF2.quick(task, training=brief),
    }


def trouble(method, x, y):
    """What is wrong with the decisions of a fit on these rows, or an empty text."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("error", RuntimeWarning)
        model = method.fit(x, y)
        a = np.asarray(model.decide(x), dtype=float)
    if not (np.isfinite(a).all() and (a >= -1e-5).all() and (a <= 4 + 1e-5).all()):
        return "decisions are not finite or outside the set"
    outcome, action = torch.tensor(np.array(y, dtype=float)), torch.tensor(a)
    grid = torch.linspace(0, 4, 401).double()
    paid = terms(outcome, action).sum(-1).mean()
    least = terms(outcome[:, None], grid[:, None]).mean(0).min(0).values.sum()
    size = max(float(least), 0.5)
    return "" if paid - least <= (SLACK - 1) * size + 0.5 else f"pays {paid:.4g}, not {least:.4g}"


def run(few=0):
    found = Campaign(__file__, "trouble in the data is named, or decisions are sound")
    some = dict(list(methods().items())[: few or None])
    for name, method in some.items():
        for label, change in SOUND.items():
            x, y = change(*pairs())
            try:
                words = trouble(method, x, y)
            except Exception as error:
                words = f"{type(error).__name__}: {error}"
            found.case(not words, f"{name}, {label}: {words}")
        for label, (change, needed) in BAD.items():
            try:
                method.fit(*change(*pairs()))
                words = "no error"
            except (TypeError, ValueError) as error:
                words = "" if needed in str(error) else f"{type(error).__name__}: {error}"
            except Exception as error:
                words = f"{type(error).__name__}: {error}"
            found.case(not words, f"{name}, {label}: {words}")
    return found


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(main(run, __doc__, few=0))
