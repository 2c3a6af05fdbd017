"""Tables that are not those of the fit: other columns, another order, far from the data."""

import jaxtyping
import numpy as np
import pandas as pd
import pytest

import costscape as cs

RNG = np.random.default_rng(0)
DAYS = pd.date_range("2024-01-01", periods=40, name="day")
X = pd.DataFrame(RNG.random((40, 3)), DAYS, ["temp", "wind", "price"])
Y = pd.DataFrame(1 + RNG.random((40, 2)), DAYS, ["bread", "soup"])


@pytest.fixture(autouse=True)
def _as_users_have_it(monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


def newsvendor():
    return cs.SeparableTask(lambda y, a: (y - a).abs(), cs.Box(0.0, 3.0, dim=2), convex=True)


@pytest.fixture
def model():
    return cs.NearestNeighbours(newsvendor(), k=3).fit(X, Y)


class Table:
    """A table with names, as of a library other than pandas."""

    def __init__(self, frame):
        self.columns, self.shape, self.rows = list(frame.columns), frame.shape, frame.to_numpy()

    def __array__(self, dtype=None, copy=None):
        return self.rows


# ---- the names of columns

WRONG = [
    (
        X[["price", "wind", "temp"]],
        r"order of fit, 'temp', 'wind', 'price', but .* 'price', 'wind'",
    ),
    (X.rename(columns={"price": "cost"}), r"but lacks 'price' and has 'cost', which fit did not"),
    (X.drop(columns="wind"), r"columns of fit, 'temp', 'wind', 'price', but lacks 'wind'\."),
    (X.assign(rain=0.0), r"but has 'rain', which fit did not have\."),
]


@pytest.mark.parametrize(("x", "said"), WRONG, ids=["swapped", "renamed", "missing", "added"])
@pytest.mark.parametrize("kind", [lambda x: x, Table], ids=["pandas", "other"])
def test_other_columns_than_in_fit_are_refused_by_name(model, x, said, kind, tmp_path):
    model.save(tmp_path / "m")
    loaded = cs.load(tmp_path / "m", newsvendor())
    assert loaded.x_columns_ == ("temp", "wind", "price")
    for m in (model, loaded):
        for ask in (m.decide, m.check, m.scenarios, lambda x, m=m: m.expected_cost(x, Y)):
            with pytest.raises(ValueError, match=f"^X needs .*{said}"):
                ask(kind(x))
        with pytest.raises(ValueError, match=f"^X needs .*{said}"):
            cs.evaluate(m, kind(x), Y.to_numpy())


def test_other_columns_are_refused_in_val_and_in_the_outcomes_of_evaluate(model):
    with pytest.raises(ValueError, match=r"^X of val needs its columns in the order of fit"):
        cs.Constant(newsvendor()).fit(X, Y, val=(WRONG[0][0], Y))
    with pytest.raises(ValueError, match=r"^Y of val needs its columns in the order of fit"):
        cs.Constant(newsvendor()).fit(X, Y, val=(X, Y[["soup", "bread"]]))
    with pytest.raises(ValueError, match=r"^Y needs its columns in the order of fit, 'bread'"):
        cs.evaluate(model, X, Y[["soup", "bread"]])


def test_values_without_names_are_taken_by_position(model):
    a = model.decide(X)
    assert np.array_equal(model.decide(X.to_numpy()), a)
    assert np.array_equal(model.decide(pd.DataFrame(X.to_numpy())), a)
    assert np.array_equal(model.decide(Table(X)), a)
    unnamed = cs.NearestNeighbours(newsvendor(), k=3).fit(X.to_numpy(), Y.to_numpy())
    assert np.array_equal(unnamed.decide(X[["temp", "wind", "price"]]), a)
    with pytest.raises(ValueError, match=r"X needs rows of shape \(3,\)"):
        model.decide(X.to_numpy()[:, :2])


def test_one_row_as_a_series_is_refused_by_its_shape(model):
    with pytest.raises(ValueError, match=r"rows of shape \(\).*frame.iloc\[\[i\]\]"):
        model.decide(X.iloc[0])
    assert model.decide(X.iloc[[0]]).shape == (1, 2)


# ---- the labels of rows


def test_rows_with_the_same_labels_in_another_order_are_refused():
    shuffled, said = Y.sample(frac=1, random_state=0), r"same order, .* Write Y = Y.loc\[X.index\]"
    constant = cs.Constant(newsvendor())
    with pytest.raises(ValueError, match=f"^X and Y need rows in the {said}"):
        constant.fit(X, shuffled)
    with pytest.raises(ValueError, match=f"^X of val and Y of val need rows in the {said}"):
        constant.fit(X, Y, val=(X, shuffled))
    with pytest.raises(ValueError, match=said):
        cs.evaluate(constant.fit(X, Y), X, shuffled)
    with pytest.raises(ValueError, match=said):
        cs.compare(newsvendor(), X, shuffled, methods={"c": constant}, progress=False)
    numbered = X.reset_index(drop=True)
    with pytest.raises(ValueError, match=said):
        constant.fit(numbered.sample(frac=1, random_state=0), Y.reset_index(drop=True))
    constant.fit(X, shuffled.loc[X.index])


def test_other_labels_are_refused_unless_one_table_has_none():
    later = Y.set_axis(DAYS + pd.Timedelta(days=1))
    with pytest.raises(ValueError, match=r"same labels, but row 0 is 2024-01-01.*set_axis"):
        cs.Constant(newsvendor()).fit(X, later)
    one = cs.Constant(newsvendor()).fit(X, later.set_axis(X.index)).decide(X)
    assert np.array_equal(
        cs.Constant(newsvendor()).fit(X, Y.reset_index(drop=True)).decide(X), one
    )
    assert np.array_equal(cs.Constant(newsvendor()).fit(X, Y.to_numpy()).decide(X), one)


@pytest.mark.parametrize(
    "index",
    [DAYS[::-1], DAYS.to_period()[::-1], pd.Index(DAYS.date[::-1]), DAYS[[1, 0, *range(2, 40)]]],
    ids=["descending", "periods", "dates", "unsorted"],
)
def test_dates_that_go_back_are_refused_where_rows_are_split_by_time(index):
    x, y = X.set_axis(index), Y.set_axis(index)
    said = r"^X needs rows in order of time, .* row 1 \(.*\) follows .* \.sort_index\(\)"
    constant, neighbours = cs.Constant(newsvendor()), cs.NearestNeighbours(newsvendor(), k=3)
    with pytest.raises(ValueError, match=said):
        constant.fit(x, y)
    with pytest.raises(ValueError, match=said):
        cs.CrossFit(neighbours, folds=2).fit(x, y, val=(X, Y))
    with pytest.raises(ValueError, match=said):
        cs.compare(newsvendor(), x, y, methods={"c": constant}, progress=False)
    with pytest.raises(ValueError, match=r"^Y needs rows in order of time"):
        constant.fit(x.to_numpy(), y)
    constant.fit(x, y, val=(X, Y))
    constant.fit(x.sort_index(), y.sort_index())


def test_a_date_may_come_twice_and_numbers_need_no_order():
    twice = DAYS[np.arange(40) // 2]
    cs.Constant(newsvendor()).fit(X.set_axis(twice), Y.set_axis(twice))
    back = np.arange(40)[::-1]
    cs.Constant(newsvendor()).fit(X.set_axis(back), Y.set_axis(back))


# ---- the range of the training rows


def test_rows_far_from_the_training_rows_are_flagged_with_their_columns(model):
    low, high = X.min(), X.max()
    near, far = high + 0.49 * (high - low), low - 0.51 * (high - low)
    rows = pd.DataFrame([X.mean(), near, far, X.mean()], index=list("abcd"))
    rows.loc["d", "wind"] = 100.0
    found = model.check(rows)
    assert found.outside.tolist() == [False, False, True, True]
    assert [found.columns_of(i) for i in (1, 2, 3)] == [[], ["temp", "wind", "price"], ["wind"]]
    frame = found.to_frame()
    assert list(frame.index) == list("abcd")
    assert frame.loc["d"].tolist() == [False, True, False]
    assert str(found).startswith("2 of 4 rows are far outside the range of the training rows: ")
    assert "column 'wind' (2 rows)" in str(found)
    assert str(model.check(X)).startswith("All 40 rows are in or near")


def test_decide_warns_once_of_rows_out_of_range(model, tmp_path):
    rows = pd.concat([X[:5], 1000 * X[:5]])
    model.save(tmp_path / "m")
    for m in (model, cs.load(tmp_path / "m", newsvendor())):
        with pytest.warns(
            cs.OutOfRange, match=r"^5 of 10 rows .* column 'temp' \(5 rows\)"
        ) as log:
            m.decide(rows)
        assert len(log) == 1
        m.decide(rows[:5])


def test_a_column_of_one_value_has_no_range():
    x = X.assign(price=7.0)
    model = cs.NearestNeighbours(newsvendor(), k=3).fit(x, Y)
    assert not model.check(x.astype("float32")).outside.any()
    assert model.check(x.assign(price=7.1)).columns_of(0) == ["price"]


def test_validation_rows_count_as_training_rows_and_windows_have_numbers():
    windows = np.arange(240.0).reshape(40, 3, 2)
    half = (windows[:20], Y[:20].to_numpy())
    model = cs.Constant(newsvendor()).fit(*half, val=(windows[20:], Y[20:].to_numpy()))
    assert not model.check(windows).outside.any()
    windows[0, 1, 1] = -1e6
    assert model.check(windows).columns_of(0) == [3]
    assert cs.Constant(newsvendor()).fit(*half).check(windows[39:]).outside.all()


def test_some_places_of_a_wide_window_may_be_outside_by_chance():
    x = np.random.default_rng(0).random((40, 1000))
    model = cs.Constant(newsvendor()).fit(x, Y.to_numpy())
    x[0, :10], x[1, :11] = 100.0, 100.0
    found = model.check(x)
    assert np.flatnonzero(found.outside).tolist() == [1]
    assert found.by_column.sum() == 21


def test_few_rows_show_no_range_to_warn_of():
    model = cs.Constant(newsvendor()).fit(X[:29], Y[:29])
    assert model.check(100 * X).outside.any()
    model.decide(100 * X)


# ---- decisions of one row


@pytest.mark.parametrize("outcomes", [cs.Absolute(), cs.LocationScale()], ids=["shared", "own"])
def test_a_row_by_itself_is_decided_as_in_a_batch_up_to_the_flatness_of_its_cost(outcomes):
    """To 2e-3 of the interval, and to 1e-5 of the expected cost: what float32 resolves."""
    rng = np.random.default_rng(1)
    x = rng.random((200, 4))
    y = 60 + 40 * x[:, :1] * rng.normal(size=(200, 1))
    task = cs.SeparableTask(
        lambda y, a: 3 * (y - a).relu() + (a - y).relu(), cs.Box(0.0, 200.0, dim=1), convex=True
    )
    training = cs.Training(epochs=3, progress=False)
    model = cs.DF2(task, outcomes=outcomes, folds=1, training=training).fit(x, y)
    batch = model.decide(x[:64])
    single = np.concatenate([model.decide(x[i : i + 1]) for i in range(64)])
    costs = model.expected_cost(x[:64], np.stack([batch, single], 1))
    assert np.abs(batch - single).max() <= 2e-3 * 200
    assert np.abs(np.diff(costs)).max() <= 1e-5 * costs.max()
