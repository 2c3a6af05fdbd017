import math

import pytest
import torch
from torch import Generator

from costscape import (
    Box,
    Budget,
    DecisionForest,
    Finite,
    ProjectedAdam,
    RandomForest,
    SeparableTask,
    Task,
    load,
)
from costscape.bench import PROBLEMS
from costscape.checks import check_method
from costscape.data import Dataset
from costscape.methods.weighted.decision_forest import candidate_actions, candidate_costs
from costscape.methods.weighted.decision_tree import best_split, grow_tree
from costscape.solvers import Auto

QUICK = ProjectedAdam(steps=60, starts=1)


def newsvendor_cost(y, a):
    return (3 * (y - a).relu() + (a - y).relu()).sum(-1)


def spread_and_mean(n, seed=0):
    """y_0 has constant mean and a spread that depends on x_0; y_1, which costs nothing, is x_1."""
    rng = Generator().manual_seed(seed)
    x = torch.rand(n, 5, generator=rng)
    spread = torch.where(x[:, :1] < 0.5, 0.1, 1.0)
    u = 2 * torch.rand(n, 1, generator=rng) - 1
    return x, torch.cat([2 + spread * u, 10 * x[:, 1:2]], 1)


def first_coordinate():
    """Only y_0 costs: 9 a unit short, 1 spare."""

    def terms(y, a):
        short = (y[..., :1] - a).relu()
        return 9 * short + (a - y[..., :1]).relu()

    return SeparableTask(terms, Box(0.0, 4.0, dim=1), convex=True)


def splits_by_hand(x, T, min_leaf):
    """Every cut between distinct neighbours and its cost, by loops."""
    found = {}
    for j in range(len(x)):
        values = x[j].unique()
        for k in range(len(values) - 1):
            left = x[j] <= values[k]
            if min(left.sum(), (~left).sum()) >= min_leaf:
                cost = sum(T[side].sum(0).amin(-1).sum() for side in (left, ~left))
                found[j, k] = float(cost)
    return found


# ---- the split


@pytest.mark.parametrize("shape", [(1, 6), (3, 5)])
@pytest.mark.parametrize("min_leaf", [1, 4])
@pytest.mark.parametrize("seed", range(5))
def test_the_split_is_that_of_a_search_of_all(shape, min_leaf, seed):
    rng = Generator().manual_seed(seed)
    x = torch.randn(3, 30, generator=rng)
    x[2] = x[2].round()  # with ties
    T = torch.rand(30, *shape, generator=rng)
    costs = splits_by_hand(x, T, min_leaf)
    j, k = min(costs, key=costs.get)
    found, cut = best_split(x, T, min_leaf)
    values = x[j].unique()
    assert found == j
    assert values[k] <= cut < values[k + 1]


def test_with_many_rows_the_split_is_the_best_of_32_ranks():
    rng = Generator().manual_seed(0)
    x = torch.randn(1, 500, generator=rng)
    T = torch.rand(500, 2, 4, generator=rng)
    ordered = x[0].sort().values
    ranks = torch.linspace(9, 489, 32, dtype=torch.float64).round().long()
    costs = splits_by_hand(x, T, 10)
    best = min(ranks.tolist(), key=lambda k: costs[0, k])
    _, cut = best_split(x, T, 10)
    assert ordered[best] <= cut < ordered[best + 1]


def test_nothing_is_split_where_no_split_lowers_the_cost():
    x = torch.rand(2, 20)
    T = torch.tensor([0.0, 1.0]).expand(20, 1, 2)  # the first action is best for every row
    assert best_split(x, T, 2) is None
    assert best_split(torch.ones(2, 20), torch.rand(20, 1, 5), 2) is None


def test_cuts_between_neighbouring_single_precision_numbers_part_them():
    x = 1 + torch.arange(6.0)[None] * 2.0**-23
    T = torch.tensor([[0.0, 1.0]] * 3 + [[1.0, 0.0]] * 3)[:, None]
    _, cut = best_split(x, T, 1)
    assert (x[0] <= cut).tolist() == [True] * 3 + [False] * 3


def test_a_tree_sends_every_row_to_its_leaf():
    rng = Generator().manual_seed(0)
    x, T = torch.rand(100, 3, generator=rng), torch.rand(100, 2, 5, generator=rng)
    sample = torch.arange(0, 100, 2)
    (feature, cut, less, more), leaf, depth = grow_tree(x, T, sample, 4, 2, rng)
    deepest = 0
    for i in range(100):
        node = steps = 0
        while less[node] != node:
            side = less if x[i, feature[node]] <= cut[node] else more
            node, steps = int(side[node]), steps + 1
        assert node == leaf[i]
        deepest = max(deepest, steps)
    assert deepest == depth
    assert leaf[sample].bincount()[leaf.unique()].min() >= 4


# ---- candidates


