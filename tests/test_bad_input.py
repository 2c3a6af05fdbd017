"""Wrong settings and costs that misbehave get one sentence, when they are given."""

import inspect
import math
from copy import deepcopy
from dataclasses import MISSING, fields
from typing import get_type_hints

import numpy as np
import pytest
import torch

import costscape as cs
from costscape.training.settings import Checked, Count, Range, _fits

BOX = cs.Box(0.0, 4.0, dim=1)
RNG = np.random.default_rng(0)
X, Y = RNG.random((60, 3)), 3 * RNG.random((60, 1))
BRIEF = cs.Training(epochs=1, progress=False)
TASK = cs.Task(lambda y, a: (y - a).abs().sum(-1), BOX)


def settings():
    """Every public class of settings, and each of its settings."""
    for name in cs.__all__:
        cls = getattr(cs, name)
        if not (isinstance(cls, type) and issubclass(cls, Checked)) or inspect.isabstract(cls):
            continue
        hints = get_type_hints(cls, include_extras=True)
        for field in fields(cls):
            if field.init:
                yield pytest.param(cls, field.name, hints[field.name], id=f"{name}-{field.name}")


def made(cls, **changed):
    needed = {"task": TASK, "method": cs.NearestNeighbours(TASK), "level": 0.9, "theta": 1.0}
    given = {
        f.name: needed[f.name]
        for f in fields(cls)
        if f.init and f.default is MISSING and f.default_factory is MISSING
    }
    return cls(**{**given, **changed})


@pytest.mark.parametrize(("cls", "name", "hint"), list(settings()))
def test_every_setting_refuses_what_it_cannot_be(cls, name, hint):
    made(cls)
    for wrong in ("no such", math.nan, 2.5, cs.Training, object()):
        if not _fits(wrong, hint):
            with pytest.raises((TypeError, ValueError), match=name):
                made(cls, **{name: wrong})


@pytest.mark.parametrize(
    ("ends", "inside", "outside", "words"),
    [
        ("[]", (0, 1), (-1e-9, 1.1), "of at least 0 and at most 1"),
        ("[)", (0, 0.99), (-1e-9, 1), "of at least 0 and below 1"),
        ("(]", (1e-9, 1), (0, 1.1), "above 0 and at most 1"),
        ("()", (1e-9, 0.99), (0, 1), "above 0 and below 1"),
    ],
)
def test_a_range_has_the_ends_of_its_interval(ends, inside, outside, words):
    found = Range(0.0, 1.0, ends)
    assert str(found) == words
    assert all(found.holds(value) for value in inside)
    assert not any(found.holds(value) for value in (*outside, math.inf, -math.inf))


def test_each_value_of_a_tuple_is_checked():
    sizes, pair = tuple[Count, ...], tuple[float, float]
    assert _fits((1, 5), sizes)
    assert _fits((1.0, 2), pair)
    for wrong in (5, (), (5, 0), (5, "a"), [5]):
        assert not _fits(wrong, sizes)
    for wrong in ((1.0,), (1.0, 2.0, 3.0), (1.0, "a")):
        assert not _fits(wrong, pair)
    with pytest.raises(ValueError, match=r"tuple \(a number above 0, \.\.\.\) or None"):
        cs.SOEBM(TASK, variances=())
    with pytest.raises(TypeError, match="variances"):
        cs.SOEBM(TASK, variances=(0.1, "a"))


def test_numbers_of_numpy_are_those_of_python():
    method = cs.DF2.quick(TASK, seed=np.int64(3), training=cs.Training(epochs=np.int32(1)))
    assert type(method.seed) is type(method.training.epochs) is int
    with pytest.raises(TypeError, match="DF2 needs seed to be a whole number, but got True"):
        cs.DF2(TASK, seed=True)


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"convex": "no"}, "convex to be True or False, but got 'no'"),
        ({"width": 0}, "width to be a whole number of at least 1, but got 0"),
        ({"y_dims": 1.5}, "y_dims to be a whole number of at least 1, but got 1.5"),
        ({"hindsight": "x"}, "needs a function hindsight"),
    ],
)
def test_facts_of_a_task_are_checked(facts, message):
    with pytest.raises((TypeError, ValueError), match=message):
        cs.Task(lambda y, a: a.sum(-1), BOX, **facts)


