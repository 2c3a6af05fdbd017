"""Every forecast in every method that takes it, and the linear head."""

from copy import deepcopy
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch

from costscape import (
    DFL,
    EGL,
    LANCER,
    LODL,
    MLP,
    SOEBM,
    CrossFit,
    Flat,
    Flow,
    Mixture,
    Point,
    ProjectedAdam,
    Quantiles,
    Simplex,
    TaskMet,
    Training,
    TwoStage,
    evaluate,
    load,
)
from costscape.bench import PROBLEMS
from costscape.checks import check_method
from costscape.data import Dataset
from costscape.problems import synthetic_convex
from costscape.task import Refusal, Task

QUICK = Training(epochs=2, batch_size=32, progress=False, device="cpu")
KINDS = [Quantiles(5), Flow(steps=2, hidden=8)]


def quick(cls, task, forecast, **settings):
    small = {"encoder": partial(MLP, 2, hidden=8), "draws": 10, "training": QUICK}
    return cls(task, forecast, **{**small, **settings})


@pytest.mark.parametrize("forecast", KINDS)
@pytest.mark.parametrize("name", ["synthetic-convex", "synthetic-nonconvex"])
@pytest.mark.parametrize("cls", [TwoStage, DFL])
def test_it_keeps_the_contract_of_a_method(cls, name, forecast):
    p = PROBLEMS[name](0)
    check_method(quick(cls, p.task, forecast), p.data.train.x[:80], p.data.train.y[:80])


@pytest.mark.parametrize("forecast", KINDS)
def test_it_keeps_the_contract_on_a_simplex(demand, forecast):
    x, y = demand(60, 3)
    task = Task(lambda y, a: (y * a).sum(-1) + a.square().sum(-1), Simplex(dim=3), convex=True)
    solver = ProjectedAdam(steps=30, starts=1)
    check_method(replace(quick(TwoStage, task, forecast), solver=solver), x, y)


@pytest.mark.parametrize("forecast", [Quantiles(), Flow(hidden=32)])
def test_the_best_stock_is_the_quantile_of_the_true_law(newsvendor, demand, forecast):
    """y - 1 - x_0 is uniform on [0, 1], so the best stock is 1.75 + x_0."""
    x, y = demand(1000)
    told = replace(QUICK, epochs=25, lr=5e-3, score_every=5)
    model = TwoStage(newsvendor(), forecast, draws=200, training=told).fit(x, y)
    assert (model.decide(x) - (1.75 + x[:, :1])).abs().mean() < 0.06


@pytest.mark.parametrize("forecast", KINDS)
def test_the_gradient_of_the_decision_cost_is_that_of_finite_differences(forecast):
    torch.manual_seed(1)
    task = synthetic_convex().double()
    x = torch.rand(24, 2, dtype=torch.float64)
    y = 0.2 + 0.5 * torch.rand(24, 2, dtype=torch.float64)
    method, data = quick(DFL, task, forecast, draws=20), Dataset(x, y)
    model = method._network(data).double().eval()
    with torch.no_grad():
        for p in model.parameters():
            p.add_(0.1 * torch.randn_like(p))
    value = method.loss(task, model, data, torch.Generator().manual_seed(0))
    way = torch.autograd.grad(
        value, list(model.parameters()), allow_unused=True, materialize_grads=True
    )

    def loss(step):
        moved = deepcopy(model)
        with torch.no_grad():
            for p, v in zip(moved.parameters(), way, strict=True):
                p.add_(step * v)
        return method.loss(task, moved, data, torch.Generator().manual_seed(0)).item()

    slope = sum(v.square().sum().item() for v in way)  # along the gradient
    h = 1e-3 / slope**0.5  # the solver stops at its tolerance
    expected = (loss(h) - loss(-h)) / (2 * h)
    assert slope == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize("forecast", KINDS)
@pytest.mark.parametrize("cls", [TwoStage, DFL])
def test_a_fit_that_was_broken_off_ends_with_the_same_bits(
    newsvendor, demand, tmp_path, cls, forecast
):
    x, y = demand()
    training = replace(QUICK, decay=False, epochs=3)
    whole = quick(cls, newsvendor(), forecast, training=training)
    expected = whole.fit(x, y).decide(x)
    path = tmp_path / "fit"
    replace(whole, training=replace(training, epochs=2, checkpoint=path)).fit(x, y)
    if cls is DFL:  # its second stage began from another start
        for file in tmp_path.glob("fit.decisions*"):
            file.unlink()
    again = replace(whole, training=replace(training, checkpoint=path))
    assert torch.equal(again.fit(x, y).decide(x), expected)


