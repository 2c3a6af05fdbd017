from dataclasses import replace
from functools import partial

import pytest
import torch

from costscape import MLP, Box, Simplex, Task, Training, TwoStage, load
from costscape.bench import PROBLEMS
from costscape.checks import check_method
from costscape.data import Dataset
from costscape.methods.forecast.local_losses import (
    DirectedQuadratic,
    DirectedWeightedMSE,
    LossNetwork,
    Quadratic,
    WeightedMSE,
)
from costscape.methods.forecast.lodl import LODL, Fitted
from costscape.models.forecasts import Mixture, Point
from costscape.solvers import ProjectedAdam, Solver
from costscape.training.checkpoint import Checkpoint

SHORT = Training(epochs=2, batch_size=32, progress=False)
LONG = Training(epochs=12, batch_size=32, lr=5e-3, progress=False)


def tiny(task, **settings):
    small = {"encoder": partial(MLP, 2, hidden=8), "samples": 6, "draws": 10, "training": SHORT}
    return LODL(task, **{**small, "loss": DirectedWeightedMSE(), **settings})


def some(name, n=100):
    p = PROBLEMS[name](0)
    return p.task, p.data.train.x[:n], p.data.train.y[:n]


@pytest.mark.parametrize("forecast", [Point(), Mixture(1)], ids=["point", "mixture"])
@pytest.mark.parametrize("name", ["synthetic-convex", "synthetic-nonconvex"])
def test_the_contract_of_a_method_holds(name, forecast):
    task, x, y = some(name)
    method = tiny(task, forecast=forecast)
    check_method(method, x, y, encoder=method.encoder, loss=method.loss)


@pytest.mark.parametrize(
    "loss",
    [WeightedMSE(), Quadratic(1), DirectedQuadratic(2), LossNetwork(4, 1)],
    ids=lambda loss: type(loss).__name__,
)
def test_every_family_of_losses_trains(newsvendor, demand, loss):
    x, y = demand(60)
    model = tiny(newsvendor(), loss=loss).fit(x, y)
    assert len(model.history_) == 2
    assert (model.decide(x) > 0).all()


@pytest.mark.parametrize(
    ("loss", "part"), [(DirectedWeightedMSE(), 0.6), (LossNetwork(8, 1), 0.3)], ids=["dw", "net"]
)
def test_a_point_learns_to_forecast_what_is_worth_ordering(newsvendor, demand, loss, part):
    # the best stock is the 0.75 quantile, 1.75 + x_0; the mean is 1.5 + x_0, and the 0.75
    # expectile, which is what directed squares can find, 1.634 + x_0
    task = newsvendor()
    (x, y), held, (x_new, _) = demand(300), demand(300, seed=1), demand(300, seed=2)
    best = 1.75 + x_new[:, :1]
    same = {"forecast": Point(), "encoder": partial(MLP, 2, hidden=16), "training": LONG}
    start = TwoStage(task, **same).fit(x, y, val=held).decide(x_new)
    found = LODL(task, **same, loss=loss, samples=30).fit(x, y, val=held).decide(x_new)
    assert float((start - best).mean()) == pytest.approx(-0.25, abs=0.06)
    assert float((found - best).square().mean()) < part**2 * float((start - best).square().mean())


def test_a_mixture_is_not_worse_than_its_start(newsvendor, demand):
    task = newsvendor()
    (x, y), held = demand(200), demand(200, seed=1)
    same = {"forecast": Mixture(), "encoder": partial(MLP, 2, hidden=8), "draws": 20}
    same["training"] = replace(LONG, epochs=8)
    start = TwoStage(task, **same).fit(x, y, val=held)
    found = LODL(task, **same, samples=8, loss=LossNetwork(4, 1)).fit(x, y, val=held)

    def cost(model):
        return float(task.cost(held[1], model.decide(held[0])).mean())

    assert cost(found) <= cost(start) + 1e-3


