"""The DF2 network, part by part and form by form, against formulas written out."""

from math import exp, sqrt

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge
from torch import nn

from costscape.methods.ensemble import Blended
from costscape.models import (
    MLP,
    Absolute,
    Anchored,
    LocationScale,
    OutcomeNetwork,
    Units,
    mean_level,
)
from costscape.models.outcome_network import PENALTIES, line_from
from costscape.scenarios import Scenarios

S, WIDTH = 6, 4
FORMS = [Absolute(), Anchored(), LocationScale()]


def name(form):
    return type(form).__name__


def pairs(n=40, features=3, seed=0):
    rng = torch.Generator().manual_seed(seed)
    x = 2 + torch.rand(n, features, generator=rng, dtype=torch.float64)
    y = 100 + 5 * x[:, :2] + torch.randn(n, 2, generator=rng, dtype=torch.float64)
    return x, y


START = torch.tensor([3, 0, 17, 39, 8, 21])


def network(form, x, y, level=None, learn_values=True):
    units = Units(x, y, level)
    encoder = MLP(x[0].numel(), hidden=WIDTH)
    return OutcomeNetwork(form, encoder, units, x, y, START, learn_values).to(x).eval()


def shaken(net, size=0.5):
    """The same network with other numbers in all its parameters."""
    rng = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for p in net.parameters():
            p.add_(size * torch.randn(p.shape, generator=rng, dtype=p.dtype))
    return net


# ---- parts


@pytest.mark.parametrize(
    ("form", "parts", "keys"),
    [
        (Absolute(), (False, False, False), (S, WIDTH)),
        (Anchored(), (True, True, True), (S, WIDTH)),
        (LocationScale(), (True, False, True), (S,)),
    ],
    ids=["absolute", "anchored", "location-scale"],
)
def test_a_form_has_its_parts(form, parts, keys):
    net = network(form, *pairs())
    assert tuple(part is not None for part in (net.line, net.shift, net.log_scale)) == parts
    assert tuple(net.keys.shape) == keys
    assert net.points == S


@pytest.mark.parametrize(("features", "outcomes"), [(1001, 2), (1000, 21), (2, 10_001)])
def test_a_large_linear_map_goes_through_64_fixed_numbers(features, outcomes):
    x, y = torch.rand(40, features), torch.rand(40, outcomes)
    for form in (Anchored(), LocationScale()):
        net = network(form, x, y)
        learned = {name for name, p in net.named_parameters() if p.requires_grad}
        assert {"line.1.weight", "line.1.bias"} <= learned
        assert not {"line.0.weight", "line.0.bias"} & learned
        assert net.line[0].weight.shape == (64, features)
        at_start = net.units.standard(x[START], y[START]) - net.line(net.units.inputs(x[START]))
        assert torch.equal(net.v, at_start)
        assert net(x).values.shape == (40, S, outcomes)


def test_a_linear_map_of_a_thousand_inputs_and_twenty_thousand_numbers_is_learned_whole():
    net = network(Anchored(), torch.rand(40, 1000), torch.rand(40, 20))
    assert net.line.weight.shape == (20, 1000)


# ---- formulas


def weights_by_hand(net, x):
    q = net.encoder(net.units.inputs(x))
    logits = torch.stack([(q * key).sum(-1) / sqrt(WIDTH) for key in net.keys], 1)
    return logits.exp() / logits.exp().sum(1, keepdim=True)


@pytest.mark.parametrize("form", [Absolute(), Anchored()], ids=name)
def test_the_weights_are_the_softmax_of_scaled_products(form):
    x, y = pairs()
    net = shaken(network(form, x, y))
    s = net(x)
    assert torch.allclose(s.weights, weights_by_hand(net, x), atol=1e-12)
    assert float(s.weights.detach().std(0).min()) > 1e-4  # they depend on x


