from functools import partial

import pytest
import torch

from costscape import (
    LSTM,
    MLP,
    Box,
    Finite,
    SeparableTask,
    Simplex,
    Task,
    Training,
    load,
)
from costscape.bench import PROBLEMS, Run
from costscape.bench.runs import prepare
from costscape.checks import check_method
from costscape.data import Dataset
from costscape.methods.forecast import lancer
from costscape.methods.forecast.decision_samples import hindsight_actions
from costscape.methods.forecast.lancer import LANCER, Landscape, Steps, descend
from costscape.models.forecasts import Mixture, PointForecast
from costscape.models.scaling import Units
from costscape.solvers import Auto, ProjectedAdam
from costscape.training import Fit, fit_all


def small(task, **settings):
    few = Training(epochs=2, batch_size=32, progress=False)
    part = Steps(count=2, batch_size=64)
    kept = {"rounds": 2, "width": 16, "landscape": part, "descent": part, "training": few}
    return LANCER(task, **{**kept, **settings})


def train_landscape(surface, pairs, cost):
    surface.set_unit(cost)
    fit = Fit(
        surface,
        lambda b, _: (surface(*b.x.chunk(2, 1)) - surface.standard(b.y)).square().mean(),
        seed=0,
    )
    training = Training(epochs=25, batch_size=100, lr=5e-3, progress=False)
    fit_all([fit], Dataset(pairs, cost), training)


def lopsided(yhat, y):
    e = yhat - y
    return (3 * (-e).clamp(min=0) + e.clamp(min=0)).sum(1)


def test_a_signed_landscape_recovers_a_lopsided_loss_and_the_papers_cannot():
    pairs = torch.randn(1500, 2)
    cost = lopsided(*pairs.chunk(2, 1))
    unseen = torch.randn(500, 2)
    truth = lopsided(*unseen.chunk(2, 1))
    share = {}
    for signed in (True, False):
        surface = Landscape(1, 30, signed)
        train_landscape(surface, pairs, cost)
        with torch.no_grad():
            told = surface.mean + surface.scale * surface(*unseen.chunk(2, 1))
        share[signed] = float((told - truth).square().mean() / truth.var())
    assert share[True] < 0.02
    assert share[False] > 0.1  # what e^2 cannot tell


def test_the_papers_landscape_is_the_same_for_errors_of_either_sign():
    surface = Landscape(3, 8, signed=False)
    e, y = torch.randn(5, 3), torch.randn(5, 3)
    assert torch.allclose(surface(y + e, y), surface(y - e, y), atol=1e-6)


def test_the_papers_landscape_is_not_negative_and_in_the_unit_of_the_costs():
    surface = Landscape(3, 8, signed=False)
    surface.set_unit(torch.tensor([100.0, 300.0]))
    assert torch.equal(surface.standard(torch.tensor([200.0])), torch.tensor([200.0]))
    other = Landscape(3, 8, signed=True)
    with torch.no_grad():
        for each in (surface, other):
            each.net[4].bias.fill_(-10.0)  # below all that the other weights can add
    pairs = torch.randn(2, 20, 3)
    assert torch.equal(surface(*pairs), torch.zeros(20))
    assert other(*pairs).max() < 0


@pytest.mark.long
def test_the_papers_landscape_gains_on_the_task_of_the_paper():
    for seed in (0, 1):
        made = prepare(Run("shortest-path-linear-deg6", "lancer-unsigned", seed=seed), "cpu")
        train, val = made.problem.data.train, made.problem.data.val
        made.method.fit(train.x, train.y, val=(val.x, val.y))
        history = made.method.history_[-1]
        assert history.best < 0.99 * history.scores[0]


def test_the_unit_of_the_landscape_is_the_spread_of_the_costs():
    surface = Landscape(1, 8, signed=True)
    f = torch.tensor([1.0, 3.0, 5.0])
    surface.set_unit(f)
    assert torch.allclose(surface.standard(f), torch.tensor([-(1.5**0.5), 0, 1.5**0.5]))
    surface.set_unit(torch.full((3,), 2.0))
    assert torch.equal(surface.standard(torch.full((3,), 2.0)), torch.zeros(3))


class _Exact(Landscape):
    def forward(self, yhat, y):
        return lopsided(yhat, y)


