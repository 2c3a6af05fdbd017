import numpy as np
import pandas as pd
import pytest
import torch

from costscape import (
    Box,
    Budget,
    Constant,
    Finite,
    NearestNeighbours,
    SeparableTask,
    Task,
    evaluate,
)
from costscape.block_bootstrap import standard_error
from costscape.evaluation import Truth, hindsight_cost
from costscape.problems import MixtureTruth, synthetic_convex, synthetic_nonconvex, three_gaussians

RNG = np.random.default_rng(0)
X, Y = RNG.random((30, 2)), 1 + RNG.random((30, 2))


def terms(y, a):
    return 3 * (y - a).clamp(min=0) + (a - y).clamp(min=0)


def by_hand(y, a):
    return (3 * np.maximum(y - a, 0) + np.maximum(a - y, 0)).sum(-1)


def newsvendor(**facts):
    return SeparableTask(terms, Box(0.0, 1.5, dim=2), convex=True, **facts)


def test_costs_are_f_at_the_decisions_by_hand():
    model = NearestNeighbours(newsvendor(), k=3).fit(X, Y)
    result = evaluate(model, X, Y)
    expected = by_hand(Y, model.decide(X))
    assert np.allclose(result.decisions, model.decide(X), atol=1e-6)
    assert np.allclose(result.costs, expected, atol=1e-5)
    assert result.cost == pytest.approx(expected.mean(), rel=1e-5)
    assert result.standard_error == pytest.approx(standard_error(expected, 4), rel=1e-4)
    assert result.rows == 30
    assert result.decide_seconds > 0
    assert result.fit_seconds == model.fit_seconds_


def test_the_standard_error_is_that_of_blocks_of_rows():
    model = Constant(newsvendor()).fit(X, Y)
    y = np.repeat(Y[:10], 3, axis=0)  # three equal rows each: a third of the information
    costs = evaluate(model, X, y).costs.astype(float)
    one, three = (evaluate(model, X, y, block=block).standard_error for block in (1, 3))
    assert one == pytest.approx(costs.std() / 30**0.5, rel=1e-5)
    assert three == pytest.approx(standard_error(costs, 3), rel=1e-5)
    assert three > 1.3 * one


def test_two_blocks_at_least_are_resampled():
    model = Constant(newsvendor()).fit(X, Y)
    half, long = (evaluate(model, X, Y, block=block).standard_error for block in (15, 400))
    assert half == long > 0
    assert evaluate(model, X[:2], Y[:2]).standard_error > 0
    with pytest.raises(ValueError, match="block of at least 1, but got 0"):
        evaluate(model, X, Y, block=0)


def test_another_task_may_pay():
    model = NearestNeighbours(newsvendor(), k=3).fit(X, Y)
    dear = SeparableTask(lambda y, a: 10 * terms(y, a), Box(0.0, 1.5, dim=2)).double()
    paid = evaluate(model, X, Y, task=dear)
    assert paid.costs.dtype == np.float64
    assert paid.cost == pytest.approx(10 * evaluate(model, X, Y).cost, rel=1e-5)


def clipped(y):
    return y.clamp(0.0, 1.5)


@pytest.mark.parametrize("facts", [{"hindsight": clipped}, {}], ids=["told", "derived"])
def test_regret_is_against_the_best_action_had_y_been_known(facts):
    model = Constant(newsvendor(**facts)).fit(X, Y)
    result = evaluate(model, X, Y)
    regrets = by_hand(Y, model.decide(X)) - by_hand(Y, np.clip(Y, 0, 1.5))
    assert np.allclose(result.regrets, regrets, atol=1e-4)
    assert result.regret == pytest.approx(regrets.mean(), abs=1e-4)
    assert result.regret > 0.1


def test_hindsight_is_found_where_the_cost_has_several_valleys():
    task = synthetic_nonconvex()
    y = torch.tensor(RNG.uniform(-3, 3, (200, 2)))
    told = hindsight_cost(task.double(), y)
    task.hindsight = None
    derived = hindsight_cost(task, y)
    assert torch.allclose(told, derived, atol=1e-6)
    grid = torch.linspace(-2, 2, 4001, dtype=torch.float64)[:, None, None].expand(-1, 1, 2)
    brute = task.terms(y, grid).min(0).values.sum(-1)
    assert (derived <= brute + 1e-9).all()


def test_hindsight_looks_into_every_valley_of_a_winding_cost():
    def winding(y, a):
        return (25 * a + y).sin() + 0.1 * (a - y) ** 2

    task = SeparableTask(winding, Box(0.0, 4.0, dim=2)).double()
    y = torch.tensor(RNG.uniform(0, 4, (50, 2)))
    grid = torch.linspace(0, 4, 8001, dtype=torch.float64)[:, None, None].expand(-1, 1, 2)
    brute = winding(y, grid).min(0).values.sum(-1)
    assert torch.allclose(hindsight_cost(task, y), brute, atol=1e-4)