def test_weights_of_a_location_and_scale_do_not_depend_on_x():
    x, y = pairs()
    net = shaken(network(LocationScale(), x, y))
    s = net(x)
    expected = net.keys.exp() / net.keys.exp().sum()
    assert torch.allclose(s.weights, expected.expand(len(x), -1), atol=1e-12)
    assert not torch.equal(s.values[0], s.values[1])


@pytest.mark.parametrize("form", FORMS, ids=name)
@pytest.mark.parametrize("level", [None, mean_level], ids=["plain", "levels"])
def test_outcomes_are_m_plus_r_v_in_the_users_units(form, level):
    x, y = pairs()
    net = shaken(network(form, x, y, level))
    l = x.abs().mean(1) if level else torch.ones(len(x), dtype=x.dtype)
    seen_x, seen_y = x / l[:, None], y / l[:, None]
    z = (seen_x - seen_x.mean(0)) / seen_x.std(0, correction=0)
    q = net.encoder(z)
    m, r = torch.zeros(len(x), 2, dtype=x.dtype), torch.ones(len(x), 2, dtype=x.dtype)
    if not isinstance(form, Absolute):
        m = z @ net.line.weight.T + net.line.bias
        r = (3 * torch.tanh(net.log_scale(q) / 3)).exp()
    if isinstance(form, Anchored):
        m = m + net.shift(q)
    v = m[:, None] + r[:, None] * net.v
    expected = l[:, None, None] * (seen_y.mean(0) + seen_y.std(0, correction=0) * v)
    values = net(x).values
    shared = isinstance(form, Absolute) and level is None
    assert values.shape == (1 if shared else len(x), S, 2)
    assert torch.allclose(values, expected[: len(values)], atol=1e-8)


# ---- shapes


@pytest.mark.parametrize("form", FORMS, ids=name)
@pytest.mark.parametrize("level", [None, mean_level], ids=["plain", "levels"])
@pytest.mark.parametrize("y_shape", [(1,), (4,), (2, 3)], ids=str)
@pytest.mark.parametrize("rows", [1, 5])
def test_scenarios_have_the_shape_of_y_and_say_whether_x_shares_them(form, level, y_shape, rows):
    x, y = 1 + torch.rand(40, 3), torch.rand(40, *y_shape)
    s = network(form, x, y, level)(x[:rows])
    shared = isinstance(form, Absolute) and level is None
    assert s.shared == shared
    assert s.weights.shape == (rows, S)
    assert s.values.shape == (1 if shared else rows, S, *y_shape)
    assert torch.allclose(s.weights.sum(1), torch.ones(rows))


def test_with_levels_a_window_twice_as_high_has_outcomes_twice_as_high():
    x, y = pairs()
    for form in FORMS:
        net = shaken(network(form, x, y, mean_level))
        once, twice = net(x), net(2 * x)
        assert torch.allclose(twice.values, 2 * once.values, rtol=1e-10)
        assert torch.allclose(twice.weights, once.weights, atol=1e-12)


# ---- the start


@pytest.mark.parametrize("form", FORMS, ids=name)
@pytest.mark.parametrize("level", [None, mean_level], ids=["plain", "levels"])
def test_at_the_start_an_outcome_is_the_label_at_the_row_it_was_taken_from(form, level):
    x, y = pairs()
    s = network(form, x, y, level)(x)
    for k, row in enumerate(START.tolist()):
        at = s.values[0 if s.shared else row, k]
        assert torch.allclose(at, y[row], atol=1e-9)


@pytest.mark.parametrize("form", [Anchored(), LocationScale()], ids=name)
def test_the_start_is_the_labels_less_the_ridge_line(form):
    x, y = pairs()
    net = network(form, x, y)
    z, t = (net.units.inputs(x), net.units.standard(x, y))
    line = line_from(z, t)
    assert torch.allclose(net.v, t[START] - line(z[START]), atol=1e-12)
    assert torch.equal(net.line.weight, line.weight)
    head = net.log_scale
    assert not head.weight.any()
    assert not head.bias.any()


