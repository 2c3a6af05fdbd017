import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge
from sklearn.preprocessing import StandardScaler

from costscape import Auto, Budget, ProjectedAdam, ResidualSAA, Simplex, Task, load
from costscape.bench import PROBLEMS
from costscape.checks import check_method
from costscape.data import Dataset
from costscape.methods.selection import validation_cost
from costscape.methods.weighted.residual_model import LEAST
from costscape.methods.weighted.residual_saa import RIDGES
from costscape.methods.weighted.ridge_path import RidgePath
from costscape.models import mean_level


@pytest.fixture
def world():
    """world(n): x (n, 3) of unequal scales, y (n, 2) linear in x, with noise that grows in x_0."""

    def make(n=60, seed=0):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(n, 3)) * [1.0, 50.0, 0.1]
        noise = rng.normal(size=(n, 2)) * np.exp(0.8 * x[:, :1])
        y = 5 + np.stack([x[:, 0] + 0.02 * x[:, 1], -x[:, 2]], 1) + 0.3 * noise
        return x, y

    return make


def regression(x, y, ridge):
    """scikit-learn's: standardise, then Ridge with alpha = n ridge."""
    scaler = StandardScaler().fit(x)
    model = Ridge(alpha=len(x) * ridge).fit(scaler.transform(x), y)
    return lambda new: model.predict(scaler.transform(new))


def fitted(task, data, **settings):
    return ResidualSAA(task.double(), **settings).fit(*data, val=data)


def values(model, x):
    return model.scenarios(x).values.numpy()


# ---- the regression


@pytest.mark.parametrize("ridge", [1e-6, 0.1, 10.0])
def test_the_line_is_that_of_scikit_learn(world, ridge):
    x, y = world()
    z = StandardScaler().fit_transform(x)
    line = RidgePath(torch.tensor(z)).fit(torch.tensor(y), ridge)
    theirs = Ridge(alpha=len(x) * ridge).fit(z, y)
    assert np.allclose(line.weight.T, theirs.coef_)
    assert np.allclose(line.bias, theirs.intercept_)
    assert np.allclose(line.residuals, y - theirs.predict(z))


@pytest.mark.parametrize("shape", [(30, 4), (12, 40)])
@pytest.mark.parametrize("ridge", [1e-3, 0.5])
def test_a_residual_left_out_is_that_of_the_fit_without_its_row(shape, ridge):
    rng = np.random.default_rng(0)
    z, y = 2 + rng.normal(size=shape), rng.normal(size=(shape[0], 3))
    found = RidgePath(torch.tensor(z)).fit(torch.tensor(y), ridge).left_out()
    for i in range(len(z)):
        rest = np.arange(len(z)) != i
        model = Ridge(alpha=len(z) * ridge).fit(z[rest], y[rest])
        assert np.allclose(found[i], y[i] - model.predict(z[i : i + 1])[0])


# ---- the scenarios


def test_scenarios_are_the_forecast_plus_the_residuals_of_all_rows(newsvendor, world):
    x, y = world()
    new, _ = world(9, seed=1)
    s = fitted(newsvendor(2), (x, y), ridge=0.01).scenarios(new)
    forecast = regression(x, y, 0.01)
    assert np.allclose(s.values, forecast(new)[:, None] + (y - forecast(x))[None])
    assert np.allclose(s.weights, 1 / 60)


def test_scaled_residuals_are_multiplied_by_the_ratio_of_spreads(newsvendor, world):
    x, y = world()
    new = world(30, seed=1)[0] * [5.0, 1.0, 1.0]  # some beyond the bounds of sigma
    forecast = regression(x, y, 0.01)
    e = y - forecast(x)
    least = LEAST * np.sqrt((e**2).mean(0))
    log_sigma = regression(x, np.log(np.maximum(np.abs(e), least)), 0.01)
    top = log_sigma(x).max(0)

    def sigma(v):
        return np.exp(np.clip(log_sigma(v), np.log(least), top))

    assert (log_sigma(new) > top).any()
    assert (log_sigma(new) < np.log(least)).any()
    expected = forecast(new)[:, None] + sigma(new)[:, None] * (e / sigma(x))[None]
    model = fitted(newsvendor(2), (x, y), ridge=0.01, scaled=True)
    assert np.allclose(values(model, new), expected)