def test_on_the_true_landscape_the_forecast_becomes_the_three_quarter_quantile(demand):
    x, y = demand(1000)
    data = Dataset(x, y)
    model = PointForecast(MLP(2, hidden=16), Units(x, y), (1,))
    fit = Fit(model, lambda batch, _: descend(model, _Exact(1, 1, True), 0.0, batch), seed=0)
    fit_all([fit], data, Training(epochs=25, lr=1e-2, progress=False))
    above = (model.mean(x) - (1 + x[:, :1] + 0.75)).detach()
    assert above.mean().abs() < 0.03
    assert above.abs().mean() < 0.05


def test_the_squared_error_beside_the_landscape_is_weighed_by_regularise():
    x, y = torch.rand(10, 2), torch.rand(10, 3)
    model = PointForecast(MLP(2, hidden=4), Units(x, y), (3,))
    batch = Dataset(x, y)
    surface = Landscape(3, 4, signed=True)
    alone = descend(model, surface, 0.0, batch)
    both = descend(model, surface, 2.0, batch)
    assert torch.allclose(both - alone, 2 * model.loss(x, y).mean(), atol=1e-5)


def test_decisions_become_far_cheaper_than_those_of_the_mean(newsvendor, demand):
    task = newsvendor()
    x, y = demand(500)
    model = LANCER(
        task,
        encoder=partial(MLP, 2, hidden=32),
        training=Training(epochs=10, progress=False),
        rounds=60,
    ).fit(x, y)
    history = model.history_[-1]
    # E f = 2 u^2 - 3 u + 3/2 at a = 1 + x_0 + u: the mean pays 1/2, the quantile 3/8
    assert history.best < history.scores[0] - 0.08
    new, later = demand(4000, seed=1)
    assert float(task.cost(later, model.decide(new)).mean()) < 0.42
    assert float((model.decide(new) - new[:, :1]).mean()) == pytest.approx(1.75, abs=0.12)


def test_no_round_is_kept_that_is_worse_than_the_start(newsvendor, demand):
    x, y = demand(60)
    wild = Steps(count=2, lr=1.0)
    model = small(newsvendor(), descent=wild).fit(x, y)
    history = model.history_[-1]
    assert history.best_epoch == -1
    assert history.best == min(history.scores) == history.scores[0]
    assert len(history.scores) == 3


def test_moments_of_adam_last_from_round_to_round():
    part = torch.nn.Linear(1, 1)
    data = Dataset(torch.ones(8, 1), torch.ones(8, 1))
    steps = Steps(count=1, batch_size=8, lr=0.1, weight_decay=0.0)
    ours, other = lancer._Adam(part, steps), torch.nn.Linear(1, 1)
    other.load_state_dict(part.state_dict())
    theirs = torch.optim.Adam(other.parameters(), lr=0.1)

    def loss(net, batch):
        return (net(batch.x) - batch.y).square().mean()

    for t in range(4):
        ours(lambda batch: loss(part, batch), data, torch.Generator().manual_seed(t))
        theirs.zero_grad()
        loss(other, data).backward()
        theirs.step()
    for a, b in zip(part.parameters(), other.parameters(), strict=True):
        assert torch.allclose(a, b)


@pytest.mark.parametrize("bad", [{"count": 0}, {"batch_size": 0}, {"lr": 0.0}])
def test_steps_that_cannot_be_taken_are_refused(bad):
    with pytest.raises(ValueError, match="Steps needs"):
        Steps(**bad)


@pytest.mark.parametrize("name", ["synthetic-convex", "synthetic-nonconvex"])
def test_keeps_the_contract_on(name):
    p = PROBLEMS[name](0)
    check_method(small(p.task), p.data.train.x[:100], p.data.train.y[:100])


@pytest.mark.parametrize("signed", [True, False])
def test_keeps_the_contract_on_a_simplex_without_hindsight(signed):
    task = Task(lambda y, a: (y - a).square().sum(-1), Simplex(dim=3), convex=True)
    rng = torch.Generator().manual_seed(0)
    x, y = torch.rand(40, 2, generator=rng), torch.rand(40, 3, generator=rng)
    check_method(small(task, signed=signed, solver=ProjectedAdam(steps=20, starts=1)), x, y)