@pytest.mark.parametrize("stretch", [False, True], ids=["shifts", "shifts and stretches"])
def test_the_centre_of_a_set_is_where_its_decision_is_the_outcome(newsvendor, demand, stretch):
    # the decision of a set on a newsvendor is its 0.75 quantile, so that is to be at y
    task = newsvendor()
    x, y = demand(40)
    model = tiny(task, forecast=Mixture(), draws=50, stretch=stretch).fit(x, y)
    fitted = model._fit_losses(task, model.model_, Dataset(x, y))
    draws = model.scenarios(x).values
    shift, *log_factor = (fitted.centre - model._state(model.model_, x)).unbind(1)
    assert len(log_factor) == stretch
    middle = draws.mean(1, keepdim=True)
    factor = log_factor[0].exp()[:, None] if stretch else 1.0
    moved = middle + shift[:, None] + factor * (draws - middle)
    quantile = moved.quantile(0.75, 1)
    assert float((quantile - y).detach().abs().mean()) < 0.03


@pytest.mark.parametrize("stretch", [False, True], ids=["locations", "all"])
def test_the_second_stage_trains_the_locations_of_a_mixture_or_all_of_it(
    newsvendor, demand, monkeypatch, stretch
):
    x, y = demand(40)
    trained = set()

    def record(self, task, model, loss, train, val, ways, pairs):
        trained.update(name for name, p in model.named_parameters() if p.requires_grad)
        model.zero_grad()
        loss(pairs, torch.Generator()).backward()
        assert all((p.grad is not None) == p.requires_grad for p in model.parameters())
        return []

    monkeypatch.setattr(LODL, "_refine", record)
    found = tiny(newsvendor(), forecast=Mixture(2), stretch=stretch).fit(x, y).model_
    names = {name for name, p in found.named_parameters() if p.requires_grad}
    assert trained == {name for name in names if stretch or name.startswith("head.location.")}
    assert len(names) == len(list(found.parameters()))


def test_a_second_stage_that_costs_more_is_dropped(newsvendor, demand, monkeypatch):
    (x, y), held = demand(80), demand(80, seed=1)
    same = {"forecast": Point(), "encoder": partial(MLP, 2, hidden=8), "training": SHORT}
    start = TwoStage(newsvendor(), **same).fit(x, y, val=held)
    # orders of a tenth of what is asked for look best
    monkeypatch.setattr(
        "costscape.methods.forecast.lodl.Fitted",
        lambda c, w, parameters: Fitted(c / 10, w, parameters),
    )
    found = LODL(newsvendor(), **same, loss=WeightedMSE(), samples=6).fit(x, y, val=held)
    assert found.history_[1].best_epoch == -1
    assert torch.equal(found.decide(x), start.decide(x))


def test_the_rule_of_acceptance_is_in_the_recipe(newsvendor, demand):
    told = tiny(newsvendor()).resolved_defaults(Dataset(*demand(10)))
    assert told["acceptance"] == "least validation cost"


def test_a_closed_form_mixture_is_sampled_without_draws():
    task, x, y = some("synthetic-convex", 60)
    model = tiny(task, forecast=Mixture(2), draws=None).fit(x, y)
    assert task.feasible.contains(model.decide(x)).all()


def test_a_simplex_is_served():
    task = Task(lambda y, a: -(y * a).sum(-1) + a.square().sum(-1), Simplex(dim=3), convex=True)
    x = torch.rand(30, 2)
    y = torch.cat([x, 1 - x[:, :1]], 1) + 0.1 * torch.randn(30, 3)
    for forecast in (Point(), Mixture()):
        few = {"samples": 4, "draws": 5, "solver": ProjectedAdam(steps=30)}
        a = tiny(task, forecast=forecast, **few).fit(x, y).decide(x)
        assert task.feasible.contains(a).all()


def test_outcomes_and_decisions_of_different_sizes_are_served():
    task = Task(lambda y, a: (y.sum(-1, keepdim=True) - a).square().sum(-1), Box(0.0, 3.0, dim=1))
    x = torch.rand(40, 2)
    y = x + 0.1 * torch.rand(40, 2)
    for forecast in (Point(), Mixture()):
        few = {"samples": 4, "draws": 5, "solver": ProjectedAdam(steps=30)}
        model = tiny(task, forecast=forecast, **few).fit(x, y)
        assert model.decide(x).shape == (40, 1)