def test_scenarios_of_quantiles_are_joined_by_the_training_rows(newsvendor):
    rng = torch.Generator().manual_seed(0)
    x, e = torch.rand(400, 2, generator=rng), torch.rand(400, 1, generator=rng)
    y = 1 + e + torch.cat([0.1 * torch.rand(400, 1, generator=rng), 0 * e], 1)
    model = quick(TwoStage, newsvendor(2), Quantiles(9), draws=100).fit(x, y)
    drawn = model.scenarios(x[:1]).values[0]
    assert np.corrcoef(drawn.numpy().T)[0, 1] > 0.95


def test_a_file_holds_the_forecast_and_the_linear_head(newsvendor, demand, tmp_path):
    x, y = demand()
    for forecast in (*KINDS, Mixture(2)):
        model = quick(TwoStage, newsvendor(), forecast, encoder=Flat).fit(x, y)
        model.save(tmp_path / "m")
        found = load(tmp_path / "m", newsvendor())
        assert found.forecast == forecast
        assert found.encoder is Flat
        assert torch.equal(found.decide(x), model.decide(x))


def test_new_forecasts_are_cross_fitted_as_others_are(newsvendor, demand):
    x, y = demand()
    for forecast in KINDS:
        model = CrossFit(quick(TwoStage, newsvendor(), forecast), folds=2).fit(x, y)
        assert evaluate(model, x, y).cost > 0


@pytest.mark.parametrize("forecast", KINDS)
@pytest.mark.parametrize(
    ("cls", "sentence"),
    [
        (LODL, r"LODL needs forecast=Point\(\) or Mixture\(k\), .* got"),
        (EGL, r"EGL needs forecast=Point\(\) or Mixture\(k\), .* got"),
        (SOEBM, r"SOEBM needs a forecast .* Mixture\(k\), but got"),
        (LANCER, r"LANCER needs forecast=Point\(\), .* got"),
        (TaskMet, r"TaskMet needs forecast=Point\(\), .* got"),
    ],
)
def test_methods_that_work_with_some_forecasts_refuse_the_others(
    newsvendor, cls, sentence, forecast
):
    with pytest.raises(Refusal, match=f"{sentence} {type(forecast).__name__}"):
        cls(newsvendor(), forecast=forecast)


@pytest.mark.parametrize("forecast", KINDS)
def test_the_closed_form_is_refused(forecast):
    with pytest.raises(Refusal, match=r"no closed form, but got None. Pass draws=100"):
        TwoStage(synthetic_convex(), forecast, draws=None)


def test_what_is_no_forecast_is_refused(newsvendor):
    method = TwoStage(newsvendor())
    method.forecast = Mixture  # the class; the checks of types in tests refuse it even earlier
    with pytest.raises(TypeError, match="TwoStage needs forecast to be a Forecast, but got"):
        method.__post_init__()


def linear(n, seed=0):
    rng = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 2, 2, generator=rng)
    w = torch.tensor([[1.0, -0.5, 0.0, 2.0], [0.3, 0.0, 1.0, -1.0]])
    return x, 3 + x.flatten(1) @ w.T + 0.5 * torch.randn(n, 2, generator=rng)


@pytest.mark.parametrize("forecast", [Point(), Mixture(1)])
def test_with_a_linear_head_the_mean_is_that_of_least_squares(newsvendor, forecast):
    x, y = linear(800)
    told = Training(epochs=40, lr=2e-2, progress=False, device="cpu", smooth=40)
    model = TwoStage(newsvendor(2), forecast, encoder=Flat, training=told, ema=None)
    model.fit(x, y, val=(x[:100], y[:100]))
    design = np.c_[np.ones(len(x)), x.flatten(1).numpy()]
    slopes = np.linalg.lstsq(design, y.numpy(), rcond=None)[0]
    with torch.no_grad():
        assert np.allclose(model.model_.mean(x), design @ slopes, atol=0.05)
        far = model.model_.mean(10 * x[:5]).numpy()  # linear also away from the data
    assert np.allclose(far, np.c_[np.ones(5), 10 * x[:5].flatten(1).numpy()] @ slopes, atol=0.4)


def test_a_linear_head_keeps_the_contract_of_a_method(newsvendor):
    x, y = linear(60)
    check_method(quick(TwoStage, newsvendor(2), Mixture(2), encoder=Flat), x, y)