def test_values_of_a_coordinate_are_an_even_grid_between_optima_of_groups():
    x, y = spread_and_mean(400)
    a = candidate_actions(first_coordinate(), Dataset(x, y), None, Auto(), 0)
    assert a.shape == (32, 1)
    assert torch.allclose(a[1:] - a[:-1], (a[-1:] - a[:1]) / 31, atol=1e-5)
    assert 1.5 < a[0] < 2.2  # where nearly all neighbours have little spread
    assert 2.6 < a[-1] < 3


def test_costs_are_those_of_the_task_up_to_a_number_for_each_row():
    y = torch.rand(9, 3)
    a = torch.rand(4, 3)
    task = Task(newsvendor_cost, Box(0.0, 1.0, dim=3))
    T = candidate_costs(task, y, a)
    cost = task.cost(y[:, None], a)
    assert T.shape == (9, 1, 4)
    assert torch.allclose(T[:, 0] - T[:, 0, :1], cost - cost[:, :1], atol=1e-6)
    terms = SeparableTask(lambda y, a: (y - a) ** 2, Box(0.0, 1.0, dim=3))
    expected = (y[:, :, None] - a.T) ** 2
    T = candidate_costs(terms, y, a)
    assert torch.allclose(T - T[..., :1], expected - expected[..., :1], atol=1e-6)


def test_a_short_list_of_actions_is_taken_whole_and_a_long_one_in_part():
    x, y = spread_and_mean(60)
    actions = torch.rand(40, 1)
    task = Task(lambda y, a: (y[..., 0] - a[..., 0]).abs(), Finite(actions))
    assert torch.equal(candidate_actions(task, Dataset(x, y), 40, Auto(), 0), actions)
    some = candidate_actions(task, Dataset(x, y), 7, Auto(), 0)
    assert some.shape == (7, 1)
    assert task.feasible.contains(some).all()


@pytest.mark.parametrize("candidates", [1, 2, 9])
def test_candidates_of_a_budget_are_feasible_and_hold_the_optimum_of_all(candidates):
    x, y = spread_and_mean(60)
    task = Task(newsvendor_cost, Budget(total=4.0, dim=2), convex=True)
    a = candidate_actions(task, Dataset(x, y), candidates, QUICK, 0)
    assert a.shape == (candidates, 2)
    assert task.feasible.contains(a).all()
    others = task.feasible.sample(500, Generator().manual_seed(0))
    mean = task.cost(y[:, None], torch.cat([a[:1], others])).mean(0)
    assert mean[0] <= mean[1:].min() + 0.02


# ---- what it is for


def test_the_root_splits_on_what_moves_the_decision_and_not_on_what_moves_y():
    x, y = spread_and_mean(1000)
    task, val = first_coordinate(), spread_and_mean(300, seed=1)
    ours = DecisionForest(task, trees=20, min_leaf=20, features=1.0).fit(x, y, val=val)
    theirs = RandomForest(task, trees=20, min_leaf=20).fit(x, y, val=val)
    assert (ours.model_.feature[ours.model_.root] == 0).all()
    assert (ours.model_.cut[ours.model_.root] - 0.5).abs().max() < 0.05
    assert (theirs.model_.feature[theirs.model_.root] == 1).all()
    new, after = spread_and_mean(2000, seed=2)
    cost, other = (float(task.cost(after, m.decide(new)).mean()) for m in (ours, theirs))
    # the 0.9 quantile of 2 + s u costs 0.9 s with u uniform on [-1, 1]: 0.495 on average
    assert cost < 0.53
    assert other > cost + 0.03


@pytest.mark.parametrize("kind", ["budget", "finite"])
def test_coupled_decisions_split_on_what_moves_them(kind):
    x, y = spread_and_mean(400)
    if kind == "budget":
        C = Budget(total=3.0, dim=2)
        task = Task(lambda y, a: 9 * (y[..., 0] - a[..., 0]).relu() + a.sum(-1), C)
    else:
        C = Finite([[1.9], [2.0], [2.1], [2.4], [2.8]])
        task = Task(lambda y, a: 9 * (y[..., 0] - a[..., 0]).relu() + a[..., 0], C)
    model = DecisionForest(
        task, trees=6, min_leaf=20, features=1.0, solver=QUICK if kind == "budget" else Auto()
    )
    model.fit(x, y, val=(x, y))
    assert (model.model_.feature[model.model_.root] == 0).all()


# ---- the contract


def test_weights_are_shares_of_leaves_over_all_rows():
    x, y = spread_and_mean(120)
    model = DecisionForest(first_coordinate(), trees=7, min_leaf=5).fit(x, y, val=(x, y))
    at = model.model_.leaves(x)
    same = at[:, None] == at[None]
    expected = (same / same.sum(1, keepdim=True)).mean(-1)
    assert torch.allclose(model.scenarios(x).weights, expected, atol=1e-6)