def test_double_precision_and_levels_are_served(newsvendor, demand):
    x, y = demand(50)
    level = partial(torch.sum, dim=1)
    model = tiny(newsvendor().double(), level=level).fit(x, y)
    assert model.decide(x.double()).dtype == torch.float64


def test_a_second_fit_reads_its_decision_samples(newsvendor, demand, tmp_path, monkeypatch):
    x, y = demand(60)
    calls = []
    minimise = Solver.minimise

    def counted(self, objective, feasible, batch, start=None):
        calls.append(batch)
        return minimise(self, objective, feasible, batch, start)

    monkeypatch.setattr(Solver, "minimise", counted)
    first = tiny(newsvendor(), forecast=Mixture(), cache=tmp_path).fit(x, y)
    files = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    before, largest = len(calls), max(calls)
    second = tiny(newsvendor(), forecast=Mixture(), cache=tmp_path).fit(x, y)
    assert torch.equal(first.decide(x), second.decide(x))
    assert files == {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert len(files) == 2
    assert largest >= 48 * 6
    assert max(calls[before:]) <= 60
    tiny(newsvendor(), forecast=Mixture(), cache=tmp_path, seed=1).fit(x, y)
    assert len(list(tmp_path.iterdir())) == 4


def test_a_fit_broken_off_ends_as_an_unbroken_one(newsvendor, demand, tmp_path, monkeypatch):
    x, y = demand(60)
    training = replace(SHORT, epochs=3, patience=3)
    whole = tiny(newsvendor(), training=training).fit(x, y).decide(x)
    path = tmp_path / "fit"
    kept = replace(training, checkpoint=path)
    save, saves = Checkpoint.save, []

    def dies(self, **state):
        save(self, **state)
        saves.append(1)
        if len(saves) == 5:  # in the second epoch of the second stage
            raise KeyboardInterrupt

    monkeypatch.setattr(Checkpoint, "save", dies)
    with pytest.raises(KeyboardInterrupt):
        tiny(newsvendor(), training=kept).fit(x, y)
    monkeypatch.setattr(Checkpoint, "save", save)
    assert torch.equal(tiny(newsvendor(), training=kept).fit(x, y).decide(x), whole)
    with pytest.raises(ValueError, match="belongs to a fit with other data"):
        tiny(newsvendor(), training=kept, loss=WeightedMSE(), samples=5).fit(x, y)


def test_a_saved_model_needs_nothing_of_the_fit(newsvendor, demand, tmp_path):
    x, y = demand(50)
    model = tiny(newsvendor(), cache=tmp_path / "samples").fit(x, y)
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model", newsvendor(), method=LODL, loss=model.loss)
    assert torch.equal(loaded.decide(x), model.decide(x))


@pytest.mark.parametrize(
    ("settings", "error", "said"),
    [
        (
            {"samples": 0},
            ValueError,
            "LODL needs samples to be a whole number of at least 1",
        ),
        ({"spread": 0.0}, ValueError, "LODL needs spread to be a number above 0, but got 0"),
        ({"loss": "mse"}, TypeError, "loss"),
        ({"draws": 0}, ValueError, "LODL needs draws to be a whole number of at least 1"),
        ({"draws": None, "forecast": Mixture()}, TypeError, "closed form"),
    ],
    ids=["samples", "spread", "loss", "draws", "closed"],
)
def test_settings_out_of_range_are_refused(newsvendor, settings, error, said):
    with pytest.raises(error, match=said):
        tiny(newsvendor(), **settings)


def test_the_papers_numbers_fit_from_end_to_end(newsvendor, demand):
    paper = LODL.as_in_paper(newsvendor())
    assert (paper.samples, paper.loss) == (5000, LossNetwork(hidden=100, layers=4))
    x, y = demand(5)
    few = {"samples": 20, "draws": 10, "encoder": partial(MLP, 2, hidden=8), "training": SHORT}
    model = LODL.as_in_paper(newsvendor(), forecast=Mixture(), **few).fit(x, y)
    assert model.loss == paper.loss
    assert len(model.history_[1].losses) == 2
    assert (model.decide(x) > 0).all()
