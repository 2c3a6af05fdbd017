"""The objective, against sums written out."""

import numpy as np
import pytest
import torch

from costscape import DF2, Absolute, Anchored, Box, Costs, LocationScale, Slopes, Task
from costscape.data import Dataset
from costscape.methods.df2.slopes import Objective, Target, objectives_of

J = 5
FORMS = [Absolute(), Anchored(), LocationScale()]
NAMES = ["absolute", "anchored", "location"]


def squares(y, a):
    """Terms whose slope is not constant, unlike the newsvendor's."""
    return (y - a) ** 2 + 2 * (y - a).clamp(min=0)


@pytest.fixture
def world(newsvendor, demand, tiny):
    """world(form, ...): a method, its task, its network and one batch, in double precision."""

    def make(form=None, dim=2, rows=12, **settings):
        task = newsvendor(dim).double()
        task.f_terms = task.f.terms = squares
        x, y = demand(60, dim)
        settings = {"outcome_share": 0.0, "actions": J, **settings}
        method = tiny(task, outcomes=form or Absolute(), **settings).fit(x, y)
        return method, task, method.model_, Dataset(x[:rows].double(), y[:rows].double())

    return make


class At(Target):
    """The target, at the same actions for every pair and at every step."""

    def __init__(self, target, actions):
        self.target, self.a = target, actions

    def actions(self, task, rows, J, rng):
        return self.a.expand(rows, -1, -1)

    def unit(self, task, y, a):
        return self.target.unit(task, y, a)

    def loss(self, g, y, a):
        return self.target.loss(g, y, a)


def sampling(method, task, seed=0):
    """Actions as the target takes them, now the same for every pair and every step."""
    a = method.target.actions(task, 1, J, torch.Generator().manual_seed(seed))
    method.target = At(method.target, a)
    return a[0]


def loss_of(method, task, model, batch, seed=0):
    one = torch.ones((), dtype=torch.float64)
    rng = torch.Generator().manual_seed(seed)
    return method.loss([Objective(task, one)], model, batch, rng)


def value_and_gradients(method, task, model, batch):
    model.zero_grad()
    loss = loss_of(method, task, model, batch)
    loss.backward()
    return loss, {k: p.grad for k, p in model.named_parameters()}


TARGETS = [
    Slopes(),
    Costs(),  # of at most 16 pairs shared and own actions both see all labels
    Costs(weighting=False),
    Costs(by_coordinate=False),
    Costs(weighting=False, by_coordinate=False),
]


@pytest.mark.parametrize("form", FORMS, ids=NAMES)
@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_shared_actions_and_own_actions_agree_in_value_and_gradients_where_they_coincide(
    world, form, target
):
    method, task, model, batch = world(form, target=target)
    sampling(method, task)
    method.share_actions = True
    shared, slopes = value_and_gradients(method, task, model, batch)
    method.share_actions = False
    own, own_slopes = value_and_gradients(method, task, model, batch)
    assert torch.allclose(shared, own, rtol=1e-12)
    assert all(slope is not None for slope in slopes.values())
    for name, slope in slopes.items():
        assert slope.abs().max() > 0
        assert torch.allclose(slope, own_slopes[name], rtol=1e-9, atol=1e-13), name


def terms_by_hand(model, batch, actions):
    """f_i(y_b, a_j) and g_i(x_b, a_j), both (B, J, d), with one loop for each index."""
    s = model(batch.x)
    w, v = s.weights.detach().numpy(), s.values.detach().numpy()
    y, a = batch.y.numpy(), actions.numpy()
    f, g = np.zeros((len(y), J, 2)), np.zeros((len(y), J, 2))
    for b in range(len(y)):
        for j in range(J):
            f[b, j] = (y[b] - a[j]) ** 2 + 2 * np.maximum(y[b] - a[j], 0)
            for k in range(w.shape[1]):
                short = v[b if len(v) > 1 else 0, k] - a[j]
                g[b, j] += w[b, k] * (short**2 + 2 * np.maximum(short, 0))
    return f, g


@pytest.mark.parametrize("form", FORMS, ids=NAMES)
@pytest.mark.parametrize("by_coordinate", [True, False])
@pytest.mark.parametrize("weighting", [True, False])
def test_the_loss_is_the_formula_written_out(world, form, by_coordinate, weighting):
    method, task, model, batch = world(form, target=Costs(weighting, by_coordinate))
    actions = sampling(method, task, 1)
    f, g = terms_by_hand(model, batch, actions)
    if not by_coordinate:
        f, g = f.sum(-1), g.sum(-1)
    spread = np.maximum(f.std(0), 0.1 * f.std(0).mean()) if weighting else 1.0
    expected = (((g - f) / spread) ** 2).mean()
    loss = loss_of(method, task, model, batch)
    assert loss.item() == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("form", FORMS, ids=NAMES)
@pytest.mark.parametrize("target", [Slopes(), Costs()], ids=str)
def test_the_gradient_of_the_loss_is_that_of_finite_differences(world, form, target):
    method, task, model, batch = world(form, target=target)
    sampling(method, task, 1)
    _, slopes = value_and_gradients(method, task, model, batch)
    for name, parameter in model.named_parameters():
        way = torch.randn_like(parameter)
        values = []
        for step in (1e-5, -1e-5):
            with torch.no_grad():
                parameter += step * way
                values.append(loss_of(method, task, model, batch).item())
                parameter -= step * way
        steep = (values[0] - values[1]) / 2e-5
        assert float((slopes[name] * way).sum()) == pytest.approx(steep, rel=1e-4, abs=1e-6), name


