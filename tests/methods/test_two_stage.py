from dataclasses import replace
from functools import partial

import pytest
import torch

from costscape import (
    MLP,
    Box,
    Mixture,
    OutOfRange,
    Point,
    ProjectedAdam,
    SeparableTask,
    Simplex,
    Task,
    Training,
    TwoStage,
    evaluate,
)
from costscape.bench import PROBLEMS
from costscape.checks import check_method
from costscape.models import mean_level

QUICK = Training(epochs=2, batch_size=32, progress=False)


def quick(task, forecast, **settings):
    return TwoStage(
        task, forecast, encoder=partial(MLP, 2, hidden=8), **{"training": QUICK, **settings}
    )


@pytest.mark.parametrize(
    ("forecast", "draws"),
    [(Point(), 100), (Mixture(1), 20), (Mixture(3), None), (Mixture(1000), 20)],
    ids=["point", "normal", "closed-form", "thousand"],
)
@pytest.mark.parametrize("name", ["synthetic-convex", "synthetic-nonconvex"])
def test_it_keeps_the_contract_of_a_method(name, forecast, draws):
    p = PROBLEMS[name](0)
    check_method(quick(p.task, forecast, draws=draws), p.data.train.x[:100], p.data.train.y[:100])


def test_it_keeps_the_contract_on_a_simplex(newsvendor, demand):
    x, y = demand(60, 3)
    task = Task(lambda y, a: (y * a).sum(-1) + a.square().sum(-1), Simplex(dim=3), convex=True)
    method = replace(quick(task, Mixture(2), draws=5), solver=ProjectedAdam(steps=30, starts=1))
    check_method(method, x, y)


def test_a_point_forecast_is_the_conditional_mean(newsvendor, demand):
    x, y = demand(1000)
    model = TwoStage(newsvendor(), Point(), training=replace(QUICK, epochs=30)).fit(x, y)
    assert (model.decide(x) - (1.5 + x[:, :1])).abs().mean() < 0.06


def test_the_best_stock_is_the_quantile_of_the_fitted_law(newsvendor, demand):
    """y - 1 - x_0 is uniform on [0, 1]; a normal of its moments has its 0.75 quantile at 0.695."""
    x, y = demand(1000)
    model = TwoStage(newsvendor(), Mixture(1), draws=500, training=replace(QUICK, epochs=20)).fit(
        x, y
    )
    expected = 1.5 + x[:, :1] + 0.6745 * (1 / 12) ** 0.5
    assert (model.decide(x) - expected).abs().mean() < 0.06


def test_the_closed_form_decides_as_many_draws_do():
    p = PROBLEMS["synthetic-convex"](0)
    train = p.data.train[:400]
    exact = quick(p.task, Mixture(2), draws=None).fit(train.x, train.y)
    drawn = quick(p.task, Mixture(2), draws=5_000).fit(train.x, train.y)
    drawn.model_.load_state_dict(
        {**drawn.model_.state_dict(), **{k: v for k, v in exact.model_.state_dict().items()
                                         if k not in ("uniforms", "normals")}}
    )  # fmt: skip
    x = p.data.test.x[:20]
    assert (exact.decide(x) - drawn.decide(x)).abs().max() < 0.05
    a = p.task.feasible.sample(20, torch.Generator().manual_seed(0))
    assert torch.allclose(exact.expected_cost(x, a), drawn.expected_cost(x, a), rtol=0.02)


def test_the_closed_form_still_shows_scenarios_of_outcomes():
    p = PROBLEMS["synthetic-convex"](0)
    model = quick(p.task, Mixture(2), draws=None).fit(p.data.train.x[:100], p.data.train.y[:100])
    s = model.scenarios(p.data.test.x[:3])
    assert s.values.shape == (3, 1000, 2)


@pytest.mark.long
def test_more_draws_close_the_gap_of_sampling():
    p = PROBLEMS["synthetic-convex"](0)
    train, val, test = p.data.train, p.data.val, p.data.test[:100]
    exact = TwoStage(p.task, draws=None, training=replace(QUICK, epochs=8))
    exact.fit(train.x, train.y, val=(val.x, val.y))

    def gap(draws, seed):
        model = replace(exact, draws=draws)
        noise = torch.Generator().manual_seed(seed)
        weights = {k: v for k, v in exact.model_.state_dict().items()}
        weights["uniforms"] = torch.rand(draws, generator=noise)
        weights["normals"] = torch.randn(draws, 2, generator=noise)
        fitted = {"dim": 2, "x_shape": (2,), "y_shape": (2,), "columns": None, "flat": False}
        model.restore(weights, {**fitted, "facts": {}})
        return evaluate(model, test.x, test.y, p.truth).gap

    few = sum(gap(50, seed) for seed in range(8)) / 8
    many = sum(gap(1000, seed) for seed in range(8)) / 8
    none = evaluate(exact, test.x, test.y, p.truth).gap
    assert none < 0.03
    assert many - none < (few - none) / 5  # the error of sampling falls as 1 / M


def test_levels_let_forecasts_grow_with_the_window():
    rng = torch.Generator().manual_seed(0)
    level = 1 + 9 * torch.rand(300, 1, generator=rng)
    x = level * (1 + 0.1 * torch.rand(300, 2, generator=rng))
    y = level * (2 + 0.1 * torch.rand(300, 1, generator=rng))
    task = SeparableTask(lambda y, a: (y - a).abs(), Box(0.0, 1e4, dim=1), convex=True)
    model = TwoStage(task, Point(), level=mean_level, training=replace(QUICK, epochs=20))
    model.fit(x, y)
    with pytest.warns(OutOfRange):
        far = model.decide(100 * x[:5])
    assert torch.allclose(far, 100 * y[:5], rtol=0.1)


def test_a_fit_that_was_broken_off_ends_with_the_same_bits(newsvendor, demand, tmp_path):
    x, y = demand()
    whole = quick(
        newsvendor(), Mixture(2), draws=10, training=replace(QUICK, decay=False, epochs=4)
    )
    expected = whole.fit(x, y).decide(x)
    path = tmp_path / "fit"
    first = replace(whole, training=replace(whole.training, epochs=2, checkpoint=path))
    first.fit(x, y)
    again = replace(whole, training=replace(whole.training, checkpoint=path))
    assert torch.equal(again.fit(x, y).decide(x), expected)


def test_no_draws_and_an_unknown_closed_form_are_refused(newsvendor):
    with pytest.raises(ValueError, match="draws to be a whole number of at least 1 or None"):
        TwoStage(newsvendor(), draws=0)
    with pytest.raises(TypeError, match="made without normal="):
        TwoStage(newsvendor(), draws=None)
