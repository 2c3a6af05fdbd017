from dataclasses import replace
from functools import partial

import pytest
import torch

from costscape import MLP, Simplex, Task, Training, TwoStage, load
from costscape.bench import PROBLEMS
from costscape.checks import check_method
from costscape.data import Dataset
from costscape.methods.forecast.egl import EGL, LossParameters
from costscape.methods.forecast.local_losses import DirectedWeightedMSE, LossNetwork, Quadratic
from costscape.models import Units
from costscape.models.forecasts import Mixture, Point
from costscape.solvers import ProjectedAdam

SHORT = Training(epochs=2, batch_size=32, progress=False)
LONG = Training(epochs=15, batch_size=32, lr=5e-3, progress=False)


def tiny(task, **settings):
    small = {"encoder": partial(MLP, 2, hidden=8), "samples": 8, "draws": 10, "training": SHORT}
    return EGL(task, **{**small, "loss": DirectedWeightedMSE(), **settings})


@pytest.mark.parametrize("forecast", [Point(), Mixture(1)], ids=["point", "mixture"])
@pytest.mark.parametrize("name", ["synthetic-convex", "synthetic-nonconvex"])
def test_the_contract_of_a_method_holds(name, forecast):
    p = PROBLEMS[name](0)
    method = tiny(p.task, forecast=forecast)
    x, y = p.data.train.x[:100], p.data.train.y[:100]
    check_method(method, x, y, encoder=method.encoder, loss=method.loss)


@pytest.mark.parametrize(
    "loss", [Quadratic(1), LossNetwork(4, 1)], ids=lambda loss: type(loss).__name__
)
def test_other_families_of_losses_train(newsvendor, demand, loss):
    x, y = demand(60)
    assert (tiny(newsvendor(), loss=loss).fit(x, y).decide(x) > 0).all()


def test_a_point_learns_to_forecast_what_is_worth_ordering(newsvendor, demand):
    # the best stock is the 0.75 quantile, 1.75 + x_0; the mean is 1.5 + x_0
    task = newsvendor()
    (x, y), held, (x_new, _) = demand(400), demand(400, seed=1), demand(300, seed=2)
    best = 1.75 + x_new[:, :1]
    same = {"forecast": Point(), "encoder": partial(MLP, 2, hidden=16), "training": LONG}
    start = TwoStage(task, **same).fit(x, y, val=held).decide(x_new)
    found = EGL(task, **same, samples=16, loss=LossNetwork(8, 1)).fit(x, y, val=held)
    off = (found.decide(x_new) - best).square().mean()
    assert off < 0.25 * (start - best).square().mean()


def test_predictions_are_those_of_fits_along_their_epochs(newsvendor, demand):
    x, y = demand(100)
    model = tiny(newsvendor(), training=LONG)
    seen = model._predictions(Dataset(x, y))
    assert seen.shape == (100, 8, 1)
    misses = (seen - y[:, None]).square().mean((0, 2)).reshape(4, 2)
    assert (misses[:, 1] < misses[:, 0]).all()  # after an epoch they fit better than before it
    assert len(set(misses[:, 0].tolist())) == 4  # four different fits
    assert torch.equal(seen, model._predictions(Dataset(x, y)))


@pytest.mark.parametrize("perturb", [False, True])
def test_losses_are_sampled_at_the_predictions_and_half_of_them_with_noise(
    newsvendor, demand, monkeypatch, perturb
):
    x, y = demand(60)
    method = tiny(newsvendor(), perturb=perturb)
    asked = []
    sampled = EGL._losses
    monkeypatch.setattr(EGL, "_losses", lambda *a: asked.append(a[2]) or sampled(*a))
    method.fit(x, y, val=(x, y))
    predicted = method._predictions(Dataset(x, y))
    at = (asked[0][:, :, 0] + y[:, None] - predicted).abs() < 1e-5
    assert at[:, ::2].all()
    assert at[:, 1::2].all() == (not perturb)
    if perturb:
        assert not at[:, 1::2].any()


def test_predictions_are_kept_where_scores_are_read_seldom(newsvendor, demand):
    x, y = demand(100)
    seldom = replace(SHORT, score_every=5)
    kept = [tiny(newsvendor(), training=t)._predictions(Dataset(x, y)) for t in (seldom, SHORT)]
    assert torch.equal(*kept)


def test_fewer_samples_than_fits_are_enough(newsvendor, demand):
    x, y = demand(60)
    model = tiny(newsvendor(), samples=1)
    assert model._predictions(Dataset(x, y)).shape == (60, 1, 1)
    assert (model.fit(x, y).decide(x) > 0).all()


def test_the_parameters_begin_at_the_common_start(demand):
    x, y = demand(20)
    start = torch.tensor([1.0, 2.0, 3.0])
    theta = LossParameters(MLP(2, hidden=4), Units(x, y), start, 1)
    assert torch.equal(theta(x, y), start.expand(20, 3))


def test_one_network_finds_the_loss_of_every_pair(newsvendor, demand):
    # t = w(x) e^2 with w = 1 + 2 x_0
    x, y = demand(300)
    rng = torch.Generator().manual_seed(0)
    e = torch.randn(300, 8, 1, generator=rng)
    w = 1 + 2 * x[:, :1]
    model = EGL(newsvendor(), loss=DirectedWeightedMSE(), training=replace(LONG, epochs=30))
    model.x_shape_, model.y_shape_ = (2,), (1,)
    theta = model._theta(Units(x, y), Dataset(x, y), e, w * e[..., 0].square())
    found = theta(x, y).square()
    assert float((found - w).detach().abs().mean()) < 0.1


def test_a_mixture_and_a_simplex_are_served():
    task = Task(lambda y, a: -(y * a).sum(-1) + a.square().sum(-1), Simplex(dim=3), convex=True)
    x = torch.rand(30, 2)
    y = torch.cat([x, 1 - x[:, :1]], 1) + 0.1 * torch.randn(30, 3)
    for forecast in (Point(), Mixture()):
        few = {"samples": 4, "draws": 5, "solver": ProjectedAdam(steps=30)}
        a = tiny(task, forecast=forecast, **few).fit(x, y).decide(x)
        assert task.feasible.contains(a).all()


def test_decision_samples_are_found_again(newsvendor, demand, tmp_path):
    x, y = demand(60)
    first = tiny(newsvendor(), cache=tmp_path).fit(x, y).decide(x)
    files = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert len(files) == 1
    assert torch.equal(tiny(newsvendor(), cache=tmp_path).fit(x, y).decide(x), first)
    assert files == {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}


def test_a_saved_model_decides_as_before_and_a_checkpoint_goes_on(newsvendor, demand, tmp_path):
    x, y = demand(60)
    training = replace(SHORT, checkpoint=tmp_path / "fit")
    model = tiny(newsvendor(), training=training).fit(x, y)
    again = tiny(newsvendor(), training=training).fit(x, y)
    plain = tiny(newsvendor()).fit(x, y)
    assert torch.equal(model.decide(x), again.decide(x))
    assert torch.equal(model.decide(x), plain.decide(x))
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model", newsvendor(), method=EGL, loss=model.loss)
    assert torch.equal(loaded.decide(x), model.decide(x))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"samples": 0}, "EGL needs samples to be a whole number of at least 1, but got 0"),
        ({"spread": -1.0}, "EGL needs spread to be a number above 0, but got -1"),
    ],
    ids=["samples", "spread"],
)
def test_settings_out_of_range_are_refused(newsvendor, settings, said):
    with pytest.raises(ValueError, match=said):
        tiny(newsvendor(), **settings)