def test_the_spread_has_a_floor_of_a_tenth_of_its_mean(world):
    method, task, model, batch = world(target=Costs())
    batch.y[:, 1] = 1.0  # no spread in this coordinate
    actions = sampling(method, task, 1)
    f, g = terms_by_hand(model, batch, actions)
    spread = f.std(0)
    spread = np.maximum(spread, 0.1 * spread.mean())
    expected = (((g - f) / spread) ** 2).mean()
    loss = loss_of(method, task, model, batch)
    assert loss.item() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("share", [True, False])
@pytest.mark.parametrize("target", [Slopes(), Costs(), Costs(by_coordinate=False)], ids=str)
def test_a_batch_of_one_pair_has_no_spread_and_a_finite_loss(world, share, target):
    method, task, model, batch = world(target=target, share_actions=share)
    loss, slopes = value_and_gradients(method, task, model, batch[:1])
    assert loss.item() < 10
    assert all(slope.isfinite().all() for slope in slopes.values())


@pytest.mark.parametrize("rows", [65, 129])
def test_a_last_batch_of_one_pair_does_not_break_the_fit(newsvendor, demand, tiny, rows):
    x, y = demand(rows)
    model = tiny(newsvendor(), {"batch_size": 64}, outcomes=Absolute()).fit(x, y, val=(x, y))
    assert max(model.history_[0].losses) < 3


def test_labels_that_never_change_do_not_break_the_fit(newsvendor, demand, tiny):
    x, _ = demand(40)
    model = tiny(newsvendor(), outcomes=Absolute()).fit(x, torch.full((40, 1), 1.5))
    assert model.decide(x).flatten().tolist() == pytest.approx([1.5] * 40, abs=0.01)


def test_own_actions_differ_between_pairs_and_shared_ones_do_not(world, monkeypatch):
    method, task, model, batch = world()
    seen, real = [], Slopes.loss
    monkeypatch.setattr(Slopes, "loss", lambda t, g, y, a: seen.append(a) or real(t, g, y, a))
    for method.share_actions in (True, False):
        loss_of(method, task, model, batch)
    shared, own = seen
    assert shared.shape == (1, J + 2, 2)
    assert own.shape == (len(batch), J + 2, 2)
    assert not torch.equal(own[0], own[1])


def test_the_loss_depends_on_the_generator_alone(world):
    method, task, model, batch = world()
    a, b, c = (loss_of(method, task, model.eval(), batch, seed).item() for seed in (0, 0, 1))
    assert a == b != c


# ---- the outcomes beside the cost


def objectives(method, task, y):
    pairs = Dataset(torch.zeros(len(y), 1), y)
    return objectives_of(method.target, task, pairs, method.outcome_share, method.seed)


def test_the_outcomes_enter_with_their_share_each_in_its_own_unit(world):
    method, task, model, batch = world(outcome_share=0.3)
    y = torch.rand(200, 2, dtype=torch.float64) * torch.tensor([1.0, 3.0])
    cost, errors = objectives(method, task, y)
    assert cost.task is task
    lower, upper = errors.task.feasible.bounds
    assert torch.equal(lower, y.amin(0))
    assert torch.equal(upper, y.amax(0))
    # one number each, the loss of g = 0 over the labels
    for objective, share in ((cost, 1.0), (errors, 0.3)):
        a = Slopes().actions(objective.task, 1, 50, torch.Generator().manual_seed(method.seed))
        size = Slopes().unit(objective.task, y, a)
        assert float(objective.weight) == pytest.approx(share / float(size), rel=0.2)
    rng = torch.Generator().manual_seed(0)
    total = method.loss([cost, errors], model, batch, rng)
    rng = torch.Generator().manual_seed(0)
    parts = [method.loss([objective], model, batch, rng) for objective in (cost, errors)]
    assert total.item() == pytest.approx(sum(parts).item(), rel=1e-12)


def test_without_a_share_or_for_a_matrix_only_the_cost_counts(world):
    y = torch.rand(20, 2, dtype=torch.float64)
    method, task, _, _ = world()
    assert len(objectives(method, task, y)) == 1
    method.outcome_share = 0.3
    assert len(objectives(method, task, y)) == 2
    matrix = Task(lambda y, a: (y.sum(-1) - a).square().sum(-1), task.feasible, y_dims=2)
    assert len(objectives(method, matrix, torch.rand(20, 2, 3, dtype=torch.float64))) == 1


def test_a_negative_share_is_refused(newsvendor):
    with pytest.raises(ValueError, match="outcome_share to be a number of at least 0, but got -1"):
        DF2(newsvendor(), outcome_share=-1.0)


def test_outcomes_that_the_cost_does_not_see_are_learned_from_their_share(tiny, demand):
    # a cost of the first outcome only: the second is learned by its share
    task = Task(lambda y, a: (y[..., :1] - a).square().sum(-1), Box(0.0, 4.0, dim=1))
    x, _ = demand(200)
    y = torch.stack([1 + x[:, 0], 1 + 2 * x[:, 1]], 1)
    found = []
    for share in (0.0, 0.3):
        told = {"epochs": 30, "lr": 0.02, "patience": 30}
        model = tiny(task, told, outcomes=Absolute(), outcome_share=share, points=40).fit(x, y)
        s = model.scenarios(x)
        mean = (s.weights[..., None] * s.values).sum(1)
        found.append((mean - y).square().mean(0))
    assert found[1][1] < 0.3 * found[0][1]
    assert found[1][0] < 0.05