def test_left_out_residuals_are_used_where_asked(newsvendor, world):
    x, y = world(25)
    forecast = regression(x, y, 0.01)
    z = StandardScaler().fit_transform(x)
    e = np.empty_like(y)
    for i in range(25):
        rest = np.arange(25) != i
        e[i] = y[i] - Ridge(alpha=0.25).fit(z[rest], y[rest]).predict(z[i : i + 1])[0]
    model = fitted(newsvendor(2), (x, y), ridge=0.01, leave_one_out=True)
    assert np.allclose(values(model, x), forecast(x)[:, None] + e[None])


def test_the_nearest_rows_give_their_residuals(newsvendor, world):
    x, y = world()
    new, _ = world(9, seed=1)
    forecast, scaler = regression(x, y, 0.01), StandardScaler().fit(x)
    far = np.linalg.norm(scaler.transform(new)[:, None] - scaler.transform(x)[None], axis=-1)
    near = far.argsort(1)[:, :7]
    expected = forecast(new)[:, None] + (y - forecast(x))[near]
    assert np.allclose(values(fitted(newsvendor(2), (x, y), ridge=0.01, k=7), new), expected)


def test_outcomes_are_projected_onto_the_support(newsvendor, world):
    x, y = world()
    free = values(fitted(newsvendor(2), (x, y), ridge=0.01), x)
    held = values(fitted(newsvendor(2), (x, y), ridge=0.01, support=(4.5, 5.5)), x)
    assert free.min() < 4.5 < 5.5 < free.max()
    assert np.array_equal(held, free.clip(4.5, 5.5))


def test_at_most_so_many_residuals_evenly_spread_over_the_rows(newsvendor, world):
    x, y = world()
    everything = values(fitted(newsvendor(2), (x, y), ridge=0.01, residuals=None), x)
    some = values(fitted(newsvendor(2), (x, y), ridge=0.01, residuals=7), x)
    assert np.array_equal(some, everything[:, [0, 10, 20, 30, 39, 49, 59]])


def test_outcomes_are_multiples_of_a_level(newsvendor, world):
    x, y = np.abs(world()[0]) + 1, world()[1]
    level = np.abs(x).mean(1, keepdims=True)
    forecast = regression(x / level, y / level, 0.01)
    e = y / level - forecast(x / level)
    expected = level[:, None] * (forecast(x / level)[:, None] + e[None])
    model = fitted(newsvendor(2), (x, y), ridge=0.01, level=mean_level)
    assert np.allclose(values(model, x), expected)


def test_sequences_and_matrices_are_flattened():
    rng = torch.Generator().manual_seed(0)
    x = torch.rand(90, 4, 2, generator=rng, dtype=torch.float64)
    y = torch.rand(90, 2, 3, generator=rng, dtype=torch.float64)
    task = Task(lambda y, a: (y.mean(-2) - a).square().sum(-1), Simplex(dim=3), y_dims=2).double()
    model = ResidualSAA(task, ridge=1e-9, scaled=True).fit(x, y, val=(x, y))
    flat = ResidualSAA(task, ridge=1e-9, scaled=True).fit(x.flatten(1), y, val=(x.flatten(1), y))
    s = model.scenarios(x[:7])
    assert s.values.shape == (7, 90, 2, 3)
    # without a penalty the units of the features do not matter
    assert torch.allclose(s.values, flat.scenarios(x[:7].flatten(1)).values, atol=1e-4)


def test_an_outcome_that_never_changes_is_forecast_as_it_is(newsvendor, world):
    x, y = world()
    y[:, 1] = 3.0
    for settings in ({}, {"scaled": True}, {"leave_one_out": True, "k": 3}):
        assert np.allclose(values(fitted(newsvendor(2), (x, y), **settings), x)[..., 1], 3.0)


# ---- the decisions


def test_the_decision_is_the_forecast_plus_a_quantile_of_the_residuals(newsvendor, demand):
    x, y = (part.double() for part in demand(101))
    model = fitted(newsvendor(), (x, y), ridge=1e-3)  # 3 a unit short, 1 spare
    forecast = regression(x.numpy(), y[:, 0].numpy(), 1e-3)
    e = np.sort(y.numpy()[:, 0] - forecast(x.numpy()))
    expected = forecast(x.numpy()) + e[75]  # the 76th of 101 is the 0.75 quantile
    assert np.allclose(model.decide(x.numpy())[:, 0], expected, atol=1e-5)