def test_decides_among_a_finite_list():
    task = Task(lambda y, a: (y - a).abs().sum(-1), Finite(torch.tensor([[0.0], [1.0], [2.0]])))
    x = torch.rand(80, 1)
    model = small(task).fit(x, 2 * x)
    assert set(model.decide(x).unique().tolist()) <= {0.0, 1.0, 2.0}


def test_outcomes_may_be_tables_and_numbers_double():
    task = Task(
        lambda y, a: (y.sum(-1) - a).square().sum(-1), Box(0.0, 3.0, dim=2), y_dims=2
    ).double()
    rng = torch.Generator().manual_seed(0)
    x = torch.rand(40, 5, 1, generator=rng)
    model = small(task, encoder=partial(LSTM, hidden=4)).fit(
        x, torch.rand(40, 2, 3, generator=rng)
    )
    assert model.model_.location.weight.dtype == torch.float64
    assert model.decide(x.double()).dtype == torch.float64


def test_costs_in_the_replay_are_those_of_the_solver_where_hindsight_is_unknown():
    def terms(y, a):
        return (a - y).square() + (a - y).abs()

    known = SeparableTask(terms, Box(0.0, 1.0, dim=2), hindsight=lambda y: y.clamp(0.0, 1.0))
    unknown = SeparableTask(terms, Box(0.0, 1.0, dim=2))
    y = 3 * torch.rand(50, 2) - 1
    a = hindsight_actions(known, y, Auto())
    b = hindsight_actions(unknown, y, Auto())
    assert torch.equal(a, y.clamp(0, 1))
    assert torch.allclose(a, b, atol=1e-4)


def test_a_broken_fit_goes_on_to_the_same_bits(newsvendor, demand, tmp_path, monkeypatch):
    x, y = demand(60)
    whole = small(newsvendor(), rounds=4).fit(x, y)
    training = Training(epochs=2, batch_size=32, progress=False, checkpoint=tmp_path / "fit")
    model = small(newsvendor(), rounds=4, training=training)
    decisions = lancer.hindsight_actions
    calls = []

    def stop_at_third(task, y, solver):
        calls.append(len(y))
        if len(calls) == 3:
            raise KeyboardInterrupt
        return decisions(task, y, solver)

    monkeypatch.setattr(lancer, "hindsight_actions", stop_at_third)
    with pytest.raises(KeyboardInterrupt):
        model.fit(x, y)
    monkeypatch.setattr(lancer, "hindsight_actions", decisions)
    resumed = small(newsvendor(), rounds=4, training=training).fit(x, y)
    assert resumed.history_[-1].scores == whole.history_[-1].scores
    for a, b in zip(resumed.model_.parameters(), whole.model_.parameters(), strict=True):
        assert torch.equal(a, b)


def test_a_checkpoint_of_other_settings_is_refused(newsvendor, demand, tmp_path):
    x, y = demand(60)
    training = Training(epochs=2, batch_size=32, progress=False, checkpoint=tmp_path / "fit")
    small(newsvendor(), training=training).fit(x, y)
    with pytest.raises(ValueError, match="belongs to a fit with other"):
        small(newsvendor(), training=training, regularise=3.0).fit(x, y)


def test_comes_back_from_its_file(newsvendor, demand, tmp_path):
    x, y = demand(60)
    model = small(newsvendor()).fit(x, y)
    model.save(tmp_path / "m")
    again = load(tmp_path / "m", newsvendor(), method=LANCER)
    assert again.landscape == model.landscape
    assert torch.equal(again.decide(x), model.decide(x))


def test_a_mixture_is_refused(newsvendor):
    with pytest.raises(TypeError, match=r"LANCER needs forecast=Point\(\), .* Mixture"):
        LANCER(newsvendor(), forecast=Mixture(2))


@pytest.mark.parametrize(
    ("setting", "value"),
    [("rounds", 0), ("width", 0), ("regularise", -1.0), ("ema", 1.0)],
)
def test_bad_settings_are_refused(newsvendor, setting, value):
    with pytest.raises(ValueError, match=f"LANCER needs {setting} .* {value}"):
        LANCER(newsvendor(), **{setting: value})


def test_a_cost_that_is_not_finite_is_refused(demand):
    task = SeparableTask(lambda y, a: (y - a) / 0.0, Box(0.0, 1.0, dim=1))
    with pytest.raises(ValueError, match="must be finite on the data"):
        small(task).fit(*demand(60))
