from functools import partial
from itertools import pairwise

import pytest
import torch
from torch import nn

from costscape import (
    LSTM,
    MLP,
    Box,
    Budget,
    SeparableTask,
    Task,
    Training,
    TwoStage,
    evaluate,
    load,
)
from costscape.bench import PROBLEMS
from costscape.checks import check_method
from costscape.data import Dataset
from costscape.methods.forecast.taskmet import Metric, TaskMet, distance, hypergradient, normal_cg
from costscape.models.forecasts import Mixture, PointForecast
from costscape.models.scaling import Units
from costscape.scenarios import ExpectedCost
from costscape.solvers import ProjectedAdam
from costscape.solvers.implicit import Implicit


class Same(nn.Module):
    """The code is x itself, and so the forecast is linear."""

    def __init__(self, features):
        super().__init__()
        self.out_features = features

    def forward(self, x):
        return x.flatten(1)


def small(task, **settings):
    few = Training(epochs=2, batch_size=32, progress=False)
    kept = {"rounds": 2, "steps": 3, "width": 8, "batch_size": 16, "training": few}
    return TaskMet(task, **{**kept, **settings})


@pytest.fixture
def linear():
    """60 pairs in double precision, a linear forecast of two numbers and a metric of any kind."""

    def make(full):
        x = torch.rand(60, 2, dtype=torch.float64)
        y = torch.stack([x[:, 0] ** 2 - x[:, 1], (5 * x[:, 1]).sin()], 1)
        y = y + 0.3 * torch.randn(60, 2, dtype=torch.float64)
        model = PointForecast(Same(2), Units(x, y), (2,)).double()
        metric = Metric(2, 2, 6, full).double()
        with torch.no_grad():
            for p in metric.parameters():
                p.add_(0.3 * torch.randn_like(p))
        return model, metric, Dataset(x, y)

    return make


def solve(model, metric, data):
    """The exact least of the quadratic l(theta, phi), by one Newton step."""
    theta = list(model.parameters())
    loss = distance(model, metric, data).mean()
    first = torch.autograd.grad(loss, theta, create_graph=True)
    flat = torch.cat([g.flatten() for g in first])
    H = torch.stack(
        [
            torch.cat([h.flatten() for h in torch.autograd.grad(g, theta, retain_graph=True)])
            for g in flat
        ]
    )
    step = torch.linalg.solve(H, flat.detach())
    with torch.no_grad():
        for p, part in zip(theta, step.split([p.numel() for p in theta]), strict=True):
            p.sub_(part.view_as(p))


def exponential(y, a):
    e = a - y
    return e.exp() - e - 1 + 0.5 * e.square()


@pytest.mark.parametrize("full", [True, False])
def test_the_hypergradient_is_the_slope_of_the_outer_loss_after_exact_inner_fits(linear, full):
    model, metric, data = linear(full)
    task = SeparableTask(exponential, Box(-5.0, 5.0, dim=2), convex=True).double()

    def outer():
        # the best a for one outcome is that outcome
        solve(model, metric, data)
        with torch.no_grad():
            return float(task.cost(data.y, model.mean(data.x)).mean())

    outer()
    theta, phi = list(model.parameters()), list(metric.parameters())
    a = Implicit()(ExpectedCost(task, model(data.x)))
    slope = torch.autograd.grad(task.cost(data.y, a).mean(), theta)
    inside = distance(model, metric, data).mean()
    found = hypergradient(inside, slope, theta, phi, 12, 0.0)
    size = max(float(g.abs().max()) for g in found)
    for p, g in zip(phi, found, strict=True):
        for i in range(0, p.numel(), 3):
            flat = p.data.view(-1)
            flat[i] += 1e-5
            more = outer()
            flat[i] -= 2e-5
            less = outer()
            flat[i] += 1e-5
            assert (more - less) / 2e-5 == pytest.approx(float(g.view(-1)[i]), abs=1e-4 * size)


def test_normal_cg_solves_symmetric_systems_that_are_not_positive():
    A = torch.randn(6, 6, dtype=torch.float64)
    A = A + A.mT
    b = torch.randn(6, dtype=torch.float64)

    def times(v):
        return list((A @ torch.cat(v)).split([2, 4]))

    u = torch.cat(normal_cg(times, list(b.split([2, 4])), 8))
    assert torch.allclose(u, torch.linalg.solve(A, b), rtol=1e-6)
    # fewer steps come nearer, and never leave
    errors = [
        float((A @ torch.cat(normal_cg(times, list(b.split([2, 4])), k)) - b).norm())
        for k in range(7)
    ]
    assert errors[0] == pytest.approx(float(b.norm()))
    assert all(late <= early + 1e-9 for early, late in pairwise(errors))


