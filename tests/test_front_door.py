"""The ten lines a user writes, in every form data comes in."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import torch

import costscape as cs

N = 60
RNG = np.random.default_rng(0)
X = RNG.random((N, 3))
Y = 1 + X[:, :2] + RNG.random((N, 2))
SMALL = cs.Training(epochs=2, progress=False)


def cost(y, a):
    """3 a unit short, 1 a unit spare, and the square of all that is stocked."""
    short, spare = (y - a).clamp(min=0), (a - y).clamp(min=0)
    return (3 * short + spare).sum(-1) + 0.1 * a.sum(-1) ** 2


def terms(y, a):
    return 3 * (y - a).clamp(min=0) + (a - y).clamp(min=0)


def newsvendor(dim=2):
    return cs.SeparableTask(terms, cs.Box(0.0, 4.0, dim=dim), convex=True)


def small(task=None, **settings):
    told = {"points": 12, "folds": 1, "training": SMALL, "outcomes": cs.Absolute(), **settings}
    return cs.DF2(task or newsvendor(), **told)


@pytest.fixture(scope="module")
def fitted():
    return small().fit(X, Y)


def test_ten_lines_from_a_cost_to_decisions(tmp_path):
    task = cs.Task(cost, cs.Box(0.0, 3.0, dim=2))
    model = cs.DF2(task, points=8, folds=1, training=SMALL, solver=cs.ProjectedAdam(steps=20)).fit(
        X, Y
    )
    a = model.decide(X[:5])
    assert a.shape == (5, 2)
    assert a.dtype == np.float64
    assert ((a >= 0) & (a <= 3)).all()
    result = cs.evaluate(model, X, Y)
    assert result.cost == pytest.approx(
        cost(torch.tensor(Y), torch.tensor(model.decide(X))).mean().item(), rel=1e-5
    )
    model.save(tmp_path / "model")
    assert np.array_equal(cs.load(tmp_path / "model", task).decide(X[:5]), a)


# ---- forms


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_numpy_comes_back_as_numpy_of_its_own_precision_or_the_tasks(fitted, dtype):
    a = fitted.decide(X.astype(dtype))
    assert isinstance(a, np.ndarray)
    assert (a.dtype, a.shape) == (np.promote_types(dtype, np.float32), (N, 2))
    assert fitted.task.feasible.contains(torch.tensor(a)).all()


def test_torch_comes_back_as_torch(fitted):
    a = fitted.decide(torch.tensor(X))
    assert isinstance(a, torch.Tensor)
    assert (a.dtype, a.shape, a.requires_grad) == (torch.float64, (N, 2), False)


def test_lists_come_back_as_numpy():
    model = small().fit(X.tolist(), Y.tolist())
    assert np.array_equal(model.decide(X.tolist()), small().fit(X, Y).decide(X))


def test_integers_are_numbers():
    model = small().fit((10 * X).astype(int), (2 * Y).astype(np.uint8))
    assert model.decide((10 * X).astype(int)).dtype == np.float64


def test_all_forms_give_the_same_decisions(fitted):
    a = fitted.decide(X.astype(np.float32))
    assert np.array_equal(fitted.decide(torch.tensor(X, dtype=torch.float32)).numpy(), a)
    assert np.array_equal(fitted.decide(pd.DataFrame(X.astype(np.float32))).to_numpy(), a)
    frames = small().fit(pd.DataFrame(X), pd.DataFrame(Y))
    assert np.array_equal(frames.decide(X.astype(np.float32)), a)


def test_frames_keep_their_index_and_decisions_bear_the_names_of_the_outcomes():
    days = pd.date_range("2024-01-01", periods=N, name="day")
    x = pd.DataFrame(X, days, ["temp", "wind", "price"])
    y = pd.DataFrame(Y, days, ["ham", "egg"])
    model = small().fit(x, y)
    a = model.decide(x[40:])
    assert isinstance(a, pd.DataFrame)
    assert list(a.columns) == ["ham", "egg"]
    assert a.index.equals(days[40:])
    g = model.expected_cost(x[40:], a)
    assert isinstance(g, pd.Series)
    assert g.name == "expected_cost"
    assert g.index.equals(days[40:])
    assert isinstance(model.decide(X), np.ndarray)


def test_names_are_left_out_where_actions_are_not_outcomes():
    task = cs.Task(lambda y, a: (y.sum(-1) - a[..., 0]) ** 2, cs.Box(0.0, 9.0, dim=1))
    x, y = pd.DataFrame(X), pd.DataFrame(Y, columns=["ham", "egg"])
    model = small(task, solver=cs.ProjectedAdam(steps=5)).fit(x, y)
    assert list(model.decide(x).columns) == [0]


@pytest.mark.parametrize("method", [small, cs.Constant, cs.NearestNeighbours])
def test_one_number_a_row_in_one_number_a_row_out(method):
    model = method(newsvendor(1)).fit(X, Y[:, 0])
    assert model.decide(X).shape == (N,)
    assert method(newsvendor(1)).fit(X, Y[:, :1]).decide(X).shape == (N, 1)
    if method is not cs.Constant:
        assert model.expected_cost(X, Y[:, 0]).shape == (N,)
        assert model.scenarios(X).values.shape[2:] == (1,)


@pytest.mark.parametrize("method", [small, cs.Constant, cs.NearestNeighbours])
def test_series_in_series_out(method):
    index = pd.Index(range(100, 100 + N))
    x, y = pd.Series(X[:, 0], index, name="temp"), pd.Series(Y[:, 0], index, name="ham")
    model = method(newsvendor(1)).fit(x, y)
    a = model.decide(x)
    assert isinstance(a, pd.Series)
    assert a.name == "ham"
    assert a.index.equals(index)
    assert cs.evaluate(model, x, y).rows == N
    assert np.array_equal(model.decide(x.to_numpy()), a.to_numpy())
    assert np.array_equal(model.decide(x.to_frame().to_numpy()), a.to_numpy())


def test_sequences_get_an_lstm_and_rows_an_mlp():
    sequence = small().fit(np.repeat(X[:, None], 4, 1), Y)
    assert isinstance(sequence.model_.encoder, cs.LSTM)
    assert sequence.model_.encoder.lstm.input_size == 3
    assert sequence.decide(np.repeat(X[:5, None], 4, 1)).shape == (5, 2)
    assert isinstance(small().fit(X, Y).model_.encoder, cs.MLP)


# ---- val


def test_without_val_the_last_fifth_chooses_the_epoch():
    told = small().fit(X[:48], Y[:48], val=(X[48:], Y[48:]))
    assert np.array_equal(small().fit(X, Y).decide(X), told.decide(X))


def test_val_may_come_in_another_form_than_x_and_y():
    one = small().fit(X[:48], Y[:48], val=(X[48:], Y[48:]))
    two = small().fit(X[:48], Y[:48], val=(pd.DataFrame(X[48:]), torch.tensor(Y[48:])))
    assert np.array_equal(one.decide(X), two.decide(X))


def test_fit_returns_the_method_and_says_how_long_it_took():
    model = small()
    assert model.fit_seconds_ is None
    assert model.fit(X, Y) is model
    assert 0 < model.fit_seconds_ < 60


# ---- answers


def test_scenarios_are_weights_that_sum_to_one_and_outcomes():
    for model, rows in ((small(), 1), (small(outcomes=cs.Anchored()), 7)):
        s = model.fit(X, Y).scenarios(X[:7])
        assert s.weights.shape == (7, 12)
        assert (s.weights >= 0).all()
        assert torch.allclose(s.weights.sum(1), torch.ones(7))
        assert s.values.shape == (rows, 12, 2)


def test_expected_cost_is_the_sum_over_scenarios_by_hand(fitted):
    s = fitted.scenarios(X)
    a = 2 * RNG.random((N, 2))
    w, v = s.weights.double().numpy(), s.values[0].double().numpy()
    by_hand = np.zeros(N)
    for i in range(N):
        for k in range(12):
            short, spare = np.maximum(v[k] - a[i], 0), np.maximum(a[i] - v[k], 0)
            by_hand[i] += w[i, k] * (3 * short + spare).sum()
    assert np.allclose(fitted.expected_cost(X, a), by_hand, rtol=1e-5)


def test_expected_cost_takes_one_action_a_row_several_or_the_same_for_all(fitted):
    tried = RNG.random((N, 4, 2))
    each = fitted.expected_cost(X, tried)
    assert each.shape == (N, 4)
    for j in range(4):
        assert np.allclose(each[:, j], fitted.expected_cost(X, tried[:, j]), rtol=1e-5)
    same = fitted.expected_cost(X, tried[:1])
    assert np.allclose(same[5], fitted.expected_cost(X[5:6], tried[:1])[0], rtol=1e-5)


def test_the_surface_is_the_expected_cost_with_a_slope(fitted):
    a = torch.tensor(Y[:, None], dtype=torch.float32, requires_grad=True)
    g = fitted.surface(X)(a)
    assert np.allclose(g.detach()[:, 0], fitted.expected_cost(X, Y), rtol=1e-5)
    (slope,) = torch.autograd.grad(g.sum(), a)
    assert slope.abs().max() > 0


def test_the_decision_is_the_least_of_a_grid_of_actions(fitted):
    axis = np.linspace(0, 4, 41)
    grid = np.stack(np.meshgrid(axis, axis), -1).reshape(1, -1, 2)
    least = fitted.expected_cost(X, grid).min(1)
    assert (fitted.expected_cost(X, fitted.decide(X)) <= least + 1e-4).all()


def test_a_decision_does_not_depend_on_its_neighbours(fitted):
    together = fitted.decide(X)
    alone = np.concatenate([fitted.decide(X[i : i + 1]) for i in range(10)])
    assert np.allclose(together[:10], alone, atol=1e-4)


# ---- the package itself


def run(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120
    )


@pytest.mark.parametrize("name", ["costscape", "costscape.cli"])
def test_importing_is_light(name):
    heavy = ["torch", "numpy", "scipy", "sklearn", "pandas", "matplotlib", "cvxpy"]
    done = run(f"import {name}, sys; print(sorted(set({heavy}) & set(sys.modules)))")
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


def test_the_methods_leave_optional_packages_alone():
    optional = ["pandas", "matplotlib", "cvxpy", "rich", "typer"]
    done = run(f"from costscape import *; import sys; print(set({optional}) & set(sys.modules))")
    assert (done.stdout.strip(), done.stderr) == ("set()", "")


@pytest.mark.parametrize("name", cs.__all__)
def test_every_public_name_resolves(name):
    assert getattr(cs, name) is not None
    assert name in dir(cs)


def test_names_are_promised_where_they_are_found():
    assert sorted(cs.__all__) == sorted(set(dir(cs)) - {"__version__"})
    assert len(cs.__all__) == len(set(cs.__all__))


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'costscape' has no attribute 'DF3'"):
        cs.DF3  # noqa: B018
    assert not hasattr(cs, "DF3")


def test_the_version_is_that_of_the_package():
    from importlib.metadata import version

    assert cs.__version__ == version("costscape")


@pytest.mark.parametrize("collects", [True, False])
def test_naming_a_thing_leaves_the_collection_of_garbage_as_it_was(collects):
    program = f"""
import gc
(gc.enable if {collects} else gc.disable)()
import costscape
costscape.DF2, costscape.solvers
print(gc.isenabled())
"""
    said = subprocess.check_output([sys.executable, "-c", program], text=True)
    assert said.strip() == str(collects)
