"""The objective, against sums written out."""

import numpy as np
import pytest
import torch

from costscape import Absolute, Anchored, Costs, LocationScale, Slopes
from costscape.data import Dataset

J = 5
FORMS = [Absolute(), Anchored(epochs=1), LocationScale()]
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
        method = tiny(task, outcomes=form or Absolute(), actions=J, **settings).fit(x, y)
        return (
            method,
            task,
            method.model_.members[0],
            Dataset(x[:rows].double(), y[:rows].double()),
        )

    return make


def sampling(task, actions):
    """Every pair, or the whole batch, gets these actions."""
    task.feasible.sample = lambda n, rng: actions.repeat(n // len(actions), 1)


def value_and_gradients(method, task, model, batch):
    model.zero_grad()
    loss = method.loss(task, model, batch, torch.Generator())
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
    sampling(task, task.feasible.sample(J, torch.Generator().manual_seed(0)))
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
    actions = task.feasible.sample(J, torch.Generator().manual_seed(1))
    sampling(task, actions)
    f, g = terms_by_hand(model, batch, actions)
    if not by_coordinate:
        f, g = f.sum(-1), g.sum(-1)
    spread = np.maximum(f.std(0), 0.1 * f.std(0).mean()) if weighting else 1.0
    expected = (((g - f) / spread) ** 2).mean()
    loss = method.loss(task, model, batch, torch.Generator())
    assert loss.item() == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("form", FORMS, ids=NAMES)
@pytest.mark.parametrize("target", [Slopes(), Costs()], ids=str)
def test_the_gradient_of_the_loss_is_that_of_finite_differences(world, form, target):
    method, task, model, batch = world(form, target=target)
    sampling(task, task.feasible.sample(J, torch.Generator().manual_seed(1)))
    _, slopes = value_and_gradients(method, task, model, batch)
    for name, parameter in model.named_parameters():
        way = torch.randn_like(parameter)
        values = []
        for step in (1e-5, -1e-5):
            with torch.no_grad():
                parameter += step * way
                values.append(method.loss(task, model, batch, torch.Generator()).item())
                parameter -= step * way
        steep = (values[0] - values[1]) / 2e-5
        assert float((slopes[name] * way).sum()) == pytest.approx(steep, rel=1e-4, abs=1e-6), name


def test_the_spread_has_a_floor_of_a_tenth_of_its_mean(world):
    method, task, model, batch = world(target=Costs())
    batch.y[:, 1] = 1.0  # no spread in this coordinate
    actions = task.feasible.sample(J, torch.Generator().manual_seed(1))
    sampling(task, actions)
    f, g = terms_by_hand(model, batch, actions)
    spread = f.std(0)
    spread = np.maximum(spread, 0.1 * spread.mean())
    expected = (((g - f) / spread) ** 2).mean()
    loss = method.loss(task, model, batch, torch.Generator())
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


def test_own_actions_differ_between_pairs_and_shared_ones_do_not(world):
    method, task, model, batch = world()
    asked = []
    draw = task.feasible.sample
    task.feasible.sample = lambda n, rng: asked.append(n) or draw(n, rng)
    method.share_actions = True
    method.loss(task, model, batch, torch.Generator())
    method.share_actions = False
    method.loss(task, model, batch, torch.Generator())
    assert asked == [J, len(batch) * J]


def test_the_loss_depends_on_the_generator_alone(world):
    method, task, model, batch = world()
    rngs = [torch.Generator().manual_seed(s) for s in (0, 0, 1)]
    a, b, c = (method.loss(task, model.eval(), batch, rng).item() for rng in rngs)
    assert a == b != c
