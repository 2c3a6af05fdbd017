import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestRegressor

from costscape import Auto, ProjectedAdam, Simplex, Task, load
from costscape.bench import PROBLEMS
from costscape.checks import check_method
from costscape.data import Dataset
from costscape.methods.selection import validation_cost
from costscape.methods.weighted import forest_weights, random_forest
from costscape.methods.weighted import weighted_labels as labels
from costscape.methods.weighted.random_forest import RandomForest
from costscape.models import Standardise

QUICK = ProjectedAdam(steps=60, starts=1)


def grown(x, y, trees, min_leaf, seed=0):
    """The forest by scikit-learn alone."""
    y = Standardise(y)(y).flatten(1).double().numpy()
    forest = RandomForestRegressor(trees, min_samples_leaf=min_leaf, random_state=seed)
    return forest.fit(x.flatten(1).float().numpy(), y[:, 0] if y.shape[1] == 1 else y)


def by_hand(forest, x, new):
    """mean_t 1[leaf_t(x_i) = leaf_t(x)] / (rows in the leaf)."""
    at, of = (forest.apply(v.flatten(1).float().numpy()) for v in (new, x))
    same = at[:, None] == of[None]  # (B, n, T)
    return torch.as_tensor((same / same.sum(1, keepdims=True)).mean(-1))


@pytest.mark.parametrize("dim", [1, 3])
@pytest.mark.parametrize("min_leaf", [1, 4])
def test_weights_are_those_of_the_leaves_sklearn_finds(newsvendor, demand, dim, min_leaf):
    x, y = demand(120, dim=dim)
    new, _ = demand(40, seed=1)
    model = RandomForest(newsvendor(dim), trees=15, min_leaf=min_leaf, seed=3)
    s = model.fit(x, y, val=(x, y)).scenarios(new)
    expected = by_hand(grown(x, y, 15, min_leaf, seed=3), x, new)
    assert torch.allclose(s.weights.double(), expected, atol=1e-6)
    assert torch.equal(s.values, y[None])


def test_outcomes_of_more_numbers_than_rows_are_turned_and_split_the_same(newsvendor):
    rng = torch.Generator().manual_seed(0)
    # one feature: of two that part the rows alike, rounding would choose one
    x, new = torch.randn(40, 1, generator=rng), torch.randn(20, 1, generator=rng)
    y = (x @ torch.randn(1, 90, generator=rng)).abs() + torch.rand(40, 90, generator=rng)
    turned = random_forest._turned(y.double())
    assert turned.shape == (40, 40)
    assert torch.allclose(turned @ turned.T, y.double() @ y.double().T)
    model = RandomForest(newsvendor(90), trees=15, min_leaf=3, seed=3)
    s = model.fit(x, y, val=(x, y)).scenarios(new)
    expected = by_hand(grown(x, y, 15, 3, seed=3), x, new)
    assert torch.allclose(s.weights.double(), expected, atol=1e-6)