def test_double_prices_serve_in_a_single_precision_task():
    prices = torch.tensor(np.array([3.0]))
    plain = cs.Task(lambda y, a: (3.0 * (y - a).relu() + (a - y).relu()).sum(-1), BOX)
    doubled = cs.Task(lambda y, a: (prices * (y - a).relu() + (a - y).relu()).sum(-1), BOX)
    a, b = (cs.NearestNeighbours(t, k=9).fit(X, Y).decide(X[:4]) for t in (plain, doubled))
    assert np.allclose(a, b, atol=1e-3)


@pytest.mark.parametrize(
    ("cost", "message"),
    [
        (lambda y, a: (y > a).sum(-1), "must return torch.float32 numbers"),
        (lambda y, a: (y - a.detach()).abs().sum(-1), "a cost with a slope in a"),
    ],
)
def test_a_cost_of_whole_numbers_or_without_slope_is_named(cost, message):
    task, y = cs.Task(cost, cs.Box(0.0, 4.0, dim=2)), np.column_stack([Y, Y])
    with pytest.raises(TypeError, match=message):
        cs.NearestNeighbours(task, k=9).fit(X, y).decide(X[:2])


def test_a_slope_that_is_nan_is_told_and_does_not_end_the_search():
    def kinked(a):  # the slope of the root is NaN at and below 1
        return (torch.where(a > 1, (a - 1).sqrt(), 0.0) + (a - 0.5) ** 2).sum(-1)

    with pytest.warns(UserWarning, match="slope of the cost is NaN or infinite at"):
        found = cs.ProjectedAdam().minimise(kinked, BOX, 1)
    assert found.action.item() == pytest.approx(0.5, abs=0.3)


def test_decisions_of_every_method_are_checked():
    method = cs.Constant(cs.Task(TASK.f, cs.Box(0.0, 4.0, dim=1))).fit(X, Y)
    method.task.feasible.upper.fill_(0.1)
    with pytest.raises(RuntimeError, match="outside the feasible set"):
        method.decide(X[:1])


def test_a_set_counts_the_numbers_of_an_action():
    with pytest.raises(ValueError, match="actions of 3 numbers"):
        cs.Simplex(dim=3).contains(torch.tensor([0.5, 0.5]))


def test_columns_that_single_precision_makes_equal_are_refused():
    seconds = 1.6e9 + np.arange(60.0)[:, None]
    with pytest.raises(ValueError, match=r"of 60 different numbers near .* in column 0 only"):
        cs.NearestNeighbours(TASK, k=5).fit(seconds, Y)
    cs.NearestNeighbours(TASK, k=5).fit(seconds - seconds.mean(), Y)


def test_a_device_that_is_not_there_is_named():
    with pytest.raises(ValueError, match="such as 'cpu' or 'cuda:0', but got 'gpu9'"):
        cs.Training(device="gpu9")
    if not torch.cuda.is_available():
        with pytest.raises(ValueError, match="torch finds no GPU here"):
            cs.DF2.quick(TASK, training=cs.Training(device="cuda")).fit(X, Y)


def batch_mean(y, a):
    cost = (y - a).abs().sum(-1)
    return cost - cost.mean()


@pytest.mark.parametrize("facts", [{"gap": 1.5}, {"block": 1.5}, {"seeds": "3"}, {"test": "a"}])
def test_arguments_of_compare_are_checked(facts):
    with pytest.raises(TypeError, match=f"compare needs {next(iter(facts))}"):
        cs.compare(TASK, X, Y, methods={"constant": cs.Constant(TASK)}, progress=False, **facts)