def test_the_leaf_that_costs_least_on_validation_is_taken_from_forests_of_20():
    (x, y), val = spread_and_mean(200), spread_and_mean(100, seed=1)
    task = first_coordinate()
    model = DecisionForest(task, trees=22).fit(x, y, val=val)
    chosen = model.model_
    costs = {}
    for size in (5, 10, 20, 40, 80):
        made = DecisionForest(task, trees=20, min_leaf=size).fit(x, y, val=val)
        costs[size] = float(task.cost(val[1], made.decide(val[0])).mean())
    assert costs[chosen.min_leaf] <= min(costs.values()) + 1e-3
    assert model.chosen() == {"min_leaf": chosen.min_leaf}
    assert len(chosen.root) == 22
    whole = DecisionForest(task, trees=22, min_leaf=chosen.min_leaf).fit(x, y, val=val).model_
    assert torch.equal(whole.cut, chosen.cut)


def test_another_seed_grows_other_trees():
    x, y = spread_and_mean(120)
    one, other = (
        DecisionForest(first_coordinate(), trees=4, min_leaf=5, seed=seed).fit(x, y, val=(x, y))
        for seed in (0, 1)
    )
    assert not torch.equal(one.scenarios(x).weights, other.scenarios(x).weights)


@pytest.mark.parametrize("problem", ["synthetic-convex", "synthetic-nonconvex"])
def test_the_forest_keeps_the_contract_of_a_method(problem):
    p = PROBLEMS[problem](0)
    check_method(DecisionForest(p.task, trees=5), p.data.train.x[:120], p.data.train.y[:120])


@pytest.mark.parametrize(
    "C", [Box(0.0, 3.0, dim=2), Budget(total=3.0, dim=2), Finite(torch.rand(30, 2))]
)
def test_the_forest_keeps_the_contract_on_other_sets(C):
    x, y = spread_and_mean(50)
    task = Task(newsvendor_cost, C, convex=True)
    solver = Auto() if isinstance(C, Finite) else QUICK
    check_method(DecisionForest(task, trees=3, min_leaf=5, candidates=9, solver=solver), x, y)


def test_sequences_and_matrices_are_flattened():
    rng = Generator().manual_seed(0)
    x, y = torch.rand(60, 4, 2, generator=rng), torch.rand(60, 2, 3, generator=rng)
    task = Task(lambda y, a: (y.mean(-2) - a).square().sum(-1), Box(0.0, 1.0, dim=3), y_dims=2)
    model = DecisionForest(task, trees=3, min_leaf=5, solver=QUICK).fit(x, y, val=(x, y))
    assert model.scenarios(x[:7]).weights.shape == (7, 60)
    assert model.model_.feature.max() < 8


@pytest.mark.parametrize("double", [False, True])
def test_a_loaded_forest_decides_bit_for_bit(tmp_path, double):
    task = first_coordinate().double() if double else first_coordinate()
    x, y = spread_and_mean(60)
    model = DecisionForest(task, trees=4).fit(x, y)
    model.save(tmp_path / "forest")
    back = load(tmp_path / "forest", task)
    assert torch.equal(back.decide(x), model.decide(x))
    assert torch.equal(back.scenarios(x).weights, model.scenarios(x).weights)
    assert math.isclose(back.features, 1 / 3)


def test_features_that_never_change_leave_all_rows_in_one_leaf():
    y = torch.rand(50, 2)
    x = torch.ones(50, 3)
    model = DecisionForest(first_coordinate(), trees=2).fit(x, y, val=(x, y))
    assert torch.allclose(model.scenarios(x[:2]).weights, torch.full((2, 50), 1 / 50))


def test_three_rows_are_enough():
    x, y = spread_and_mean(3)
    assert DecisionForest(first_coordinate(), trees=2).fit(x, y, val=(x, y)).model_.min_leaf == 1


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"trees": 0}, "needs trees to be a whole number of at least 1, but got 0"),
        (
            {"candidates": 0},
            "needs candidates to be a whole number of at least 1 or None",
        ),
        ({"features": 0.0}, "features to be a number above 0 and at most 1, but got 0.0"),
        ({"sample": 1.5}, "sample to be a number above 0 and at most 1, but got 1.5"),
    ],
)
def test_settings_out_of_range_are_refused(settings, said):
    with pytest.raises(ValueError, match=said):
        DecisionForest(first_coordinate(), **settings)


@pytest.mark.parametrize("min_leaf", [0, 21])
def test_a_leaf_of_no_rows_or_too_many_is_refused(min_leaf):
    x, y = spread_and_mean(20)
    with pytest.raises(ValueError, match=f"from 1 to the 20 training rows, but is {min_leaf}"):
        DecisionForest(first_coordinate(), min_leaf=min_leaf).fit(x, y, val=(x, y))
