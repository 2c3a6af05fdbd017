from math import log

import pytest
import torch
from torch.distributions import Categorical, Independent, MixtureSameFamily, Normal

from costscape.models import MLP, Mixture, MixtureForecast, PointForecast, Units, mean_level
from costscape.task import Refusal


def pairs(n=40, d=2):
    rng = torch.Generator().manual_seed(0)
    x = torch.rand(n, 3, generator=rng)
    return x, 10 + 5 * torch.randn(n, d, generator=rng)


def mixture(k, draws=50, d=2, level=None, dtype=torch.float64):
    x, y = pairs(d=d)
    units = Units(x, y, level)
    rows = torch.randint(len(y), (k,))
    labels = units.standard(x[rows], y[rows])
    net = MixtureForecast(MLP(3, hidden=8), units, labels, draws).to(dtype)
    with torch.no_grad():
        net.head.log_scale.bias.uniform_(-1, 1)
    return net, x.to(dtype), y.to(dtype)


def law(net, x, scaled=True):
    """The same mixture by torch.distributions, in the network's or the user's units."""
    logits, m, s = net._parts(x)
    if not scaled:
        m, s = net.units.undo(x, m), net.units.spread(x, s)
    return MixtureSameFamily(Categorical(logits=logits), Independent(Normal(m, s), 1))


@pytest.mark.parametrize("k", [1, 3, 1000])
def test_the_likelihood_is_that_of_torch_distributions(k):
    net, x, y = mixture(k)
    expected = -law(net, x).log_prob(net.units.standard(x, y))
    assert torch.allclose(net.loss(x, y), expected, rtol=1e-10)


def test_numbers_that_never_change_have_no_part_in_the_likelihood():
    x, y = pairs(d=3)
    y[:, 1] = 4.0
    units = Units(x, y)
    net = MixtureForecast(MLP(3, hidden=8), units, units.standard(x[:2], y[:2]), 20).double()
    logits, m, s = net._parts(x.double())
    kept = [0, 2]
    law = Independent(Normal(m[..., kept], s[..., kept]), 1)
    mixed = MixtureSameFamily(Categorical(logits=logits), law)
    z = units.standard(x.double(), y.double())
    assert torch.allclose(net.loss(x.double(), y.double()), -mixed.log_prob(z[:, kept]))
    assert (net(x.double()).values[..., 1] - 4).abs().max() < 1e-3


def test_the_likelihood_of_a_thousand_components_is_finite_far_away_in_single_precision():
    net, x, y = mixture(1000, dtype=torch.float32)
    far = y + 1e4
    loss = net.loss(x, far).mean()
    loss.backward()
    assert loss.isfinite()
    assert all(p.grad.isfinite().all() for p in net.parameters())


def test_no_component_is_narrower_than_a_hundredth_of_the_labels():
    net, x, _ = mixture(2)
    with torch.no_grad():
        net.head.log_scale.bias.fill_(-1e6)
    assert (net._parts(x)[2] >= 0.01).all()


@pytest.mark.parametrize("level", [None, mean_level])
def test_draws_have_the_mean_and_the_deviation_of_the_law(level):
    net, x, _ = mixture(3, draws=200_000, level=level)
    with torch.no_grad():
        scenarios = net(x[:2])
        expected = law(net, x[:2], scaled=False)
        assert torch.allclose(scenarios.values.mean(1), expected.mean, atol=0.1)
        assert torch.allclose(scenarios.values.std(1), expected.variance.sqrt(), rtol=0.02)
        assert torch.allclose(net.mean(x[:2]), expected.mean, rtol=1e-9)


def test_differentiable_draws_have_the_same_law():
    net, x, _ = mixture(3)
    rng = torch.Generator().manual_seed(1)
    with torch.no_grad():
        y = net.samples(x[:1], 200_000, rng)[0]
        expected = law(net, x[:1], scaled=False)
    assert torch.allclose(y.mean(0), expected.mean[0], atol=0.1)
    assert torch.allclose(y.std(0), expected.variance[0].sqrt(), rtol=0.02)


