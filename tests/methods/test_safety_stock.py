"""SafetyStock: the margin is the known quantile of the errors."""

from functools import partial

import numpy as np
import pytest
import torch

import costscape as cs

SMALL = partial(cs.MLP, 1, hidden=8)


def newsvendor(short, spare):
    def terms(y, a):
        return short * (y - a).clamp(min=0) + spare * (a - y).clamp(min=0)

    return cs.SeparableTask(terms, cs.Box(-9.0, 9.0, dim=1), convex=True)


@pytest.fixture(scope="module")
def pairs():
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(1500, 1))
    return x, 1 + x + 0.3 * rng.normal(size=(1500, 1))


@pytest.mark.parametrize(("short", "level"), [(4.0, 0.8), (0.25, 0.2)])
def test_the_margin_of_a_newsvendor_is_the_quantile_of_the_prices(pairs, short, level):
    x, y = pairs
    training = cs.Training(epochs=15, lr=0.01, progress=False)
    model = cs.SafetyStock(newsvendor(short, 1.0), encoder=SMALL, training=training).fit(x, y)
    assert abs(model.chosen()["levels"][0] - level) <= 0.1001
    with torch.no_grad():
        forecast = model.model_.forecast(torch.tensor(x).float()).values[:, 0].numpy()
    margin = np.quantile((y - forecast)[1200:], model.chosen()["levels"][0])
    assert model.decide(x) == pytest.approx(forecast + margin, abs=2e-3)


def test_without_a_margin_the_point_forecast_is_clearly_worse(pairs):
    x, y = pairs
    task = newsvendor(9.0, 1.0)
    training = cs.Training(epochs=8, lr=0.01, progress=False)
    settings = {"encoder": SMALL, "training": training}
    methods = {
        "point": cs.TwoStage(task, cs.Point(), **settings),
        "stock": cs.SafetyStock(task, **settings),
    }
    found = cs.compare(task, x, y, methods=methods, seeds=1, progress=False)
    assert found.best == "stock"
    # normal errors of deviation 0.3: 10 x 0.3 x phi(1.2816) against 10 x 0.3 x phi(0) / 1
    assert found["stock"].cost == pytest.approx(10 * 0.3 * 0.1755, rel=0.12)
    assert found["point"].cost == pytest.approx(10 * 0.3 * 0.3989, rel=0.12)


def test_each_coordinate_has_its_own_level_where_they_are_decided_one_by_one():
    rng = np.random.default_rng(1)
    x = rng.uniform(size=(1500, 1))
    y = 1 + x + 0.3 * rng.normal(size=(1500, 2))
    short = torch.tensor([9.0, 1 / 9])

    def terms(y, a):
        return short * (y - a).clamp(min=0) + (a - y).clamp(min=0)

    settings = {"encoder": SMALL, "training": cs.Training(epochs=8, lr=0.01, progress=False)}
    box = cs.SafetyStock(cs.SeparableTask(terms, cs.Box(-9.0, 9.0, dim=2)), **settings)
    assert box.fit(x, y).chosen()["levels"] == pytest.approx((0.9, 0.1), abs=0.051)
    both = cs.SafetyStock(
        cs.SeparableTask(terms, cs.Budget(total=50.0, dim=2), convex=True), **settings
    )
    first, second = both.fit(x, y).chosen()["levels"]
    assert first == second


def test_a_file_has_the_levels(tmp_path, pairs):
    x, y = pairs
    task, training = newsvendor(4.0, 1.0), cs.Training(epochs=1, progress=False)
    model = cs.SafetyStock(task, training=training).fit(x, y)
    model.save(tmp_path / "m")
    again = cs.load(tmp_path / "m", task)
    assert np.array_equal(again.decide(x), model.decide(x))
    assert again.chosen() == model.chosen()
