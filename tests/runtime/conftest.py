"""Small fitted models and their exported files, made once: tracing takes a second each."""

from functools import partial

import numpy as np
import pandas as pd
import pytest

import costscape as cs
from costscape import runtime

RNG = np.random.default_rng(0)
N = 90
TRAINING = cs.Training(epochs=2, progress=False)


def _inventory():
    """Windows of a series, an LSTM, outcomes as multiples of the level; convex."""
    X = RNG.random((N, 6, 1))
    Y = X.mean(1) + RNG.random((N, 2))
    encoder = partial(cs.LSTM, 1, hidden=8, layers=1)
    form = cs.WindowLevels(cs.LocationScale())
    task = cs.problems.inventory(days=2)
    model = cs.DF2(task, encoder=encoder, outcomes=form, points=20, folds=2, training=TRAINING)
    return model.fit(X, Y), X


def _wind():
    """The default blend of forms, on a cost with jumps; named columns and units."""
    X = pd.DataFrame(RNG.random((N, 3)), columns=["temp", "wind", "price"])
    Y = pd.DataFrame(X.to_numpy()[:, :2] + RNG.random((N, 2)), columns=["h1", "h2"])
    encoder = partial(cs.MLP, 3, hidden=8)
    task = cs.problems.wind_bidding(hours=2)
    model = cs.DF2(task, encoder=encoder, points=24, folds=2, training=TRAINING)
    return model.fit(X, Y), X


def _bids():
    """Nearest neighbours in place of networks, whose files take longer to make; named columns."""
    X = pd.DataFrame(RNG.random((N, 3)), columns=["temp", "wind", "price"])
    Y = pd.DataFrame(X.to_numpy()[:, :2] + RNG.random((N, 2)), columns=["h1", "h2"])
    return cs.NearestNeighbours(cs.problems.wind_bidding(hours=2), k=7).fit(X, Y), X


def _synthetic():
    """Outcomes that all x share, a cost that is not convex."""
    X = RNG.normal(size=(N, 2))
    Y = X + RNG.normal(size=(N, 2))
    task = cs.problems.synthetic_nonconvex()
    model = cs.DF2(task, outcomes=cs.Absolute(), points=40, folds=1, training=TRAINING)
    return model.fit(X, Y), X


def _packs():
    """Whole packs, nearest neighbours."""
    X = RNG.random((N, 2))
    Y = 10 * X[:, :1] + RNG.random((N, 1))
    task = cs.newsvendor(under=3.0, over=1.0, upper=12.0, pack=0.75, dim=1)
    return cs.NearestNeighbours(task, k=7).fit(X, Y[:, 0]), X


def _shared_truck():
    """A budget, which no search of a file takes: the policy is distilled."""
    X = RNG.random((N, 2))
    Y = 4 * X + RNG.random((N, 2))
    task = cs.newsvendor(under=3.0, over=1.0, capacity=5.0, dim=2)
    return cs.NearestNeighbours(task, k=7).fit(X, Y), X


MAKE = {
    "inventory": _inventory,
    "wind": _wind,
    "bids": _bids,
    "synthetic": _synthetic,
    "packs": _packs,
    "budget": _shared_truck,
}


@pytest.fixture(scope="session")
def exported(tmp_path_factory):
    """exported(name): the fitted model, X, the summary of the export and the loaded file."""
    known = {}

    def exported(name):
        if name not in known:
            model, X = MAKE[name]()
            path = tmp_path_factory.mktemp("exported") / f"{name}.onnx"
            made = model.export(path, units={"price": "EUR"} if name == "bids" else None)
            known[name] = model, X, made, runtime.load(path)
        return known[name]

    return exported