def test_the_ridge_is_on_the_square_of_the_curvature():
    A = torch.diag(torch.tensor([2.0, -1.0, 0.1, 0.01], dtype=torch.float64))
    b = torch.tensor([1.0, 2.0, 3.0, 4.0], dtype=torch.float64)
    (u,) = normal_cg(lambda v: [A @ v[0]], [b], 8, ridge=1e-3)
    expected = torch.linalg.solve(A @ A + 1e-3 * torch.eye(4, dtype=torch.float64), A @ b)
    assert torch.allclose(u, expected, rtol=1e-6)


def test_of_a_zero_slope_normal_cg_makes_zero():
    zero = [torch.zeros(3)]
    assert torch.equal(normal_cg(lambda v: v, zero, 5)[0], torch.zeros(3))


@pytest.mark.parametrize("full", [True, False])
def test_the_metric_begins_as_the_identity_whose_inner_fit_is_least_squares(linear, full):
    model, _, data = linear(full)
    metric = Metric(2, 2, 6, full).double()
    assert torch.allclose(distance(model, metric, data), model.loss(data.x, data.y))
    solve(model, metric, data)
    rows = torch.cat([data.x, torch.ones(60, 1, dtype=torch.float64)], 1)
    best = rows @ torch.linalg.lstsq(rows, data.y).solution
    assert torch.allclose(model.mean(data.x), best, atol=1e-9)


@pytest.mark.parametrize("full", [True, False])
def test_the_metric_is_a_positive_quadratic_form_of_the_error(full):
    metric = Metric(2, 3, 5, full)
    with torch.no_grad():
        for p in metric.parameters():
            p.add_(torch.randn_like(p))
    x, e = torch.randn(4, 2), torch.randn(4, 3)
    root = metric.root(metric.code(x))
    L = torch.zeros(4, 3, 3)
    i, j = torch.tril_indices(3, 3) if full else (torch.arange(3), torch.arange(3))
    L[:, i, j] = root
    A = L @ L.mT + metric.c.exp() * torch.eye(3)
    assert torch.allclose(metric(x, e), torch.einsum("bi,bij,bj->b", e, A, e), rtol=1e-4)
    assert torch.allclose(metric(x, -e), metric(x, e))


def test_the_hypergradient_of_a_recurrent_network_is_that_in_double_precision():
    x, y = torch.rand(12, 5, 1), torch.rand(12, 2)
    model = PointForecast(LSTM(hidden=6), Units(x, y), (2,)).eval()
    metric = Metric(5, 2, 4, True)
    found = []
    for dtype in (torch.float32, torch.float64):
        model, metric = model.to(dtype), metric.to(dtype)
        data = Dataset(x.to(dtype), y.to(dtype))
        theta, phi = list(model.parameters()), list(metric.parameters())
        slope = torch.autograd.grad(model.mean(data.x).square().mean(), theta)
        inside = distance(model, metric, data).mean()
        found.append([g.double() for g in hypergradient(inside, slope, theta, phi, 2, 1e-5)])
    for a, b in zip(*found, strict=True):
        assert torch.allclose(a, b, rtol=0.02, atol=1e-3 * float(b.abs().max()) + 1e-9)


def test_a_forecast_of_too_few_parameters_learns_to_be_right_where_it_counts():
    # a line through a parabola, errors at large y being far dearer
    def terms(y, a):
        return (1.5 * y).exp() * (a - y).square()

    task = SeparableTask(terms, Box(-9.0, 9.0, dim=1), convex=True)
    x = 2 * torch.rand(800, 1) - 1
    y = 2 * x.square() + x
    model = TaskMet(
        task,
        rounds=20,
        steps=14,
        rate=0.1,
        encoder=partial(Same, 1),
        inner=Training(batch_size=64, lr=0.02),
        training=Training(epochs=10, lr=0.03, progress=False),
    ).fit(x, y)
    rows = torch.cat([x, torch.ones_like(x)], 1)
    root = (0.75 * y).exp()
    plain, ideal = (
        float(terms(y, rows @ torch.linalg.lstsq(w * rows, w * y).solution).mean())
        for w in (torch.ones_like(y), root)
    )
    learned = float(task.cost(y, model.decide(x)).mean())
    assert ideal * 0.99 < learned < plain - 0.6 * (plain - ideal)


