import numpy as np
import pytest
import torch

from costscape.models import MLP, QuantileForecast, Quantiles, Units, mean_level
from costscape.task import Refusal


def pairs(n=60, d=2):
    rng = torch.Generator().manual_seed(0)
    x = torch.rand(n, 3, generator=rng, dtype=torch.float64)
    return x, 10 + 5 * torch.randn(n, d, generator=rng, dtype=torch.float64)


def network(levels=7, draws=40, x=None, y=None, level=None, moved=1.0):
    """A network whose quantiles differ from x to x."""
    if x is None:
        x, y = pairs()
    net = Quantiles(levels).network(MLP(x.shape[1], hidden=8), Units(x, y, level), x, y, draws)
    with torch.no_grad():
        net.quantiles.weight.normal_(0, moved)
    return net.double(), x, y


def grid(levels):
    return (np.arange(levels) + 0.5) / levels


def in_users_units(net, x):
    """The quantiles (B, Q, d) by the network's own words, undone."""
    return net.units.undo(x, net._standard(x).mT).detach().numpy()


def test_the_loss_is_the_crps_of_the_law_on_the_quantiles():
    net, x, y = network()
    q, z = net._standard(x), net.units.standard(x, y)
    apart = (q - z[..., None]).abs().mean(-1)
    among = (q[..., None] - q[..., None, :]).abs().mean((-1, -2))
    assert torch.allclose(net.loss(x, y), (apart - among / 2).mean(1), rtol=1e-10)


def test_without_features_the_best_quantiles_are_those_of_numpy():
    rng = np.random.default_rng(0)
    y = torch.tensor(np.stack([rng.gamma(2.0, size=1000), rng.normal(3, 2, 1000)], 1))
    x = torch.zeros(1000, 1, dtype=torch.float64)
    net, _, _ = network(levels=9, x=x, y=y, moved=0.0)
    with torch.no_grad():
        net.quantiles.bias.normal_()  # far from the start, which has the answer
    adam = torch.optim.Adam([net.quantiles.bias], lr=0.1)
    for step in range(300):
        adam.param_groups[0]["lr"] = 0.2 * (1 - step / 300)
        adam.zero_grad()
        net.loss(x, y).mean().backward()
        adam.step()
    expected = np.quantile(y.numpy(), grid(9), axis=0)
    assert np.allclose(in_users_units(net, x[:1])[0], expected, atol=0.04)


def test_the_quantiles_start_at_those_of_the_labels():
    net, x, y = network(levels=5, moved=0.0)
    found = in_users_units(net, x[:3])
    expected = np.quantile(y.numpy(), grid(5), axis=0, method="hazen")
    assert np.allclose(found, expected, atol=0.6)  # neighbouring labels
    assert np.isin(found.round(4), y.numpy().round(4)).all()


@pytest.mark.parametrize("level", [None, mean_level])
def test_outcomes_are_interpolated_as_by_numpy_and_flat_beyond_the_levels(level):
    net, x, _ = network(level=level)
    u = torch.rand(50, 2, dtype=torch.float64)
    u[:2] = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    found, q = net._at(x, u).detach().numpy(), in_users_units(net, x)
    for b in range(len(x)):
        for j in range(2):
            expected = np.interp(u[:, j].numpy(), grid(7), q[b, :, j])
            assert np.allclose(found[b, :, j], expected, rtol=1e-9)


def test_the_law_of_an_outcome_is_the_inverse_by_numpy():
    net, x, y = network()
    found, q = net.cdf(x, y).detach().numpy(), in_users_units(net, x)
    for b in range(len(x)):
        for j in range(2):
            assert found[b, j] == pytest.approx(np.interp(y[b, j], q[b, :, j], grid(7)))


def test_quantiles_never_cross():
    net, x, _ = network(levels=30, moved=100.0)
    assert (net._standard(1000 * x).diff(dim=-1) >= 0).all()


def test_the_mean_is_that_of_the_interpolated_law():
    net, x, _ = network()
    u = ((torch.arange(14_000, dtype=torch.float64) + 0.5) / 14_000)[:, None].expand(-1, 2)
    assert torch.allclose(net.mean(x), net._at(x, u).mean(1), rtol=1e-5)


def correlated(n, rho):
    rng = torch.Generator().manual_seed(1)
    x = torch.rand(n, 3, generator=rng, dtype=torch.float64)
    e = torch.randn(n, 2, generator=rng, dtype=torch.float64)
    e[:, 1] = rho * e[:, 0] + (1 - rho**2) ** 0.5 * e[:, 1]
    return x, e