@pytest.mark.parametrize("double", [False, True])
def test_leaves_match_apply_bit_for_bit_even_on_the_thresholds(newsvendor, double):
    # close values: thresholds are halfway between neighbouring single-precision numbers
    rng = torch.Generator().manual_seed(0)
    x = 1 + torch.randint(0, 64, (300, 2), generator=rng) * 2.0**-23
    y = torch.rand(300, 1, generator=rng)
    task = newsvendor()
    if double:
        task.double()
    model = RandomForest(task, trees=20, min_leaf=1).fit(x, y, val=(x, y)).model_
    forest = grown(x, y.double() if double else y, 20, 1)
    cuts = np.concatenate([e.tree_.threshold for e in forest.estimators_]).astype(np.float32)
    cuts = torch.as_tensor(cuts[: len(cuts) // 2 * 2]).view(-1, 2)
    new = torch.cat([x, cuts, cuts.nextafter(torch.tensor(9.0)), cuts.nextafter(-cuts)])
    # and doubles that single precision rounds onto a threshold's other side
    new = torch.cat([new.double(), new.double() + 2.0**-25, new.double() - 2.0**-25])
    assert torch.equal(
        model.leaves(new) - model.root, torch.as_tensor(forest.apply(new.float().numpy()))
    )


def test_sequences_and_matrices_are_flattened():
    rng = torch.Generator().manual_seed(0)
    x = torch.rand(90, 4, 2, generator=rng)
    y = torch.rand(90, 2, 3, generator=rng)
    task = Task(
        lambda y, a: (y.mean(-2) - a).square().sum(-1), Simplex(dim=3), convex=True, y_dims=2
    )
    model = RandomForest(task, trees=8, min_leaf=5).fit(x, y, val=(x, y))
    s = model.scenarios(x[:7])
    assert torch.allclose(s.weights.double(), by_hand(grown(x, y, 8, 5), x, x[:7]), atol=1e-6)
    assert torch.equal(s.values, y[None])


def test_outcomes_in_large_units_do_not_decide_the_splits_alone(newsvendor):
    rng = torch.Generator().manual_seed(0)
    x = torch.rand(200, 2, generator=rng)
    y = (x > 0.5).float()
    one = RandomForest(newsvendor(2), trees=5, min_leaf=10).fit(x, y, val=(x, y))
    scaled = y * torch.tensor([1.0, 1024.0])
    other = RandomForest(newsvendor(2), trees=5, min_leaf=10).fit(x, scaled, val=(x, scaled))
    assert torch.equal(one.scenarios(x).weights, other.scenarios(x).weights)


@settings(max_examples=15, deadline=None)
@given(
    n=st.integers(1, 40),
    min_leaf=st.integers(1, 6),
    seed=st.integers(0, 99),
    step=st.sampled_from([0.0, 0.5, 1e-6]),
)
def test_weights_are_a_distribution_wherever_x_is(newsvendor, n, min_leaf, seed, step):
    rng = torch.Generator().manual_seed(seed)
    x = (torch.randn(n, 2, generator=rng) / max(step, 1e-9)).round() * step  # with duplicates
    y = torch.rand(n, 1, generator=rng)
    model = RandomForest(newsvendor(), trees=3, min_leaf=min(min_leaf, n), seed=seed)
    model.fit(x, y, val=(x, y))
    w = model.scenarios(torch.cat([x, 1e6 * x, torch.full((1, 2), 1e30)])).weights
    assert (w >= 0).all()
    assert torch.allclose(w.sum(1), torch.ones(len(w)), atol=1e-5)


def test_blocks_give_the_same_bits(newsvendor, demand, monkeypatch):
    x, y = demand(70)
    model = RandomForest(newsvendor(), trees=6, min_leaf=3).fit(x, y, val=(x, y))
    whole = model.scenarios(x).weights
    for module in (labels, forest_weights):
        monkeypatch.setattr(module, "BLOCK", 90)
    assert torch.equal(model.scenarios(x).weights, whole)
    assert torch.equal(model.scenarios(x[5:6]).weights, whole[5:6])


def test_the_leaf_that_costs_least_on_validation_is_taken(newsvendor, demand):
    (x, y), val = demand(200), demand(100, seed=1)
    task = newsvendor()
    model = RandomForest(task, trees=60).fit(x, y, val=val)
    score = validation_cost(task, Dataset(*val), Auto())
    costs = {
        size: score(RandomForest(task, trees=50, min_leaf=size).fit(x, y, val=val).model_)
        for size in (5, 10, 20, 40, 80)
    }
    assert model.chosen() == {"min_leaf": min(costs, key=costs.get)}
    assert len(set(costs.values())) > 1
    assert len(model.model_.root) == 60


def test_features_that_never_change_leave_all_rows_in_one_leaf(newsvendor):
    y = torch.rand(50, 1)
    x = torch.ones(50, 3)
    w = RandomForest(newsvendor(), trees=4).fit(x, y, val=(x, y)).scenarios(x[:2]).weights
    assert torch.allclose(w, torch.full((2, 50), 1 / 50))


def test_with_fewer_rows_than_the_least_leaf_a_leaf_may_hold_one(newsvendor):
    x, y = torch.arange(3.0)[:, None], torch.arange(3.0)[:, None]
    assert RandomForest(newsvendor(), trees=4).fit(x, y, val=(x, y)).model_.min_leaf == 1


@pytest.mark.parametrize("double", [False, True])
def test_a_loaded_forest_decides_bit_for_bit_without_sklearn(
    newsvendor, demand, tmp_path, monkeypatch, double
):
    task = newsvendor(2)
    if double:
        task.double()
    x, y = demand(60, dim=2)
    model = RandomForest(task, trees=7).fit(x, y)
    model.save(tmp_path / "forest")
    monkeypatch.setitem(sys.modules, "sklearn", None)
    monkeypatch.setitem(sys.modules, "sklearn.ensemble", None)
    back = load(tmp_path / "forest", task, method=RandomForest)
    new, _ = demand(20, seed=1)
    assert torch.equal(back.decide(new), model.decide(new))
    assert torch.equal(back.scenarios(new).weights, model.scenarios(new).weights)


@pytest.mark.parametrize("problem", ["synthetic-convex", "synthetic-nonconvex"])
def test_the_forest_keeps_the_contract_of_a_method(problem):
    p = PROBLEMS[problem](0)
    check_method(RandomForest(p.task, trees=10), p.data.train.x[:150], p.data.train.y[:150])


def test_the_forest_keeps_the_contract_on_a_simplex(demand):
    x, y = demand(60, dim=3)
    task = Task(lambda y, a: -(y * (a + 0.1).sqrt()).sum(-1), Simplex(dim=3), convex=True)
    check_method(RandomForest(task, trees=5, min_leaf=5, solver=QUICK), x, y)


@pytest.mark.parametrize("min_leaf", [0, 21])
def test_a_leaf_of_no_rows_or_too_many_is_refused(newsvendor, min_leaf):
    x, y = torch.rand(20, 1), torch.rand(20, 1)
    with pytest.raises(ValueError, match=f"from 1 to the 20 training rows, but is {min_leaf}"):
        RandomForest(newsvendor(), min_leaf=min_leaf).fit(x, y, val=(x, y))


def test_settings_out_of_range_are_refused(newsvendor):
    with pytest.raises(ValueError, match="trees to be a whole number of at least 1, but got 0"):
        RandomForest(newsvendor(), trees=0)
    with pytest.raises(ValueError, match=r"above 0 and at most 1, but got 1\.5"):
        RandomForest(newsvendor(), features=1.5)