def test_a_spread_that_grows_with_x_is_seen_by_the_scaled_form_alone(newsvendor):
    rng = torch.Generator().manual_seed(0)
    x = torch.rand(9000, 1, generator=rng, dtype=torch.float64)
    u = torch.randn(9000, 1, generator=rng, dtype=torch.float64)
    y = 10 + (2 * x).exp() * u
    task = newsvendor(upper=40.0)
    ends = torch.tensor([[0.0], [1.0]], dtype=torch.float64)
    plain = fitted(task, (x, y), ridge=1e-4, residuals=None).decide(ends)
    scaled = fitted(task, (x, y), ridge=1e-4, residuals=None, scaled=True).decide(ends)
    z = 0.6745  # the 0.75 quantile of a standard normal
    best = 10 + (2 * ends).exp() * z
    assert torch.allclose(scaled, best, atol=0.35)
    assert (plain - best).abs().min() > 1


def test_the_ridge_and_k_that_cost_least_on_validation_are_taken(newsvendor, demand):
    (x, y), val = demand(90), demand(60, seed=1)
    task = newsvendor()
    method = ResidualSAA(task, k=(5, 20, 60, 100))
    model = method.fit(x, y, val=val)
    score = validation_cost(task, Dataset(*val), Auto())
    costs = {
        (ridge, k): score(ResidualSAA(task, ridge=ridge, k=k).fit(x, y, val=val).model_)
        for ridge in RIDGES
        for k in (5, 20, 60)  # 100 is more than there are rows
    }
    assert (model.model_.ridge, model.model_.k) == min(costs, key=costs.get)
    assert model.chosen() == {"ridge": model.model_.ridge, "k": model.model_.k}
    assert len(set(costs.values())) > 5
    assert ResidualSAA(task, k=(100, 200)).fit(x, y, val=val).model_.k == 90


def test_the_ridges_tried_are_recorded(newsvendor, demand):
    data = Dataset(*demand(40))
    told = ResidualSAA(newsvendor()).resolved_defaults(data)["ridges"]
    assert (min(told), max(told)) == (1e-4, 100)
    assert ResidualSAA(newsvendor(), ridge=1.0).resolved_defaults(data) == {}


# ---- the contract

FORMS = (
    {},
    {"scaled": True},
    {"leave_one_out": True, "support": (0.0, 3.0)},
    {"k": (5, 25), "level": mean_level},
    {"k": 4, "scaled": True, "ridge": 0.3},
)


@pytest.mark.parametrize("settings", FORMS, ids="-".join)
@pytest.mark.parametrize("problem", ["synthetic-convex", "synthetic-nonconvex"])
def test_residuals_keep_the_contract_of_a_method(problem, settings):
    p = PROBLEMS[problem](0)
    train = p.data.train[:80]
    check_method(ResidualSAA(p.task, residuals=30, **settings), train.x, train.y)


def test_residuals_keep_the_contract_on_a_budget(demand):
    x, y = demand(40, dim=3)
    task = Task(lambda y, a: (y - a).square().sum(-1), Budget(total=2.0, dim=3), convex=True)
    solver = ProjectedAdam(steps=40, starts=1)
    check_method(ResidualSAA(task, ridge=0.1, residuals=10, solver=solver), x, y)


def test_a_loaded_model_has_the_same_scenarios(newsvendor, demand, tmp_path):
    task = newsvendor(2)
    x, y = demand(60, dim=2)
    for i, settings in enumerate(FORMS):
        model = ResidualSAA(task, **settings).fit(x, y)
        model.save(tmp_path / str(i))
        back = load(tmp_path / str(i), task)
        assert torch.equal(back.scenarios(x).values, model.scenarios(x).values)
        assert back.chosen() == model.chosen()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"ridge": 0.0}, "needs ridge to be a number above 0 or None, but got 0.0"),
        ({"residuals": 0}, "residuals to be a whole number of at least 1 or None, but got 0"),
        ({"support": (2.0, 1.0)}, r"a pair low <= high, but got \(2.0, 1.0\). Swap"),
        ({"k": 0}, "needs k to be .* at least 1 or a tuple .* got 0"),
        ({"k": ()}, r"needs k to be .* at least 1 or a tuple .* got \(\)"),
        (
            {"k": (5, -1)},
            r"needs k to be .* at least 1 or a tuple .* got \(5, -1\)",
        ),
    ],
)
def test_settings_out_of_range_are_refused(newsvendor, settings, said):
    with pytest.raises(ValueError, match=said):
        ResidualSAA(newsvendor(), **settings)


def test_a_k_of_more_than_all_rows_is_refused(newsvendor, demand):
    with pytest.raises(ValueError, match="from 1 to the 20 training rows, but is 21"):
        fitted(newsvendor(), demand(20), k=21)
