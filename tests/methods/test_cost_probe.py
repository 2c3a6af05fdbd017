"""Costs and promises that a few samples refute are refused before the fit."""

import json
from datetime import UTC, datetime

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file

import costscape as cs
from costscape.methods import saving

RNG = np.random.default_rng(0)
X, Y = RNG.random((40, 3)), 1 + RNG.random((40, 2))
BOX = cs.Box(0.0, 3.0, dim=2)


def fit(task):
    return cs.Constant(task).fit(X, Y)


def terms(y, a):
    return 3 * (y - a).relu() + (a - y).relu()


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_terms_that_look_at_other_coordinates_are_refused(size):
    said = (
        r"^Term i of a SeparableTask may depend on a_i only, but term [01] changes by .* Use Task"
    )
    with pytest.raises(ValueError, match=said):
        fit(cs.SeparableTask(lambda y, a: size * (y - a.sum(-1, keepdim=True)) ** 2, BOX))
    with pytest.raises(ValueError, match=r"but term 1 changes"):
        fit(cs.SeparableTask(lambda y, a: size * (a.cumsum(-1) + 0 * y), BOX))
    fit(cs.SeparableTask(lambda y, a: size * (y.sum(-1, keepdim=True) - a) ** 2, BOX))


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_a_cost_that_is_not_convex_is_refused_as_convex(size):
    said = "^The task has convex=True, but its cost is not convex: half way .* Leave convex out"
    for f in (lambda y, a: size * (y - a**2), lambda y, a: size * (y - a).abs().sqrt()):
        with pytest.raises(ValueError, match=said):
            fit(cs.SeparableTask(f, BOX, convex=True))
        with pytest.raises(ValueError, match=said):
            fit(cs.Task(lambda y, a, f=f: f(y, a).sum(-1), BOX, convex=True))
        fit(cs.SeparableTask(f, BOX))


@pytest.mark.filterwarnings("ignore:The cost is about")  # of the constant, which is large
@pytest.mark.parametrize("constant", [0.0, 1e5])
def test_convex_costs_are_not_refused_for_rounding(constant):
    for f in (terms, lambda y, a: y * a, lambda y, a: (y - a) ** 2, lambda y, a: 0 * a * y):
        fit(cs.SeparableTask(lambda y, a, f=f: f(y, a) + constant, BOX, convex=True))
    actions = cs.Finite([[0.0, 0.0], [1.0, 2.0], [3.0, 3.0]])  # no action is half way
    fit(cs.Task(lambda y, a: -(y * a**2).sum(-1), actions, convex=True))


def changes_y(y, a):
    y += 0.5
    return terms(y, a).sum(-1)


def changes_a(y, a):
    return terms(y, a.mul_(1.5)).sum(-1)


@pytest.mark.parametrize(("cost", "name"), [(changes_y, "y"), (changes_a, "a")])
def test_a_cost_that_changes_its_arguments_is_refused_and_the_set_stays(cost, name):
    actions = cs.Finite([[0.0, 0.0], [1.0, 2.0], [3.0, 3.0]])
    with pytest.raises(ValueError, match=f"must leave y and a as they are, but it changed {name}"):
        fit(cs.Task(cost, actions))
    assert actions.bounds[1].tolist() == [3.0, 3.0]


def test_a_cost_that_differs_between_calls_is_refused():
    with pytest.raises(ValueError, match="must return the same for the same y and a, but two"):
        fit(cs.Task(lambda y, a: (y - a + torch.rand(())).abs().sum(-1), BOX))


def test_a_cost_that_is_nan_at_a_corner_is_refused():
    with pytest.raises(ValueError, match=r"is nan at y = .* and a = \[0.0, 0.0\]"):
        fit(cs.Task(lambda y, a: (y - a).abs().sum(-1) + (a - 1e-4).sqrt().sum(-1), BOX))
    fit(cs.Task(lambda y, a: (y - a.log()).sum(-1), BOX))


def test_a_set_that_leaves_out_most_outcomes_is_warned_of():
    small = cs.Box(0.0, [3.0, 0.5])
    said = r"allows 0 to 0.5 for a_1, but 100% of the outcomes y_1 are far outside"
    with pytest.warns(UserWarning, match=said):
        fit(cs.SeparableTask(terms, small))
    fit(cs.SeparableTask(lambda y, a: y * a, small))  # prices, where a = y has no meaning
    fit(cs.SeparableTask(lambda y, a: -y * a, small))
    fit(cs.SeparableTask(terms, BOX))


def test_the_probe_leaves_the_random_numbers_of_torch_alone():
    torch.manual_seed(0)
    fit(cs.SeparableTask(terms, BOX, convex=True))
    first = torch.rand(())
    torch.manual_seed(0)
    assert torch.rand(()) == first


# ---- the cost of a model file


def priced(under, over=1.0, upper=3.0):
    return cs.SeparableTask(
        lambda y, a: under * (y - a).relu() + over * (a - y).relu(), cs.Box(0.0, upper, dim=2)
    )


@pytest.fixture
def saved(tmp_path):
    cs.NearestNeighbours(priced(3.0), k=5).fit(X, Y).save(tmp_path / "m")
    return tmp_path / "m"


def head_of(path):
    with safe_open(path, framework="pt") as file:
        return json.loads(file.metadata()["costscape"])


def test_a_file_is_loaded_for_the_same_cost_only(saved):
    said = "^The model was fitted for another cost: .* Pass the task of the fit, or fit again"
    prices = torch.tensor([3.0, 2.9])
    for task in (priced(1.0, 3.0), priced(3.003), priced(prices)):
        with pytest.raises(ValueError, match=said):
            cs.load(saved, task)
    fined = cs.SeparableTask(lambda y, a: priced(3.0).terms(y, a) + 9 * (a > 2.9), BOX)
    with pytest.raises(ValueError, match=said):
        cs.load(saved, fined)
    for task in (priced(3.0), priced(3.0).double(), priced(3.0, upper=2.0)):
        cs.load(saved, task)


def test_a_file_tells_where_the_model_comes_from(saved):
    record = head_of(saved)["fitted"]["record"]
    assert record["costscape"] == cs.__version__
    assert record["torch"] == torch.__version__
    assert record["rows"] == 40
    assert datetime.fromisoformat(record["date"]).tzinfo is UTC
    assert np.allclose(record["x_low"], X.min(0))
    assert np.allclose(record["x_high"], X.max(0))


def test_a_file_of_an_earlier_version_is_loaded_with_a_warning(saved):
    head = saving.read(saved)[1]
    for key in ("record", "x_columns"):
        head["fitted"].pop(key)
    saving.write(saved, load_file(saved), head)
    with pytest.warns(UserWarning, match="earlier version of costscape, .* Fit and save"):
        model = cs.load(saved, priced(1.0))
    assert model.decide(1000 * X).shape == (40, 2)
    with pytest.raises(RuntimeError, match="range of the training rows is not known"):
        model.check(X)