@pytest.mark.parametrize("rho", [-0.7, 0.8])
def test_scenarios_have_the_correlation_of_the_training_rows(rho):
    x, y = correlated(3000, rho)
    net, _, _ = network(levels=49, draws=1000, x=x, y=y, moved=0.0)
    apart = np.corrcoef(net(x[:1]).values[0].detach().numpy().T)[0, 1]
    assert abs(apart) < 0.1  # until the ranks are known
    net.calibrate(x, y, torch.Generator().manual_seed(0))
    joined = net(x[:1]).values[0].detach().numpy()
    assert np.corrcoef(joined.T)[0, 1] == pytest.approx(rho, abs=0.04)
    assert joined.std(0) == pytest.approx([1.0, 1.0], abs=0.05)


@pytest.mark.parametrize("rows", [3, 60])
def test_every_coordinate_has_every_rank_once_also_where_outcomes_are_equal(rows):
    x, y = pairs(rows)
    y[: rows // 2] = 0.0
    net, _, _ = network(draws=40, x=x, y=y)
    for _ in range(2):
        ranks = net.ranks.sort(0).values
        assert torch.allclose(ranks, ((torch.arange(40.0).double() + 0.5) / 40)[:, None])
        net.calibrate(x, y, torch.Generator().manual_seed(0))


def test_equal_outcomes_are_not_tied_to_each_other_across_coordinates():
    x, y = pairs(1000)
    y = (y > 10).double()  # two values, independent in the two coordinates
    net, _, _ = network(draws=1000, x=x, y=y, moved=0.0)
    net.calibrate(x, y, torch.Generator().manual_seed(0))
    assert abs(np.corrcoef(net.ranks.numpy().T)[0, 1]) < 0.1


def test_fresh_outcomes_have_the_law_of_the_stored_ones():
    x, y = correlated(500, 0.8)
    net, _, _ = network(draws=200, x=x, y=y)
    net.calibrate(x, y, torch.Generator().manual_seed(0))
    stored, fresh = net(x[:1]).values[0], net.samples(x[:1], 20_000, torch.Generator())[0]
    assert torch.allclose(fresh.mean(0), stored.mean(0), atol=0.05)
    assert torch.allclose(fresh.T.cov(), stored.T.cov(), rtol=0.1)


def test_gradients_through_outcomes_are_those_of_finite_differences():
    net, x, _ = network(draws=20)
    way = [torch.randn_like(p) for p in net.parameters()]

    def value(step):
        with torch.no_grad():
            for p, v in zip(net.parameters(), way, strict=True):
                p.add_(step * v)
        return net.samples(x, 9, torch.Generator().manual_seed(0)).square().mean()

    grads = torch.autograd.grad(value(0.0), list(net.parameters()))
    slope = sum((g * v).sum() for g, v in zip(grads, way, strict=True))
    up, down = value(1e-6), value(-2e-6)
    assert ((up - down) / 2e-6).item() == pytest.approx(slope.item(), rel=1e-4)


def test_a_row_has_the_same_scenarios_in_any_batch():
    net, x, _ = network()
    assert torch.allclose(net(x).values[5:6], net(x[5:6]).values, rtol=1e-12)
    assert not net(x[5:6]).shared


def test_outcomes_may_have_any_shape_and_coordinates_that_never_change():
    x, y = torch.rand(20, 3), torch.randn(20, 2, 4)
    y[..., 2] = 4.0
    net = Quantiles(5).network(MLP(3, hidden=8), Units(x, y), x, y, 6)
    net.calibrate(x, y, torch.Generator())
    assert net(x).values.shape == (20, 6, 2, 4)
    assert net.mean(x).shape == (20, 2, 4)
    assert net.samples(x, 3, torch.Generator()).shape == (20, 3, 2, 4)
    assert (net(x).values[..., 2] - 4).abs().max() < 1e-3
    far = y.clone()
    far[..., 2] = 1e6
    assert torch.equal(net.loss(x, y), net.loss(x, far))


def test_too_few_levels_and_too_many_weights_are_refused():
    with pytest.raises(ValueError, match="levels to be a whole number of at least 2, but got 1"):
        Quantiles(1)
    labels = torch.zeros(2, 7, 47, 47)
    units = Units(torch.zeros(2, 3), labels)
    with pytest.raises(Refusal, match=r"1000 quantiles of outcomes of 15463 numbers.*fewer"):
        QuantileForecast(MLP(3), units, labels, 1000, draws=2)