def test_hindsight_of_a_finite_set_tries_every_action():
    actions = RNG.random((7, 2))
    task = Task(lambda y, a: (y - a).square().sum(-1), Finite(actions))
    y = torch.tensor(Y, dtype=torch.float32)
    brute = ((Y[:, None] - actions) ** 2).sum(-1).min(1)
    assert np.allclose(hindsight_cost(task, y), brute, atol=1e-5)
    assert evaluate(Constant(task).fit(X, Y), X, Y).regret >= 0


@pytest.mark.parametrize(
    "task",
    [
        Task(lambda y, a: (y - a).square().sum(-1), Box(0.0, 1.0, dim=2)),
        SeparableTask(terms, Budget(total=2.0, dim=2)),
    ],
)
def test_regret_is_none_where_the_hindsight_optimum_is_not_known(task):
    result = evaluate(Constant(task).fit(X, Y), X, Y)
    assert result.regret is None
    assert result.regrets is None
    assert "regret" not in str(result)


# ---- gap


@pytest.mark.parametrize("task", [synthetic_convex(), synthetic_nonconvex()])
def test_the_gap_is_the_truths(task):
    made = three_gaussians(n=400)
    train, test = made.splits.train, made.splits.test
    truth = MixtureTruth(task, made.maps)
    assert isinstance(truth, Truth)
    model = Constant(task).fit(train.x, train.y)
    result = evaluate(model, test.x, test.y, truth)
    a = model.decide(test.x)
    best = truth.best(test.x)[1]
    assert result.gap == pytest.approx(float((truth.expected_cost(test.x, a) - best).mean()))
    assert result.gap > 0.01
    assert result.gaps.shape == (len(test),)
    assert result.gaps.mean() == pytest.approx(result.gap)
    assert evaluate(model, test.x, test.y).gap is None


def test_the_gap_of_the_best_decisions_is_zero():
    task, made = synthetic_convex().double(), three_gaussians(n=200)
    x, y = made.splits.test.x[:1], made.splits.test.y[:1]
    truth = MixtureTruth(task, made.maps)
    model = Constant(task).fit(x, y, val=(x, y))
    model.model_.action.copy_(truth.best(x.double())[0][0])
    assert evaluate(model, x.double(), y, truth).gap == pytest.approx(0, abs=1e-12)
    model.model_.action.add_(0.1)
    assert evaluate(model, x.double(), y, truth).gap > 1e-3


# ---- forms and words


def test_all_forms_of_data_give_the_same_evaluation():
    model = NearestNeighbours(newsvendor(), k=3).fit(X, Y)
    costs = evaluate(model, X, Y).costs
    for wrap in (pd.DataFrame, torch.tensor, np.ndarray.tolist):
        assert np.allclose(evaluate(model, wrap(X), wrap(Y)).costs, costs, atol=1e-6)


def test_one_number_a_row_is_evaluated_as_such():
    task = SeparableTask(terms, Box(0.0, 1.5, dim=1), convex=True)
    model = NearestNeighbours(task, k=3).fit(X, Y[:, 0])
    expected = by_hand(Y[:, :1], model.decide(X)[:, None])
    assert np.allclose(evaluate(model, X, Y[:, 0]).costs, expected, atol=1e-5)
    assert np.allclose(evaluate(model, X, Y[:, :1]).costs, expected, atol=1e-5)


def test_the_words_are_the_numbers():
    model = Constant(newsvendor()).fit(X, Y)
    result = evaluate(model, X, Y)
    said = str(result)
    assert said.startswith(f"cost {result.cost:.6g} (standard error {result.standard_error:.2g})")
    assert f"regret {result.regret:.6g}, 30 rows decided in " in said
    assert "fitted in" in said
    assert "gap" not in said
    assert "costs=" not in repr(result)


def test_an_evaluation_of_one_row_has_no_error():
    result = evaluate(Constant(newsvendor()).fit(X, Y), X[:1], Y[:1])
    assert (result.rows, result.standard_error) == (1, 0.0)


@pytest.mark.parametrize(
    ("x", "y", "said"),
    [
        (X[:5], Y, "X and Y need the same number of rows, but have 5 and 30"),
        (X, Y[:, :1], r"Y needs rows of shape \(2,\), as in fit, but has rows of shape \(1,\)"),
        (X, Y[:, 0], r"Y needs rows of shape \(2,\), as in fit, but has rows of shape \(1,\)"),
        (X[:, :1], Y, r"X needs rows of shape \(2,\), as in fit"),
        (np.full_like(X, np.nan), Y, "X needs numbers that are finite"),
        (X, np.full_like(Y, np.inf), "Y needs numbers that are finite"),
    ],
)
def test_data_that_does_not_fit_is_refused(x, y, said):
    model = Constant(newsvendor()).fit(X, Y)
    with pytest.raises(ValueError, match=said):
        evaluate(model, x, y)


def test_a_method_that_is_not_fitted_is_refused():
    with pytest.raises(RuntimeError, match="Constant has not been fitted"):
        evaluate(Constant(newsvendor()), X, Y)