@pytest.mark.parametrize("form", FORMS, ids=name)
def test_values_that_are_not_learned_are_saved_and_are_no_parameters(form):
    net = network(form, *pairs(), learn_values=False)
    assert "v" not in dict(net.named_parameters())
    assert "v" in net.state_dict()
    assert isinstance(network(form, *pairs()).v, nn.Parameter)


# ---- the scale


@pytest.mark.parametrize("form", [Anchored(), LocationScale()], ids=name)
@pytest.mark.parametrize("size", [1e9, -1e9])
def test_the_scale_is_between_a_twentieth_and_twenty_whatever_the_head_gives(form, size):
    x, y = pairs()
    net = network(form, x, y)
    before = net(x).values
    with torch.no_grad():
        net.log_scale.bias.fill_(size)
    m = net.units.undo(x, net.line(net.units.inputs(x)).unsqueeze(1))
    r = (net(x).values - m) / (before - m)
    limit = exp(3) if size > 0 else exp(-3)
    assert torch.allclose(r, torch.full_like(r, limit), rtol=1e-6)
    assert 1 / 20.1 < limit < 20.1


def test_near_zero_the_scale_is_the_exponential():
    x, y = pairs()
    net = network(Anchored(), x, y)
    before = net(x).values
    with torch.no_grad():
        net.log_scale.bias.fill_(0.01)
    m = net.units.undo(x, net.line(net.units.inputs(x)).unsqueeze(1))
    assert torch.allclose((net(x).values - m) / (before - m), torch.tensor(0.01).exp().double(),
                          rtol=1e-6)  # fmt: skip


# ---- ridge regression


def problem(n, k, noise, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, k)) @ rng.normal(size=(k, k)) + 3
    t = z @ rng.normal(size=(k, 2)) * 0.3 + noise * rng.normal(size=(n, 2)) - 5
    return z, t


def gcv(z, t, alpha):
    """n RSS / (n - 1 - df)^2 from the hat matrix itself; the mean takes the 1."""
    n = len(z)
    zc, tc = z - z.mean(0), t - t.mean(0)
    hat = zc @ np.linalg.solve(zc.T @ zc + alpha * np.eye(z.shape[1]), zc.T)
    return n * ((tc - hat @ tc) ** 2).sum() / (n - 1 - np.trace(hat)) ** 2


@pytest.mark.parametrize(
    ("n", "k", "noise"), [(60, 3, 0.01), (60, 3, 3.0), (30, 20, 1.0), (25, 40, 1.0), (60, 8, 30.0)]
)
def test_the_linear_map_is_ridge_regression_of_least_generalised_cross_validation(n, k, noise):
    z, t = problem(n, k, noise)
    scores = [gcv(z, t, p * n) for p in PENALTIES]
    alpha = PENALTIES[int(np.argmin(scores))] * n
    peer = Ridge(alpha=alpha).fit(z, t)
    line = line_from(torch.tensor(z), torch.tensor(t))
    assert np.allclose(line.weight.detach().numpy(), peer.coef_, atol=1e-7)
    assert np.allclose(line.bias.detach().numpy(), peer.intercept_, atol=1e-6)


