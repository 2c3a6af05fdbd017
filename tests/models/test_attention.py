from math import sqrt

import torch

from costscape.models import (
    MLP,
    AnchoredValues,
    Attention,
    Units,
    Values,
    mean_level,
)

S, WIDTH = 6, 4


def network(x, y, anchored=False, level=False):
    units = Units(x, y, mean_level if level else None)
    labels = units.standard(x[:S], y[:S])
    values = AnchoredValues(labels, WIDTH, True) if anchored else Values(labels, True)
    encoder = MLP(x.shape[1], hidden=WIDTH)
    return Attention(encoder, values, S, units).eval()


def pairs(n=20):
    return 2 + torch.rand(n, 3), 100 + 5 * torch.randn(n, 2)


def test_the_weights_are_the_softmax_of_scaled_products_by_hand():
    x, y = pairs()
    net = network(x, y)
    scaled = (x - x.mean(0)) / x.std(0, correction=0)
    q = net.encoder(scaled)
    logits = torch.stack([(q * key).sum(-1) / sqrt(WIDTH) for key in net.keys], 1)
    expected = logits.exp() / logits.exp().sum(1, keepdim=True)
    weights = net(x).weights
    assert weights.shape == (20, S)
    assert torch.allclose(weights, expected, atol=1e-6)


def test_absolute_outcomes_start_at_the_labels_in_their_own_units():
    x, y = pairs()
    scenarios = network(x, y)(x)
    assert scenarios.shared
    assert torch.allclose(scenarios.values, y[None, :S], atol=1e-4)


def test_anchored_outcomes_are_unstandardised_m_plus_r_v():
    x, y = pairs()
    net = network(x, y, anchored=True)
    with torch.no_grad():
        net.values.log_scale.bias.fill_(0.3)
    v = net.values.values.v
    z = net.location(x)[:, None] + torch.tensor(0.3).exp() * v
    mean, sd = y.mean(0), y.std(0, correction=0)
    assert torch.allclose(net(x).values, mean + sd * z, atol=1e-3)


def test_standard_is_y_over_its_level_less_mean_over_sd():
    x, y = pairs()
    net = network(x, y, level=True)
    ratio = y / x.abs().mean(1, keepdim=True)
    expected = (ratio - ratio.mean(0)) / ratio.std(0, correction=0)
    assert torch.allclose(net.units.standard(x, y), expected, atol=1e-4)


def test_with_levels_outcomes_are_multiples_of_the_windows_own_level():
    x, y = pairs()
    values = network(x, y, level=True)(x).values
    level = x.abs().mean(1)
    ratios = y[:S] / level[:S, None]
    assert torch.allclose(values, level[:, None, None] * ratios, rtol=1e-4)
