"""Risk, quantiles, recalibration and service levels of a fitted method."""

from dataclasses import replace

import jaxtyping
import numpy as np
import pandas as pd
import pytest
import torch

import costscape as cs

rng = np.random.default_rng(0)
SIZE = rng.uniform(1.0, 3.0, 900)
X = np.stack([SIZE, rng.normal(size=900)], 1)
Y = SIZE[:, None] * rng.gamma(9.0, 1 / 9, (900, 2))


def terms(y, a):
    return 2 * (y - a).relu() + (a - y).relu()


def no_stock_out(y, a):
    return y - a


CHANCE = cs.Chance(no_stock_out, 0.9)


def task(chance=None):
    return cs.SeparableTask(terms, cs.Box(0.0, 12.0, dim=2), convex=True, chance=chance)


@pytest.fixture(scope="module")
def model():
    return cs.NearestNeighbours(task(), k=15).fit(X[:500], Y[:500])


def numbers(value):
    return np.asarray(value, dtype=float)


def test_a_decision_by_risk_has_less_risk_and_a_larger_mean_than_the_usual_one(model):
    x, risk = X[500:520], cs.CVaR(0.9)
    usual, safe = model.decide(x), model.decide(x, risk=risk)
    lower = model.expected_cost(x, safe, risk=risk)
    assert (lower < model.expected_cost(x, usual, risk=risk) + 1e-6).all()
    assert (model.expected_cost(x, safe) > model.expected_cost(x, usual) - 1e-6).all()
    scenarios = model.scenarios(x)
    wanted = cs.RiskCost(model.task, scenarios, risk)(torch.tensor(safe).float()[:, None])
    assert np.allclose(lower, wanted[:, 0])


def test_quantiles_of_the_cost_are_those_of_the_scenarios(model):
    x = X[500:503]
    a = model.decide(x)
    found = model.cost_quantiles(x, a, levels=(0.0, 0.5, 1.0))
    s = model.scenarios(x)
    cost = model.task.cost(s.values, torch.tensor(a)[:, None].float())
    w = s.weights
    assert np.allclose(found[:, 0], cost.where(w > 0, torch.inf).amin(1), atol=1e-4)
    assert np.allclose(found[:, 2], cost.where(w > 0, -torch.inf).amax(1), atol=1e-4)
    frame = pd.DataFrame(x)
    assert list(model.cost_quantiles(frame, a).columns) == ["0.1", "0.5", "0.9"]


def test_calibrated_quantiles_and_service_hold_on_new_rows():
    model = cs.NearestNeighbours(task(), k=5).fit(X[:300], Y[:300])  # too few scenarios for tails
    x, y = X[600:], Y[600:]
    a = model.decide(x)
    cost = numbers(model.task.cost(torch.tensor(y), torch.tensor(a)))
    before = (cost <= model.cost_quantiles(x, a, (0.9,))[:, 0]).mean()
    served = (y <= model.decide(x, chance=CHANCE)).mean()
    model.calibrate(X[300:600], Y[300:600])
    after = (cost <= model.cost_quantiles(x, a, (0.9,))[:, 0]).mean()
    model.calibrate(X[300:600], Y[300:600], chance=CHANCE)
    orders = model.decide(x, chance=CHANCE)
    assert before < 0.86
    assert abs(after - 0.9) < 0.03
    assert served < 0.87
    assert abs((y <= orders).mean() - 0.9) < 0.03
    assert (model.service(x, orders, CHANCE) >= 0.9 - 0.01).all()
    # another level of the same h is recalibrated, too
    half = model.decide(x, chance=replace(CHANCE, level=0.7))
    assert abs((y <= half).mean() - 0.7) < 0.05
    # plain decisions stay as they are, and a new fit forgets
    assert np.array_equal(model.decide(x), a)
    assert model.fit(X[:300], Y[:300]).calibration_ is None


def test_a_calibrated_model_is_the_same_after_it_was_saved(tmp_path):
    with_level = task(CHANCE)
    model = cs.NearestNeighbours(with_level, k=15).fit(X[:500], Y[:500])
    model.calibrate(X[500:700], Y[500:700])
    model.save(tmp_path / "model")
    again = cs.load(tmp_path / "model", with_level)
    x = X[700:720]
    a = model.decide(x)
    assert np.array_equal(again.decide(x), a)
    assert np.array_equal(again.cost_quantiles(x, a), model.cost_quantiles(x, a))
    assert np.array_equal(again.service(x, a), model.service(x, a))
    assert again.calibration_ == model.calibration_


def test_the_level_of_a_task_is_kept_without_a_word(model):
    always = cs.NearestNeighbours(task(CHANCE), k=15).fit(X[:500], Y[:500])
    x = X[700:720]
    assert np.array_equal(always.decide(x), model.decide(x, chance=CHANCE))
    assert (always.service(x, always.decide(x)) >= 0.9 - 1e-5).all()


def test_an_unattainable_level_says_what_is_attainable():
    small = cs.SeparableTask(terms, cs.Box(0.0, 2.0, dim=2), convex=True)
    model = cs.NearestNeighbours(small, k=15).fit(X[:500], Y[:500])
    with pytest.raises(ValueError, match=r"keeps the service level 0\.9 in \d+ of 20 rows") as e:
        model.decide(X[:20], chance=CHANCE)
    row, best = (str(e.value).split(w)[1].split()[0].rstrip(".") for w in ("row ", "keeps 0"))
    share = numbers(model.service(X[:20], np.full((20, 2), 2.0), CHANCE)).min(1)
    assert float("0" + best) == pytest.approx(share.min(), abs=2e-3)
    assert share[int(row)] == share.min()


def test_a_risk_and_a_level_may_be_combined(model):
    x, risk = X[700:706], cs.Entropic(0.5)
    a = model.decide(x, risk=risk, chance=CHANCE)
    assert (model.service(x, a, CHANCE) >= 0.9 - 1e-5).all()
    free = model.expected_cost(x, model.decide(x, risk=risk), risk=risk)
    assert (model.expected_cost(x, a, risk=risk) >= free - 1e-4).all()


def test_bad_input_is_named(model, monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # it would speak first
    a = model.decide(X[:3])
    for call, word in (
        (lambda: model.decide(X[:3], risk=0.9), "cs.CVaR"),
        (lambda: model.decide(X[:3], chance=0.9), "cs.Chance"),
        (lambda: model.cost_quantiles(X[:3], a, (95,)), "from 0 to 1"),
        (lambda: model.calibrate(X[:5], Y[:5]), "at least 20"),
        (lambda: model.calibrate(X[:50], Y[:50, :1]), "as in fit"),
        (lambda: model.service(X[:3], a), "chance"),
        (lambda: model.decide(X[:3], chance=cs.Chance(lambda y, a: 1.0)), "one number"),
    ):
        with pytest.raises((TypeError, ValueError), match=word):
            call()


def test_a_method_without_scenarios_refuses():
    training = cs.Training(epochs=1, progress=False)
    net = cs.PolicyNet(task(), training=training).fit(X[:100], Y[:100])
    with pytest.raises(cs.Refusal, match="PolicyNet gives none"):
        net.decide(X[:3], risk=cs.CVaR(0.9))
    plain = cs.PlainNetwork(task(), training=training).fit(X[:100], Y[:100])
    with pytest.raises(cs.Refusal, match="PlainNetwork gives none"):
        plain.expected_cost(X[:3], np.ones((3, 2)), risk=cs.CVaR(0.9))