def wide(n, k, m, seed=0):
    """Few rows of many features; outcomes depend on them in five directions."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, k))
    return z, z[:, :5] @ rng.normal(size=(5, m)) + 0.5 * rng.normal(size=(n, m)) + 2


def hat_score(z, t, alpha):
    """``gcv`` from the n x n products, for many features."""
    n, zc, tc = len(z), z - z.mean(0), t - t.mean(0)
    gram = zc @ zc.T
    hat = gram @ np.linalg.inv(gram + alpha * np.eye(n))
    return n * ((tc - hat @ tc) ** 2).sum() / (n - 1 - np.trace(hat)) ** 2


@pytest.mark.parametrize(("n", "k", "m"), [(50, 1001, 3), (150, 1001, 80), (1100, 1002, 70)])
def test_a_large_map_is_the_ridge_regression_cut_to_64_directions(n, k, m):
    z, t = wide(n, k, m)
    alpha = min(PENALTIES, key=lambda p: hat_score(z, t, p * n)) * n
    peer = Ridge(alpha=alpha, solver="cholesky").fit(z, t)
    fitted = peer.predict(z) - t.mean(0)
    _, sizes, directions = np.linalg.svd(fitted, full_matrices=False)
    kept = directions[:64]
    assert m <= 64 or (sizes[64:] > 1e-3 * sizes[0]).any()  # the cut cuts
    new = wide(20, k, m, seed=1)[0]
    expected = t.mean(0) + (peer.predict(new) - t.mean(0)) @ kept.T @ kept
    line = line_from(torch.tensor(z), torch.tensor(t))
    with torch.no_grad():
        assert np.allclose(line(torch.tensor(new)).numpy(), expected, atol=1e-8)
        code = line[0](torch.tensor(z))
    used = code.std(0, correction=0) > 1e-9
    assert torch.allclose(code[:, used].std(0, correction=0), torch.ones(int(used.sum())).double())


def test_of_very_wide_x_at_most_two_thousand_rows_are_used():
    z, t = (torch.tensor(part) for part in wide(3999, 1001, 2))
    line, some = line_from(z, t), line_from(z[::2], t[::2])
    assert len(z[::2]) == 2000
    assert torch.allclose(line(z[:9]), some(z[:9]))


def test_much_noise_takes_a_larger_penalty():
    chosen = []
    for noise in (0.01, 30.0):
        z, t = problem(60, 8, noise)
        chosen.append(PENALTIES[int(np.argmin([gcv(z, t, p * 60) for p in PENALTIES]))])
    assert chosen[0] < chosen[1]


def test_a_feature_that_never_changes_has_no_slope():
    z, t = (torch.tensor(part) for part in problem(50, 3, 0.1))
    z[:, 1] = 7.0
    line = line_from(z, t)
    assert float(line.weight[:, 1].detach().abs().max()) < 1e-9
    others = line_from(z[:, [0, 2]], t)
    assert torch.allclose(line.weight[:, [0, 2]], others.weight)


# ---- several networks as one


X = torch.zeros(5, 2)


class Fixed(nn.Module):
    def __init__(self, weights, values):
        super().__init__()
        self.s = Scenarios(weights, values)

    def forward(self, x):
        return self.s


def some(rows, size, seed):
    rng = torch.Generator().manual_seed(seed)
    w = torch.rand(rows, size, generator=rng)
    return Fixed(w / w.sum(1, keepdim=True), torch.randn(rows, size, 2, generator=rng))


def test_blended_members_have_their_shares():
    a, b = some(5, 3, 0), some(5, 4, 1)
    s = Blended([a, b], [0.25, 0.75])(X)
    assert torch.allclose(s.weights, torch.cat([0.25 * a.s.weights, 0.75 * b.s.weights], 1))
    assert torch.equal(s.values, torch.cat([a.s.values, b.s.values], 1))
    even = Blended([a, b])(X)
    assert torch.allclose(even.weights, torch.cat([a.s.weights, b.s.weights], 1) / 2)


def test_blended_members_have_at_most_so_many_scenarios():
    a, b = some(5, 30, 0), some(5, 40, 1)
    assert Blended([a, b], most=70)(X).weights.shape == (5, 70)
    thin = Blended([a, b], [0.1, 0.9], most=20)(X)
    assert thin.weights.shape == (5, 20)
    from_first = (thin.values[:, :, None] == a.s.values[:, None]).all(-1).any(-1).sum(1)
    assert from_first.tolist() == [2] * 5  # a tenth of twenty
