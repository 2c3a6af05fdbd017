from copy import deepcopy
from dataclasses import replace
from functools import partial

import pytest
import torch

from costscape import (
    DFL,
    MLP,
    CvxpyLayer,
    Finite,
    Implicit,
    Mixture,
    Point,
    SeparableTask,
    Simplex,
    Task,
    Training,
    TwoStage,
    evaluate,
)
from costscape.bench import PROBLEMS
from costscape.checks import check_method
from costscape.data import Dataset
from costscape.problems import synthetic_convex, synthetic_nonconvex

QUICK = Training(epochs=2, batch_size=32, progress=False)


def quick(task, forecast, **settings):
    return DFL(
        task, forecast, encoder=partial(MLP, 2, hidden=8), **{"training": QUICK, **settings}
    )


@pytest.mark.parametrize(
    ("forecast", "draws"),
    [(Point(), 100), (Mixture(2), 10), (Mixture(3), None)],
    ids=["point", "draws", "closed-form"],
)
@pytest.mark.parametrize("name", ["synthetic-convex", "synthetic-nonconvex"])
def test_it_keeps_the_contract_of_a_method(name, forecast, draws):
    p = PROBLEMS[name](0)
    check_method(quick(p.task, forecast, draws=draws), p.data.train.x[:100], p.data.train.y[:100])


@pytest.mark.parametrize(
    ("make", "forecast", "draws"),
    [
        (synthetic_convex, Point(), 1),
        (synthetic_convex, Mixture(2), None),
        (synthetic_convex, Mixture(1), 20),
        (synthetic_nonconvex, Point(), 1),
        (synthetic_nonconvex, Mixture(2), None),
    ],
    ids=["kink", "smooth", "kinks-of-draws", "non-convex-point", "non-convex-mixture"],
)
def test_the_gradient_of_the_loss_is_that_of_finite_differences(make, forecast, draws):
    """In a direction of the weights, with the same draws on both sides."""
    torch.manual_seed(1)
    task = make().double()
    x = torch.rand(24, 2, dtype=torch.float64)
    y = 0.2 + 0.5 * torch.rand(24, 2, dtype=torch.float64)
    method = DFL(task, forecast, draws=draws, encoder=partial(MLP, 2, hidden=8))
    data = Dataset(x, y)
    model = method._network(data).double().eval()
    way = [torch.randn_like(p) for p in model.parameters()]

    def loss(step):
        moved = deepcopy(model)
        with torch.no_grad():
            for p, v in zip(moved.parameters(), way, strict=True):
                p.add_(step * v)
        rng = torch.Generator().manual_seed(0)
        return method.loss(task, moved, data, rng).item()

    value = method.loss(task, model, data, torch.Generator().manual_seed(0))
    grads = torch.autograd.grad(value, list(model.parameters()), allow_unused=True)
    slope = sum((g * v).sum() for g, v in zip(grads, way, strict=True) if g is not None)
    h = 1e-4
    expected = (loss(h) - loss(-h)) / (2 * h)
    assert abs(expected) > 1e-3
    assert slope.item() == pytest.approx(expected, rel=0.05)


def test_a_point_learns_to_forecast_the_quantile_that_pays(newsvendor, demand):
    """The best stock is 1.75 + x_0; the mean, on which two stages decide, is 1.5 + x_0."""
    x, y = demand(300)
    model = DFL(newsvendor(), training=replace(QUICK, epochs=25)).fit(x, y)
    assert (model.decide(x) - (1.75 + x[:, :1])).abs().mean() < 0.1


def test_it_beats_its_own_start_on_a_lopsided_cost(newsvendor, demand):
    x, y = demand(400)
    new = demand(400, seed=1)
    task = newsvendor(under=10.0)
    two = TwoStage(task, Point(), training=replace(QUICK, epochs=10)).fit(x, y)
    dfl = DFL(task, Point(), training=replace(QUICK, epochs=10)).fit(x, y)
    assert evaluate(dfl, *new).cost < 0.8 * evaluate(two, *new).cost


