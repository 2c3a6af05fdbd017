"""explain: weights add up, curves and prices are those of g, and inputs that matter show."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch

import costscape as cs
from costscape.methods.explanation import Explanation

QUICK = cs.Training(epochs=2, progress=False)


def series(n=120, seed=0):
    """Dates as labels; y depends on ``warm`` only."""
    rng = np.random.default_rng(seed)
    days = pd.date_range("2024-01-01", periods=n)
    X = pd.DataFrame(rng.random((n, 3)), days, ["warm", "other", "noise"])
    noise = 0.1 * rng.random((n, 2))
    Y = pd.DataFrame(1 + 2 * X[["warm"]].to_numpy() + noise, days, ["bread", "milk"])
    return X, Y


def methods(task):
    small = {"encoder": partial(cs.MLP, 3, hidden=8), "training": QUICK}
    return {
        "neighbours": cs.NearestNeighbours(task, k=7),
        "forest": cs.RandomForest(task, trees=10, min_leaf=5),
        "kernel": cs.KernelSmoother(task),
        "residuals": cs.ResidualSAA(task),
        "near residuals": cs.ResidualSAA(task, k=9),
        "absolute": cs.DF2(task, outcomes=cs.Absolute(), folds=1, **small),
        "blend of forms": cs.DF2(task, folds=2, **small),
        "mixture": cs.TwoStage(task, cs.Mixture(2), **small),
        "blend": cs.Blend(task, [cs.NearestNeighbours(task, k=5), cs.TwoStage(task)], folds=2,
                          training=QUICK).changed(training=QUICK),
    }  # fmt: skip


NAMES = list(methods(cs.problems.inventory(days=2)))


@pytest.fixture(scope="module")
def fitted():
    X, Y = series()
    task = cs.problems.inventory(days=2)
    return X, Y, {name: m.fit(X, Y) for name, m in methods(task).items()}


@pytest.mark.parametrize("name", NAMES)
def test_weights_add_up_and_curves_and_prices_are_those_of_the_expected_cost(fitted, name):
    X, Y, models = fitted
    model, row = models[name], X.iloc[[50]]
    why = model.explain(row, step=0.1)
    x = row.to_numpy()
    assert why.past.weights.sum() == pytest.approx(1)
    assert (np.diff(why.past.weights) <= 0).all()
    assert set(pd.Index(why.past.labels)) <= set(X.index)
    assert np.allclose(why.past.to_frame()[["bread", "milk"]], Y.loc[why.past.labels], atol=1e-6)
    w = model.scenarios(x).weights[0].double()
    assert why.effective_scenarios == pytest.approx(float(1 / (w**2).sum()), rel=1e-5)
    assert np.allclose(why.decision, model.decide(x)[0])
    assert why.expected_cost == pytest.approx(float(model.expected_cost(x, why.decision[None])[0]))
    for i in range(2):
        a = np.tile(why.decision, (len(why.curves.actions[i]), 1))
        a[:, i] = why.curves.actions[i]
        assert np.allclose(model.expected_cost(x, a[None])[0], why.curves.costs[i], rtol=1e-4)
        for sign, price in ((1, why.deviations.up), (-1, why.deviations.down)):
            moved = why.decision.copy()
            moved[i] += sign * 0.1
            expected = float(model.expected_cost(x, moved[None])[0]) - why.expected_cost
            assert price[i] == pytest.approx(expected, abs=2e-5)


def test_past_rows_of_neighbours_and_forests_are_their_scenarios(fitted):
    X, _, models = fitted
    x = X.iloc[[50]]
    z = (X - X[:96].mean()) / X[:96].std(ddof=0)
    near = ((z[:96] - z.loc[x.index[0]]) ** 2).sum(axis=1).nsmallest(7).index
    assert set(pd.Index(models["neighbours"].explain(x).past.labels)) == set(near)
    s = models["forest"].scenarios(x)
    why = models["forest"].explain(x).past.to_frame()["weight"]
    assert np.allclose(why.reindex(X.index[:96]).fillna(0), s.weights[0].numpy(), atol=2e-6)


@pytest.mark.parametrize("form", [cs.Absolute(), cs.LocationScale()])
def test_scenarios_that_stay_at_training_rows_lead_back_to_these_rows(form):
    """With values that are not learned, scenario s is the outcome or the residual of one row."""
    X, Y = series(n=60)
    task = cs.problems.inventory(days=2)
    still = cs.Training(epochs=1, lr=1e-12, progress=False)
    model = cs.DF2(task, outcomes=form, folds=1, learn_values=False, points=48, training=still)
    model.fit(X, Y)
    x = torch.tensor(X.to_numpy()[:48], dtype=torch.float32)
    with torch.no_grad():
        s = model.model_(x)
    y = torch.tensor(Y.to_numpy()[:48], dtype=torch.float32)
    rows = (s.values - y[:, None]).square().sum(-1).argmin(0)  # the row that each s reproduces
    why = model.explain(X.iloc[[3]]).past
    weights = model.scenarios(X.iloc[[3]]).weights[0]
    found = dict(zip(pd.Index(why.labels), why.weights, strict=True))
    assert sorted(rows.tolist()) == list(range(48))
    for row, w in zip(rows.tolist(), weights.tolist(), strict=True):
        assert found[X.index[row]] == pytest.approx(w, rel=0.02)


@pytest.mark.parametrize("name", ["neighbours", "forest", "residuals", "blend of forms"])
def test_the_input_that_matters_is_found(name):
    X, Y = series(n=300)
    model = methods(cs.problems.inventory(days=2))[name]
    if name == "blend of forms":
        model = model.changed(training=cs.Training(epochs=10, progress=False))
    why = model.fit(X, Y).explain(X.iloc[[int(X["warm"].argmax())]])
    effect = np.abs(why.inputs.change).max(1)
    assert why.inputs.names == ("warm", "other", "noise")
    assert why.inputs.order()[0] == 0
    assert effect[0] > 5 * effect[1:].max()
    assert (why.inputs.change[0] > 0.5).all()  # warm days need more, whatever the rest
    x = X.iloc[[int(X["warm"].argmax())]].assign(warm=float(X["warm"].median()))
    same = model.decide(x).to_numpy()[0]
    assert np.allclose(why.decision - same, why.inputs.change[0], atol=0.02)


def test_columns_of_a_series_are_inputs_and_steps_of_a_single_one():
    rng = np.random.default_rng(0)
    task = cs.problems.inventory(days=2)
    Y = rng.random((60, 2))
    for shape, inputs in (((60, 5, 3), 3), ((60, 5, 1), 5)):
        X = rng.random(shape)
        why = cs.NearestNeighbours(task, k=5).fit(X, Y).explain(X[:1])
        assert why.inputs.change.shape == (inputs, 2)
        assert why.past.labels.dtype.kind == "i"  # positions, where X has no labels


def test_steps_that_leave_the_set_are_marked():
    X, Y = np.random.default_rng(0).random((60, 2)), np.random.default_rng(1).random((60, 3))
    task = cs.Task(lambda y, a: (y - a).square().sum(-1), cs.Simplex(dim=3), convex=True)
    why = cs.NearestNeighbours(task, k=9).fit(X, Y).explain(X[:1])
    assert not why.deviations.up_feasible.any()
    assert np.allclose(why.deviations.step, 0.01)
    packs = cs.SeparableTask(lambda y, a: (y - a).abs(), cs.Box(0, 4, dim=3, step=2))
    steps = cs.NearestNeighbours(packs, k=9).fit(X, Y).explain(X[:1]).deviations
    assert (steps.step == 2).all()
    assert steps.up_feasible.all()


def test_a_point_forecast_has_no_past_rows():
    X, Y = series(n=60)
    model = cs.TwoStage(cs.problems.inventory(days=2), cs.Point(), training=QUICK).fit(X, Y)
    assert len(model.explain(X[:1]).past.weights) == 0


def test_refusals_are_one_sentence():
    X, Y = series(n=60)
    task = cs.problems.inventory(days=2)
    with pytest.raises(TypeError, match="explain needs a method with scenarios"):
        cs.Constant(task).fit(X, Y).explain(X[:1])
    model = cs.NearestNeighbours(task, k=5).fit(X, Y)
    with pytest.raises(ValueError, match="one row of X, but got 3"):
        model.explain(X[:3])
    with pytest.raises(ValueError, match="positive step"):
        model.explain(X[:1], step=-1.0)


def same(one: Explanation, other: Explanation) -> bool:
    tables = [(getattr(w, n).to_frame() for n in ("past", "curves", "deviations", "inputs"))
              for w in (one, other)]  # fmt: skip
    return all(a.equals(b) for a, b in zip(*tables, strict=True)) and str(one) == str(other)


@pytest.mark.parametrize("name", ["forest", "blend of forms"])
def test_a_loaded_model_explains_as_the_saved_one(fitted, name, tmp_path):
    X, _, models = fitted
    model = models[name]
    model.save(tmp_path / "a.model")
    again = cs.load(tmp_path / "a.model", model.task)
    assert same(again.explain(X[5:6]), model.explain(X[5:6]))
    model.save(tmp_path / "b.model", rows=False)
    bare = cs.load(tmp_path / "b.model", model.task)
    assert bare.decide(X[:5]).equals(model.decide(X[:5]))
    with pytest.raises(RuntimeError, match="saved with rows=False"):
        bare.explain(X[:1])


@pytest.mark.parametrize(
    "index",
    [
        pd.Index([f"shop {i}\nstreet" for i in range(30)]),
        pd.Index(range(100, 130)),
        pd.date_range("2024-01-01", periods=30, freq="h", tz="Europe/Paris"),
        pd.period_range("2020-01", periods=30, freq="M"),
    ],
    ids=["texts", "integers", "hours", "months"],
)
def test_labels_survive_a_file(index, tmp_path):
    rng = np.random.default_rng(0)
    X, Y = pd.DataFrame(rng.random((30, 2)), index), rng.random((30, 2))
    task = cs.problems.inventory(days=2)
    model = cs.NearestNeighbours(task, k=3).fit(X, Y)
    model.save(tmp_path / "a.model")
    again = cs.load(tmp_path / "a.model", task)
    assert (again.rows_.labels == model.rows_.labels).all()
    assert len(again.rows_.labels) == 30
    assert again.explain(X[:1]).past.names() == model.explain(X[:1]).past.names()


def test_the_picture_is_written(fitted, tmp_path):
    pytest.importorskip("matplotlib")
    X, _, models = fitted
    models["blend"].explain(X[:1]).plot(tmp_path / "why.png")
    assert (tmp_path / "why.png").stat().st_size > 10_000


@pytest.mark.parametrize("name", ["neighbours", "absolute"])
def test_a_decision_of_another_set_risk_and_level_is_explained_as_it_was_taken(fitted, name):
    X, _, models = fitted
    model, row = models[name], X.iloc[[50]]
    C, risk = cs.Box(0.0, [1.2, 3.0]), cs.CVaR(0.8)
    chance = cs.Chance(lambda y, a: y - a, 0.7)
    tight, risky, served = {"feasible": C}, {"feasible": C, "risk": risk}, {"chance": chance}
    for asked in (tight, risky, served):
        why = model.explain(row, **asked)
        a = model.decide(row, **asked)
        assert np.allclose(why.decision, a, atol=1e-6)
        wanted = model.expected_cost(row, a, risk=asked.get("risk"))
        assert why.expected_cost == pytest.approx(float(np.ravel(wanted)[0]), rel=1e-5)
        upper = C.bounds[1] if "feasible" in asked else model.task_.feasible.bounds[1]
        assert np.allclose(why.curves.actions.max(1), upper)
    # no cheaper action of the curve is in the other set
    why = model.explain(row, **risky)
    least = np.where(why.curves.feasible, why.curves.costs, np.inf).min()
    assert least >= why.expected_cost - 1e-4 * abs(why.expected_cost)


def test_the_level_of_the_task_is_kept_in_its_explanations():
    X, Y = series()
    task = cs.problems.inventory(days=2)
    level = cs.Chance(lambda y, a: y - a, 0.99)
    strict = cs.SeparableTask(task.terms, task.feasible, chance=level)
    model = cs.NearestNeighbours(strict, k=7).fit(X, Y)
    assert np.allclose(model.explain(X[:1]).decision, model.decide(X[:1]))
