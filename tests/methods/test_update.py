"""update: gains on a drifting series, keeps the old model where new rows are wrong."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch

import costscape as cs

TASK = cs.SeparableTask(
    lambda y, a: 4 * (y - a).relu() + (a - y).relu(), cs.Box(0.0, 12.0, dim=2), convex=True
)
QUICK = cs.Training(epochs=8, lr=1e-2, progress=False)
SMALL = {"encoder": partial(cs.MLP, 3, hidden=8), "training": QUICK}


def rows(n, seed, shift=0.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.abs(3 + shift + X[:, :2] + rng.normal(size=(n, 2)))


METHODS = {
    "df2": partial(cs.DF2, TASK, folds=1, **SMALL),
    "cross-fitted": partial(cs.DF2, TASK, folds=2, outcomes=cs.LocationScale(), **SMALL),
    "two-stage": partial(cs.TwoStage, TASK, **SMALL),
    "neighbours": partial(cs.NearestNeighbours, TASK),
    "forest": partial(cs.RandomForest, TASK, trees=20, min_leaf=10),
    "kernel": partial(cs.KernelSmoother, TASK),
    "blend": partial(cs.Blend, TASK, [
        cs.NearestNeighbours(TASK, k=25),
        cs.DF2(TASK, folds=1, outcomes=cs.Anchored(), **SMALL),
    ], folds=2),
}  # fmt: skip


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """fitted(name): a fresh copy, by a file, of a method fitted to 400 rows."""
    folder, done = tmp_path_factory.mktemp("models"), {}

    def load(name):
        if name not in done:
            done[name] = folder / f"{name}.model"
            METHODS[name]().fit(*rows(400, seed=0)).save(done[name])
        return cs.load(done[name], TASK)

    return load


def bits(model):
    return {name: value.clone() for name, value in model.model_.state_dict().items()}


def equal(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[k], other[k]) for k in one)


@pytest.mark.parametrize("name", METHODS)
def test_on_a_drifting_series_updates_gain(fitted, name):
    model, still = fitted(name), fitted(name)
    done = [model.update(*rows(100, seed=1 + i, shift=0.4 * (i + 1))) for i in range(3)]
    test = rows(500, seed=9, shift=1.2)
    before, after = (cs.evaluate(m, *test) for m in (still, model))
    more = after.costs - before.costs
    assert any(result.updated for result in done)
    assert more.mean() < -3 * more.std() / len(more) ** 0.5
    assert model.record_.rows == 400 + 100 * sum(result.updated for result in done)


@pytest.mark.parametrize("name", METHODS)
def test_a_poisoned_batch_leaves_the_old_model(fitted, name):
    model = fitted(name)
    before = bits(model)
    X, Y = rows(200, seed=1)
    result = model.update(X, 10 * Y)
    assert not result.updated
    assert result.learned == 0
    assert "the new one costs more on held-out old rows" in result.reason
    assert result.comparisons[0].new_cost > result.comparisons[0].old_cost
    assert equal(bits(model), before)
    assert len(model.rows_.fold) == 400


@pytest.mark.parametrize("name", ["df2", "neighbours", "blend"])
def test_never_worse_by_more_than_the_error_bar(fitted, name):
    for seed in (1, 2):
        model = fitted(name)
        result = model.update(*rows(40, seed))
        d = np.array([(c.new_cost - c.old_cost) / c.old_cost for c in result.comparisons])
        e = np.array([c.error / c.old_cost for c in result.comparisons])
        assert len(d) == 2
        assert result.updated == bool(d.sum() <= (e**2).sum() ** 0.5)


@pytest.mark.parametrize("name", ["df2", "blend"])
def test_the_same_seed_gives_the_same_bits_also_after_a_file(fitted, name, tmp_path):
    one, other = fitted(name), fitted(name)
    trusted = rows(100, seed=5)
    for model in (one, other):
        assert model.update(*rows(60, seed=1, shift=0.5), val=rows(100, 4, 0.5)).updated
    assert equal(bits(one), bits(other))
    one.save(tmp_path / "a.model")
    again = cs.load(tmp_path / "a.model", TASK)
    assert (again.decide(trusted[0]) == one.decide(trusted[0])).all()
    results = [m.update(*rows(60, seed=2), val=trusted) for m in (again, other)]
    assert results[0].comparisons == results[1].comparisons
    assert equal(bits(again), bits(other))
    assert str(again.explain(trusted[0][:1])) == str(other.explain(trusted[0][:1]))


def test_neighbours_and_forests_have_the_new_rows_as_scenarios(fitted):
    X, Y = rows(60, seed=1)
    for name in ("neighbours", "forest", "kernel"):
        model = fitted(name)
        result = model.update(X, Y, val=(X, Y))
        assert result.updated
        assert result.learned == 60
        assert len(model.model_.y) == 320 + 60
        past = model.explain(X[:1]).past
        assert 400 in past.labels  # the row itself, the first of the new ones
        place = past.labels.tolist().index(400)
        assert np.allclose(past.outcomes[place], Y[0], atol=1e-6)


def test_the_leaves_of_an_updated_forest_hold_the_rows_that_fall_into_them(fitted):
    model = fitted("forest")
    X, Y = rows(60, seed=1)
    model.update(X, Y, val=(X, Y))
    forest, every = model.model_, np.concatenate([rows(400, seed=0)[0][:320], X])
    leaf = forest.leaves(torch.as_tensor(every, dtype=torch.float32))
    here = leaf[-1]
    expected = torch.zeros(len(every))
    for tree in range(leaf.shape[1]):
        mates = leaf[:, tree] == here[tree]
        expected += mates / mates.sum() / leaf.shape[1]
    found = model.scenarios(X[-1:]).weights[0]
    assert torch.allclose(found, expected, atol=1e-6)


def test_dates_of_new_rows_are_known_to_explain(fitted):
    X, Y = rows(160, seed=3)
    days = pd.date_range("2024-01-01", periods=160)
    frame = pd.DataFrame(X, days, ["a", "b", "c"])
    model = cs.NearestNeighbours(TASK, k=5).fit(frame[:120], Y[:120])
    model.update(frame[120:], Y[120:], val=(frame, Y))
    assert days[159].to_datetime64() in model.explain(frame[159:]).past.labels
    with pytest.raises(ValueError, match="X needs the columns of fit"):
        model.update(frame.rename(columns={"a": "z"}), Y)


def test_refusals_are_one_sentence(fitted, tmp_path):
    X, Y = rows(60, seed=1)
    for method in (cs.Constant(TASK), cs.ResidualSAA(TASK), cs.PolicyNet(TASK, training=QUICK)):
        with pytest.raises(TypeError, match=f"but got {type(method).__name__}. Fit it again"):
            method.fit(X, Y).update(X, Y)
    model = fitted("neighbours")
    with pytest.raises(ValueError, match=r"as in fit, but got \(2,\) and \(2,\)"):
        model.update(X[:, :2], Y)
    with pytest.raises(RuntimeError, match="has not been fitted"):
        cs.NearestNeighbours(TASK).update(X, Y)