def test_the_start_is_kept_where_no_epoch_decides_better(newsvendor, demand, monkeypatch):
    x, y = demand(100)
    task = newsvendor()
    worse = lambda self, task, model, batch, rng: model.mean(batch.x).mean()  # noqa: E731
    monkeypatch.setattr(DFL, "loss", worse)
    settings = {"encoder": partial(MLP, 2), "training": replace(QUICK, epochs=5, lr=0.05)}
    kept = DFL(task, Point(), **settings).fit(x, y).decide(x)
    assert torch.equal(kept, TwoStage(task, Point(), **settings).fit(x, y).decide(x))


def test_it_learns_through_cvxpylayers_on_a_simplex():
    import cvxpy as cp

    task = Task(
        lambda y, a: (a - y).square().sum(-1),
        Simplex(dim=3),
        convex=True,
        cvxpy=lambda y, a: cp.sum(cp.square(a - y), axis=1),
    )
    rng = torch.Generator().manual_seed(0)
    x = torch.rand(20, 2, generator=rng)
    y = torch.rand(20, 3, generator=rng)
    settings = {"draws": 3, "training": replace(QUICK, epochs=1, batch_size=10)}
    a = quick(task, Mixture(1), layer=CvxpyLayer(), **settings).fit(x, y).decide(x)
    b = quick(task, Mixture(1), **settings).fit(x, y).decide(x)
    assert (a - b).abs().max() < 1e-2


def test_a_fit_that_was_broken_off_ends_with_the_same_bits(newsvendor, demand, tmp_path):
    x, y = demand()
    training = replace(QUICK, decay=False, epochs=4)
    whole = quick(newsvendor(), Mixture(2), draws=10, training=training)
    expected = whole.fit(x, y).decide(x)
    path = tmp_path / "fit"
    replace(whole, training=replace(training, epochs=4, checkpoint=path)).fit(x, y)
    (tmp_path / "fit.likelihood").rename(tmp_path / "again.likelihood")
    again = replace(whole, training=replace(training, checkpoint=tmp_path / "again"))
    assert torch.equal(again.fit(x, y).decide(x), expected)


def test_from_a_list_it_learns_what_least_squares_cannot(one_line):
    """A line that falls where the best action rises: squares keep the fall, decisions turn it."""
    task, encoder, x, y = one_line
    settings = {"encoder": encoder, "training": replace(QUICK, epochs=20, lr=0.03, patience=20)}
    start = TwoStage(task, Point(), **settings).fit(x, y)
    model = DFL(task, Point(), rates=(3.0,), ema=None, **settings).fit(x, y)
    before, after = (evaluate(m, x, y).cost for m in (start, model))
    assert before > -0.1
    assert after < -1


def test_a_layer_that_cannot_move_on_a_list_is_refused(demand):
    x, y = demand()
    task = Task(lambda y, a: (y - a).square().sum(-1), Finite(torch.arange(4.0)[:, None]))
    with pytest.raises(TypeError, match=r"DFL's Implicit needs a set .* is a Finite"):
        quick(task, Point(), layer=Implicit()).fit(x, y)


def test_cvxpylayers_needs_the_cost_in_its_own_words(newsvendor, demand):
    x, y = demand()
    with pytest.raises(TypeError, match="DFL's CvxpyLayer needs"):
        quick(newsvendor(), Point(), layer=CvxpyLayer()).fit(x, y)


def test_separable_terms_with_their_own_names_still_learn(demand):
    x, y = demand(dim=2)
    task = SeparableTask(lambda y, a: (y - a).square(), Simplex(total=4.0, dim=2), convex=True)
    a = quick(task, Mixture(1), draws=4).fit(x, y).decide(x)
    assert torch.allclose(a.sum(1), torch.full((len(x),), 4.0))
