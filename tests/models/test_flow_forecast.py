import pytest
import torch
from torch import nn

from costscape import Training
from costscape.data import Dataset
from costscape.models import MLP, Flat, Flow, Units, encoder_for, flow_forecast, mean_level
from costscape.training import Fit, fit_all


def pairs(n=40, d=2, seed=0):
    """y = 5 + W x + e with dependent normal e."""
    rng = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 3, generator=rng)
    w = torch.tensor([[1.0, 0.0, 0.5], [0.0, 1.0, -0.5]])
    root = 0.7 * torch.tensor([[1.0, 0.0], [0.8, 0.6]])
    y = 5 + x @ w.T + torch.randn(n, 2, generator=rng) @ root.T
    return x, y, 5 + x @ w.T, root @ root.T


def network(draws=6, steps=3, hidden=8, level=None):
    x, y, _, _ = pairs()
    net = Flow(steps, hidden).network(MLP(3, hidden=8), Units(x, y, level), x, y, draws).double()
    for p in net.parameters():
        nn.init.normal_(p, 0, 0.3)  # else the velocity is 0
    return net, x.double(), y.double()


class Growth(nn.Module):
    """v = (1 + t) z: z(1) = exp(3/2) z(0)."""

    def __init__(self, old):
        super().__init__()
        self.of_code = old.of_code

    def forward(self, z, t, context):
        return (1 + t) * z


def test_the_midpoint_rule_follows_the_velocity_with_an_error_of_second_order():
    net, x, _ = network()
    net.velocity = Growth(net.velocity)
    exact = net.units.undo(x[:1], torch.tensor(1.5).exp() * net.normals[None])
    errors = []
    for steps in (8, 16, 32):
        net.steps = steps
        errors.append((net(x[:1]).values - exact).abs().max().item())
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.15)
    assert errors[1] / errors[2] == pytest.approx(4, rel=0.15)


def test_the_loss_is_the_squared_error_of_the_velocity():
    """v = 0 misses z_1 - z_0 by z_1^2 + 1 on average."""
    net, x, y = network()
    nn.init.zeros_(net.velocity.out.weight)
    nn.init.zeros_(net.velocity.out.bias)
    rng = torch.Generator().manual_seed(0)
    found = torch.stack([net.loss(x, y, rng) for _ in range(400)]).mean(0)
    expected = net.units.standard(x, y).square().mean(1) + 1
    assert torch.allclose(found, expected, rtol=0.1)


def test_times_are_uniform_and_points_lie_between_noise_and_outcome(monkeypatch):
    net, x, y = network()
    seen = []

    def watch(z, t, context):
        seen.append((z, t))
        return torch.zeros_like(z)

    monkeypatch.setattr(net.velocity, "forward", watch)
    net.loss(x, y, torch.Generator().manual_seed(0))
    ((z, t),) = seen
    assert z.shape == (40, flow_forecast.PAIRS, 2)
    assert ((t * flow_forecast.PAIRS).floor().sort(1).values[0, :, 0] == torch.arange(8)).all()
    assert t.mean().item() == pytest.approx(0.5, abs=0.02)
    z1 = net.units.standard(x, y)[:, None]
    noise = (z - t * z1) / (1 - t)
    assert noise.mean().item() == pytest.approx(0, abs=0.15)
    assert noise.std().item() == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize("level", [None, mean_level])
def test_an_untrained_flow_draws_normals_with_the_labels_mean_and_deviation(level):
    x, y, _, _ = pairs()
    x = x.abs() + 1
    net = Flow(2, 8).network(MLP(3), Units(x, y, level), x, y, 5)
    assert torch.equal(net(x).values, net.units.undo(x, net.normals[None].expand(40, -1, -1)))


def test_trained_on_a_linear_gaussian_law_it_draws_from_that_law():
    x, y, _, covariance = pairs(1000)
    torch.manual_seed(0)
    net = Flow(hidden=64).network(encoder_for(Flat, (3,)), Units(x, y), x, y, 400)
    fit = Fit(net, lambda batch, rng: net.loss(batch.x, batch.y, rng).mean(), 0, ema=0.995)
    told = Training(epochs=60, batch_size=100, lr=5e-3, progress=False, device="cpu")
    fit_all([fit], Dataset(x, y), told)
    new, _, mean, _ = pairs(50, seed=1)
    with torch.no_grad():
        drawn = net(new).values
    assert (drawn.mean(1) - mean).square().mean().sqrt() < 0.2  # of a deviation of 0.7
    found = torch.stack([rows.T.cov() for rows in drawn]).mean(0)
    assert torch.allclose(found, covariance, rtol=0.2)
    assert torch.allclose(net.mean(new), drawn.mean(1))


def test_gradients_through_draws_are_those_of_finite_differences():
    net, x, _ = network()
    way = [torch.randn_like(p) for p in net.parameters()]

    def value(step):
        with torch.no_grad():
            for p, v in zip(net.parameters(), way, strict=True):
                p.add_(step * v)
        return net.samples(x, 5, torch.Generator().manual_seed(0)).square().mean()

    grads = torch.autograd.grad(value(0.0), list(net.parameters()))
    slope = sum((g * v).sum() for g, v in zip(grads, way, strict=True))
    up, down = value(1e-6), value(-2e-6)
    assert ((up - down) / 2e-6).item() == pytest.approx(slope.item(), rel=1e-5)


def test_rows_in_parts_have_the_same_draws_and_gradients(monkeypatch):
    net, x, _ = network()

    def both():
        y = net.samples(x, 5, torch.Generator().manual_seed(0))
        return y, *torch.autograd.grad(y.square().mean(), list(net.parameters()))

    whole = both()
    monkeypatch.setattr(flow_forecast, "HELD", 5 * 8 * 7)  # seven rows at once
    for a, b in zip(both(), whole, strict=True):
        assert torch.allclose(a, b, rtol=1e-10)
    with torch.no_grad():
        assert net(x).values.shape == (40, 6, 2)


def test_a_row_has_the_same_draws_in_any_batch_and_call():
    net, x, _ = network()
    assert torch.equal(net(x).values, net(x).values)
    assert torch.allclose(net(x).values[5:6], net(x[5:6]).values, rtol=1e-12)
    assert not net(x[5:6]).shared
    a, b = (net.samples(x, 4, torch.Generator().manual_seed(seed)) for seed in (0, 1))
    assert not torch.allclose(a, b)


def test_outcomes_may_have_any_shape_and_coordinates_that_never_change():
    x, y = torch.rand(20, 3), torch.randn(20, 2, 4)
    y[..., 2] = 4.0
    net = Flow(2, 8).network(MLP(3, hidden=8), Units(x, y), x, y, 6)
    assert net(x).values.shape == (20, 6, 2, 4)
    assert net.mean(x).shape == (20, 2, 4)
    assert net.samples(x, 3, torch.Generator()).shape == (20, 3, 2, 4)
    assert (net(x).values[..., 2] - 4).abs().max() < 1e-3
    far = y.clone()
    far[..., 2] = 1e3
    a, b = (net.loss(x, part, torch.Generator().manual_seed(0)) for part in (y, far))
    assert torch.equal(a, b)


def test_no_steps_and_no_hidden_units_are_refused():
    with pytest.raises(ValueError, match="steps to be a whole number of at least 1, but got 0"):
        Flow(steps=0)
    with pytest.raises(ValueError, match="hidden to be a whole number of at least 1, but got -1"):
        Flow(hidden=-1)