@pytest.mark.parametrize("name", ["synthetic-convex", "synthetic-nonconvex"])
def test_keeps_the_contract_on(name):
    p = PROBLEMS[name](0)
    check_method(small(p.task), p.data.train.x[:100], p.data.train.y[:100])


def test_keeps_the_contract_on_a_budget():
    task = Task(
        lambda y, a: (y - a).square().sum(-1) + (y - a).sum(-1).square(),
        Budget(total=1.0, dim=3),
        convex=True,
    )
    rng = torch.Generator().manual_seed(0)
    x, y = torch.rand(40, 2, generator=rng), torch.rand(40, 3, generator=rng)
    check_method(small(task, solver=ProjectedAdam(steps=20, starts=1)), x, y)


def test_outcomes_may_be_tables_and_numbers_double():
    task = Task(
        lambda y, a: (y.sum(-1) - a).square().sum(-1), Box(0.0, 3.0, dim=2), y_dims=2
    ).double()
    rng = torch.Generator().manual_seed(0)
    x = torch.rand(40, 5, 1, generator=rng)
    y = torch.rand(40, 2, 3, generator=rng)
    model = small(task, encoder=partial(LSTM, hidden=4)).fit(x, y)
    assert model.decide(x.double()).dtype == torch.float64


def test_no_round_is_kept_that_is_worse_than_the_start(newsvendor, demand):
    wild = Training(batch_size=16, lr=1.0)
    history = small(newsvendor(), inner=wild).fit(*demand(60)).history_[-1]
    assert history.best_epoch == -1
    assert history.best == min(history.scores) == history.scores[0]
    assert len(history.scores) == 3


def test_a_broken_fit_goes_on_to_the_same_bits(newsvendor, demand, tmp_path, monkeypatch):
    x, y = demand(60)
    whole = small(newsvendor(), rounds=4).fit(x, y)
    training = Training(epochs=2, batch_size=32, progress=False, checkpoint=tmp_path / "fit")
    argmin = Implicit._argmin
    calls = []

    def stop_at_third(self, g):
        calls.append(len(g))
        if len(calls) == 3:
            raise KeyboardInterrupt
        return argmin(self, g)

    monkeypatch.setattr(Implicit, "_argmin", stop_at_third)
    with pytest.raises(KeyboardInterrupt):
        small(newsvendor(), rounds=4, training=training).fit(x, y)
    monkeypatch.setattr(Implicit, "_argmin", argmin)
    resumed = small(newsvendor(), rounds=4, training=training).fit(x, y)
    assert resumed.history_[-1].scores == whole.history_[-1].scores
    assert resumed.history_[-1].losses == whole.history_[-1].losses
    for a, b in zip(resumed.model_.parameters(), whole.model_.parameters(), strict=True):
        assert torch.equal(a, b)


def test_comes_back_from_its_file(newsvendor, demand, tmp_path):
    x, y = demand(60)
    model = small(newsvendor(), encoder=partial(MLP, 2, hidden=4)).fit(x, y)
    model.save(tmp_path / "m")
    again = load(tmp_path / "m", newsvendor(), method=TaskMet)
    assert again.inner == model.inner
    assert torch.equal(again.decide(x), model.decide(x))


def test_a_mixture_is_refused(newsvendor):
    with pytest.raises(TypeError, match=r"TaskMet needs forecast=Point\(\), .* Mixture"):
        TaskMet(newsvendor(), forecast=Mixture(2))


def test_from_a_list_its_metric_learns_what_least_squares_cannot(one_line):
    task, encoder, x, y = one_line
    training = Training(epochs=20, batch_size=64, lr=0.03, progress=False)
    settings = {"encoder": encoder, "training": training, "ema": None}
    start = TwoStage(task, **settings).fit(x, y)
    model = TaskMet(task, rounds=40, steps=20, rate=0.1, width=20, **settings).fit(x, y)
    before, after = (evaluate(m, x, y).cost for m in (start, model))
    assert before > -0.1
    assert after < -1


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("rounds", 0),
        ("steps", 0),
        ("batch_size", 0),
        ("width", 0),
        ("iterations", 0),
        ("rate", 0.0),
        ("ridge", -1.0),
    ],
)
def test_bad_settings_are_refused(newsvendor, setting, value):
    with pytest.raises(ValueError, match=f"TaskMet needs .*{setting}.* {value}"):
        TaskMet(newsvendor(), **{setting: value})


def test_a_cost_that_is_not_finite_is_refused(demand):
    task = SeparableTask(lambda y, a: (y - a) / 0.0, Box(0.0, 1.0, dim=1))
    with pytest.raises(ValueError, match="must be finite on the data"):
        small(task).fit(*demand(60))