def test_a_cost_that_looks_at_its_batch_is_named():
    with pytest.raises(ValueError, match="must not depend on other rows of the batch"):
        cs.NearestNeighbours(cs.Task(batch_mean, BOX), k=3).fit(X, Y)


def test_an_error_of_the_cost_passes_with_a_note():
    def broken(y, a):
        raise KeyError("price")

    with pytest.raises(KeyError, match="price") as caught:
        cs.NearestNeighbours(cs.Task(broken, BOX), k=3).fit(X, Y)
    assert "Raised by the cost of the task" in caught.value.__notes__[0]


@pytest.mark.parametrize("constant", [1e6, 1e8])
def test_a_constant_that_hides_the_cost_is_told(constant):
    task = cs.SeparableTask(lambda y, a: (y - a).abs() + constant, deepcopy(BOX), convex=True)
    with pytest.warns(UserWarning, match="Take the constant out of the cost, or fit with task.do"):
        cs.NearestNeighbours(task, k=9).fit(X, Y)
    plain = cs.SeparableTask(lambda y, a: (y - a).abs(), deepcopy(BOX), convex=True)
    a, b = (cs.NearestNeighbours(t.double(), k=9).fit(X, Y).decide(X[:9]) for t in (task, plain))
    assert np.allclose(a, b, atol=1e-4)


@pytest.mark.parametrize(
    ("cost", "words"),
    [
        (lambda y, a: (y - a).abs().sum(-1) + 3 * (a > 1).to(a.dtype).sum(-1), "The cost jumps"),
        (lambda y, a: (y - a.relu().clamp(0.9, 1)).abs().sum(-1), "has no slope at"),
    ],
)
def test_jumps_and_flat_parts_are_told_where_slopes_decide(cost, words):
    y = np.column_stack([Y, Y])
    with pytest.warns(UserWarning, match=words):
        cs.NearestNeighbours(cs.Task(cost, cs.Budget(total=3.0, dim=2)), k=3).fit(X, y)
    # a kink is no jump, and lists are searched
    kinked = cs.Task(lambda y, a: (y - a).abs().sum(-1), cs.Budget(total=3.0, dim=2))
    cs.NearestNeighbours(kinked, k=3).fit(X, y)
    cs.NearestNeighbours(cs.Task(cost, cs.Finite([[0.0, 1.0], [1.0, 0.0]])), k=3).fit(X, y)


def test_hindsight_returns_actions_of_the_set():
    two = cs.Box(0.0, 4.0, dim=2)
    y = np.column_stack([Y, Y])
    for hindsight, words in (
        (lambda y: y[:, :1], r"needs to return \(60, 2\).* returned shape \(60, 1\)"),
        (lambda y: y + 9, "actions of the feasible set, but some break a constraint by"),
    ):
        task = cs.Task(lambda y, a: (y - a).abs().sum(-1), two, hindsight=hindsight)
        with pytest.raises(ValueError, match=words):
            cs.evaluate(cs.NearestNeighbours(task, k=3).fit(X, y), X, y)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_coarse_rows_round_no_decision_out_of_the_set(dtype):
    task = cs.SeparableTask(lambda y, a: (y + 1 - a).abs(), cs.Box(0.0, 0.3, dim=1)).double()
    a = cs.NearestNeighbours(task, k=3).fit(X, Y).decide(torch.tensor(X[:9]).to(dtype))
    assert a.dtype == torch.float64
    assert a.max() == task.feasible.upper


def test_a_cost_of_one_coordinate_is_searched():
    def wavy(y, a):
        return (torch.sin(9 * a) + 0.1 * (y - a) ** 2).sum(-1)

    g = cs.ExpectedCost(
        cs.Task(wavy, BOX), cs.Scenarios(torch.ones(1, 1), torch.tensor([[[2.0]]]))
    )
    found = cs.Auto().minimise(g, BOX, 1)
    grid = torch.linspace(0, 4, 100_001)[None, :, None]
    assert isinstance(cs.Auto().pick(g, BOX), cs.Separable)
    assert found.cost[0] <= g(grid).min() + 1e-6