def test_the_gradient_through_draws_of_one_component_is_that_of_the_moments():
    """E y^2 = m^2 + s^2 for each coordinate."""
    net, x, _ = mixture(1)
    rng = torch.Generator().manual_seed(0)
    drawn = net.samples(x[:4], 100_000, rng).square().mean(1).sum()
    _, m, s = net._parts(x[:4])
    exact = (net.units.undo(x[:4], m).square() + net.units.spread(x[:4], s).square()).sum()
    weights = (net.head.location.weight, net.head.log_scale.weight)
    for a, b in zip(
        torch.autograd.grad(drawn, weights), torch.autograd.grad(exact, weights), strict=True
    ):
        assert torch.allclose(a, b, rtol=0.05, atol=0.02 * float(b.abs().max()))


def test_the_choice_of_a_component_passes_a_gradient_towards_the_better_one():
    net, x, _ = mixture(2)
    with torch.no_grad():
        net.head.location.weight.zero_()
        net.head.location.bias.copy_(torch.tensor([-1.0, -1.0, 1.0, 1.0]))
    y = net.samples(x, 200, torch.Generator().manual_seed(0)).mean()
    (grad,) = torch.autograd.grad(y, net.head.logits.bias)
    assert grad[1] > 0 > grad[0]


def test_draws_are_the_same_for_all_rows_and_all_calls():
    net, x, _ = mixture(3)
    together, alone = net(x).values, net(x[5:6]).values
    assert torch.allclose(together[5:6], alone, rtol=1e-12)


def test_laws_are_means_beside_deviations_in_the_users_units():
    net, x, _ = mixture(3, level=mean_level)
    laws = net.laws(x)
    parts = law(net, x, scaled=False).component_distribution.base_dist
    assert torch.allclose(laws.values, torch.cat([parts.loc, parts.scale], -1))
    assert torch.allclose(laws.weights.sum(1), torch.ones(len(x), dtype=torch.float64))


def test_a_point_is_one_scenario_and_its_loss_the_squared_error():
    x, y = pairs()
    net = PointForecast(MLP(3, hidden=8), Units(x, y), (2,))
    s = net(x)
    assert s.values.shape == (40, 1, 2)
    assert torch.equal(s.weights, torch.ones(40, 1))
    expected = ((net.mean(x) - y) / y.std(0, correction=0)).square().mean(1)
    assert torch.allclose(net.loss(x, y), expected, rtol=1e-4)
    assert torch.equal(net.samples(x, 7, torch.Generator()), s.values)


def test_one_standard_normal_has_the_textbook_likelihood():
    net, x, y = mixture(1)
    with torch.no_grad():
        for part in (net.head.location, net.head.log_scale):
            part.weight.zero_()
            part.bias.zero_()
        net.head.log_scale.bias.fill_(log(0.99))
    z = net.units.standard(x, y)
    expected = 0.5 * z.square().sum(1) + log(2 * torch.pi)
    assert torch.allclose(net.loss(x, y), expected)


def test_outcomes_may_have_any_shape():
    x = torch.rand(20, 3)
    y = torch.randn(20, 2, 4)
    units = Units(x, y)
    net = MixtureForecast(MLP(3, hidden=8), units, units.standard(x[:3], y[:3]), 5)
    assert net(x).values.shape == (20, 5, 2, 4)
    assert net.samples(x, 6, torch.Generator()).shape == (20, 6, 2, 4)
    assert net.loss(x, y).shape == (20,)
    assert net.mean(x).shape == (20, 2, 4)


def test_a_mixture_of_no_components_is_refused():
    with pytest.raises(ValueError, match="components to be a whole number of at least 1"):
        Mixture(0)


def test_a_mixture_with_a_billion_weights_is_refused_before_they_are_made():
    labels = torch.zeros(1000, 7, 47, 47)
    units = Units(torch.zeros(2, 3), torch.zeros(2, 7, 47, 47))
    with pytest.raises(Refusal, match=r"1000 components for outcomes of 15463 numbers.*fewer"):
        MixtureForecast(MLP(3), units, labels, draws=2)
