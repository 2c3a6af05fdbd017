"""What is wrong with the input is said in words: what is needed, what came, what to do."""

import jaxtyping
import numpy as np
import pandas as pd
import pytest
import torch

from costscape import DF2, Box, Constant, Exhaustive, NearestNeighbours, SeparableTask, Task

X, Y = np.random.default_rng(0).random((20, 3)), np.random.default_rng(1).random((20, 2))


@pytest.fixture(autouse=True)
def _as_users_have_it(monkeypatch):
    """Without the type checks of the tests, which would speak first."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


def squares(y, a):
    return ((y - a) ** 2).sum(-1)


@pytest.fixture
def model():
    return Constant(SeparableTask(lambda y, a: (y - a) ** 2, Box(0.0, 1.0, dim=2), convex=True))


@pytest.fixture
def fitted():
    task = SeparableTask(lambda y, a: (y - a) ** 2, Box(0.0, 1.0, dim=2), convex=True)
    return NearestNeighbours(task, k=2).fit(X, Y)


def spoilt(array, at, value):
    array = array.copy()
    array[at] = value
    return array


# ---- the arrays


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_are_refused_with_their_place(model, bad):
    with pytest.raises(ValueError, match=rf"^X needs .* row 7, column 2 holds {bad} \(1 such\)"):
        model.fit(spoilt(X, (7, 2), bad), Y)
    with pytest.raises(ValueError, match=rf"^Y needs .* row 3, column 1 holds {bad}"):
        model.fit(X, spoilt(Y, (3, 1), bad))
    with pytest.raises(ValueError, match=rf"^X of val needs .* row 7, column 2 holds {bad}"):
        model.fit(X, Y, val=(spoilt(X, (7, 2), bad), Y))


def test_a_hole_in_a_frame_is_named_by_its_labels(model):
    x = pd.DataFrame(X, pd.date_range("2024-03-01", periods=20), ["temp", "wind", "price"])
    x.loc["2024-03-05", "wind"] = np.nan
    with pytest.raises(ValueError, match=r"row 4 \(index 2024-03-05.*\), column 'wind' holds nan"):
        model.fit(x, Y)


def test_a_hole_is_refused_at_decide_too(fitted):
    with pytest.raises(ValueError, match=r"X needs .* row 1, column 0 holds nan"):
        fitted.decide(spoilt(X, (1, 0), np.nan))


@pytest.mark.parametrize(
    ("x", "y", "error", "said"),
    [
        (X[:19], Y, ValueError, r"X and Y need the same number of rows, but have 19 and 20\."),
        (X[:0], Y[:0], ValueError, r"X needs at least one row .* \(0, 3\)"),
        (X[:, :0], Y, ValueError, r"X needs at least one row and one column, .* \(20, 0\)"),
        (5.0, Y, ValueError, "got the single number 5.0. Give one row for each example"),
        (None, Y, TypeError, "X needs an array of real numbers, but got None"),
        ("text", Y, TypeError, "X needs an array of real numbers, but got str"),
        ([["a", 1.0]] * 20, Y, TypeError, "row 0, column 0 holds 'a'"),
        ([[1.0], [1.0, 2.0]], Y, ValueError, "X needs one array, or rows of equal length"),
        (X, [{"a": 1}] * 20, TypeError, "Y needs an array of real numbers, but row 0 holds"),
        (
            X + 1j,
            Y,
            TypeError,
            "X needs an array of real numbers, but got ndarray of dtype complex128",
        ),
        (torch.tensor(X + 1j), Y, TypeError, "X needs a dense tensor of real numbers"),
    ],
)
def test_what_is_no_table_of_numbers_is_refused(model, x, y, error, said):
    with pytest.raises(error, match=said):
        model.fit(x, y)


def test_text_in_a_frame_is_named_by_its_column(model):
    x = pd.DataFrame({"a": X[:, 0], "city": ["Paris"] * 20})
    with pytest.raises(TypeError, match=r"column 'city' has dtype .* begins with 'Paris'"):
        model.fit(x, Y)


@pytest.mark.parametrize("rows", [1, 2])
def test_too_few_rows_are_refused_unless_val_is_given(model, rows):
    with pytest.raises(ValueError, match=rf"got {rows} in all. Bring more rows, or pass val="):
        model.fit(X[:rows], Y[:rows])
    model.fit(X[:rows], Y[:rows], val=(X[5:6], Y[5:6]))


@pytest.mark.parametrize("rows", [3, 5])
def test_a_handful_of_rows_is_enough(rows):
    task = SeparableTask(lambda y, a: (y - a) ** 2, Box(0.0, 1.0, dim=2), convex=True)
    told = {"points": 2, "folds": 1}
    a = DF2(task, **told).fit(X[:rows], Y[:rows]).decide(X[:rows])
    assert a.shape == (rows, 2)
    assert np.isfinite(a).all()


# ---- val


@pytest.mark.parametrize("val", [X, (X,), (X, Y, Y), 0.2, {"X": X, "Y": Y}, "ab"[:1]])
def test_a_val_that_is_no_pair_is_refused(model, val):
    with pytest.raises(TypeError, match=r"val needs a pair \(X_val, Y_val\), but got"):
        model.fit(X, Y, val=val)


@pytest.mark.parametrize(
    ("val", "said"),
    [
        ((X[:, :2], Y), r"val needs rows like those of X \(3,\) and Y \(2,\), but has \(2,\)"),
        ((X, Y[:, :1]), r"val needs rows .* but has \(3,\) and \(1,\)"),
        ((X[:, None], Y), r"val needs rows .* but has \(1, 3\)"),
        ((X[:5], Y), "X of val and Y of val need the same number of rows, but have 5 and 20"),
        ((X[:0], Y[:0]), "X of val needs at least one row"),
    ],
)
def test_a_val_of_another_shape_is_refused(model, val, said):
    with pytest.raises(ValueError, match=said):
        model.fit(X, Y, val=val)


# ---- the cost


@pytest.mark.parametrize(
    ("shape", "y_dims", "said"),
    [
        ((20, 2, 3), 1, r"Y needs 2 axes, .*has shape \(16, 2, 3\).* y_dims=2"),
        ((20, 6), 2, r"Y needs 3 axes, rows and the 2 of one outcome, .* y_dims=1"),
    ],
)
def test_outcomes_with_other_axes_than_the_task_says_are_refused(shape, y_dims, said):
    task = Task(squares, Box(0.0, 1.0, dim=2), y_dims=y_dims)
    with pytest.raises(ValueError, match=said):
        Constant(task).fit(X, np.zeros(shape))


@pytest.mark.parametrize(
    ("cost", "error", "said"),
    [
        (lambda y, a: (y - a) ** 2, ValueError, r"must return shape \(16, 4\) .* \(16, 4, 2\)"),
        (lambda y, a: squares(y, a).mean(), ValueError, r"but returned \(\). Sum over the last"),
        (lambda y, a: squares(y, a).numpy(), TypeError, "must return a torch tensor, .* ndarray"),
        (lambda y, a: 1.0, TypeError, "must return a torch tensor, but returned float"),
        (lambda y, a: None, TypeError, "must return a torch tensor, but returned NoneType"),
        (lambda y, a: squares(y, a) / 0, ValueError, r"must be finite .* is inf at y = \["),
        (
            lambda y, a: ((y - a).sum(-1) - 9).log(),
            ValueError,
            "is nan at .* Guard divisions, log",
        ),
    ],
)
def test_a_cost_that_cannot_be_paid_is_refused_before_the_fit(cost, error, said):
    for method in (Constant, NearestNeighbours, DF2):
        with pytest.raises(error, match=said):
            method(Task(cost, Box(0.0, 1.0, dim=2))).fit(X, Y)


def test_terms_that_are_summed_already_are_refused():
    task = SeparableTask(squares, Box(0.0, 1.0, dim=2))
    with pytest.raises(ValueError, match="one summand per coordinate of a, and do not sum"):
        Constant(task).fit(X, Y)


def test_outcomes_that_do_not_fit_the_cost_are_refused():
    said = r"take y \(16, 1, 2\) and a \(4, 3\), .* An outcome of Y has shape \(2,\), an action 3"
    with pytest.raises(ValueError, match=said):
        Constant(Task(squares, Box(0.0, 1.0, dim=3))).fit(X, Y)
    with pytest.raises(ValueError, match="but failed: index 5 is out of bounds"):
        Constant(Task(lambda y, a: y[..., 5] + a.sum(-1), Box(0.0, 1.0, dim=2))).fit(X, Y)


# ---- the task


def test_a_task_is_refused_in_words():
    with pytest.raises(ValueError, match=r"Box needs lower <= upper .* lower 2 > upper 1"):
        Constant(Task(squares, Box(2.0, 1.0, dim=2)))
    with pytest.raises(ValueError, match="Box needs vectors of one length, or numbers and dim"):
        Constant(Task(squares, Box(0.0, 1.0)))
    with pytest.raises(TypeError, match=r"order is Task\(cost, set\)"):
        Constant(Task(squares, (0.0, 1.0)))
    with pytest.raises(TypeError, match=r"Task needs a function cost\(y, a\)"):
        Constant(Task(torch.zeros(3), Box(0.0, 1.0, dim=2)))


# ---- after the fit


@pytest.mark.parametrize("method", [Constant, NearestNeighbours, DF2])
def test_a_method_that_is_not_fitted_says_so(method, tmp_path):
    model = method(Task(squares, Box(0.0, 1.0, dim=2)))
    asked = [lambda: model.decide(X), lambda: model.save(tmp_path / "m")]
    if method is not Constant:
        asked += [
            lambda: model.scenarios(X),
            lambda: model.expected_cost(X, Y),
            lambda: model.surface(X),
        ]
    for ask in asked:
        with pytest.raises(RuntimeError, match=rf"This {method.__name__} has not been fitted\."):
            ask()


@pytest.mark.parametrize(
    ("x", "shape"), [(X[:, :2], r"\(2,\)"), (X[0], r"\(\)"), (X[None], r"\(20, 3\)")]
)
def test_rows_of_another_shape_than_in_fit_are_refused(fitted, x, shape):
    said = rf"X needs rows of shape \(3,\), as in fit, but has rows of shape {shape}\. .*x\[None\]"
    for ask in (fitted.decide, fitted.scenarios, lambda x: fitted.expected_cost(x, Y)):
        with pytest.raises(ValueError, match=said):
            ask(x)


@pytest.mark.parametrize(
    "a", [Y[:, :1], Y[:19], Y[:, 0], Y[None, None], Y.reshape(4, 5, 2), Y[:3, None]]
)
def test_actions_of_another_shape_are_refused(fitted, a):
    with pytest.raises(ValueError, match=r"a needs shape \(20, 2\), one action .* \(20, J, 2\)"):
        fitted.expected_cost(X, a)


def test_actions_with_holes_are_refused(fitted):
    with pytest.raises(ValueError, match="a needs numbers that are finite"):
        fitted.expected_cost(X, spoilt(Y, (0, 0), np.nan))


def test_several_actions_for_the_rows_of_a_frame_come_back_as_a_frame(fitted):
    frame = pd.DataFrame(X, range(100, 120))
    costs = fitted.expected_cost(frame, np.repeat(Y[:, None], 4, 1))
    assert costs.shape == (20, 4)
    assert list(costs.index) == list(range(100, 120))


def test_a_solver_that_does_not_serve_says_why():
    task = Task(squares, Box(0.0, 1.0, dim=2))
    with pytest.raises(TypeError, match="Exhaustive needs a Finite list of actions"):
        Constant(task, solver=Exhaustive()).fit(X, Y)
