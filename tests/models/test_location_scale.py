import pytest
import torch
from sklearn.linear_model import Ridge

from costscape.models import MLP, LocationScaleNetwork, Units


@pytest.fixture
def made():
    rng = torch.Generator().manual_seed(0)
    x = torch.randn(80, 3, generator=rng)
    y = 5 + x @ torch.tensor([[1.0, 0.0], [2.0, -1.0], [0.0, 3.0]])
    y = y + torch.randn(80, 2, generator=rng)
    units = Units(x, y)
    start = torch.arange(0, 80, 8)
    return x, y, start, LocationScaleNetwork(MLP(3), units, x, y, start, True, lines=True)


def test_the_location_starts_at_ridge_regression(made):
    x, y, _, net = made
    z, t = net.units.inputs(x).numpy(), net.units.standard(x, y).numpy()
    peer = Ridge(alpha=1e-3 * len(x)).fit(z, t)
    assert torch.allclose(net.location.weight, torch.tensor(peer.coef_).float(), atol=1e-5)
    assert torch.allclose(net.location.bias, torch.tensor(peer.intercept_).float(), atol=1e-5)


def test_at_the_start_outcomes_are_the_location_and_residuals_of_training_rows(made):
    x, y, start, net = made
    s = net(x)
    assert torch.allclose(s.weights, torch.full((80, 10), 0.1))
    # in a training row whose residual is among the outcomes, one outcome is its label
    for k, row in enumerate(start.tolist()):
        assert torch.allclose(s.values[row, k], y[row], atol=1e-4)


def test_the_scale_widens_what_lies_around_the_location(made):
    x, _, _, net = made
    narrow = net(x).values
    with torch.no_grad():
        net.log_scale.bias.fill_(2.0).log_()
    wide = net(x).values
    m = net.units.undo(x, net.location(net.units.inputs(x)).unsqueeze(1))
    assert torch.allclose(wide - m, 2 * (narrow - m), atol=1e-4)


def test_each_outcome_follows_x_along_a_line_of_its_own(made):
    x, y, start, net = made
    flat = net(x).values
    with torch.no_grad():
        net.lines.copy_(torch.randn(net.lines.shape, generator=torch.Generator().manual_seed(1)))
        net.log_scale.bias.fill_(2.0).log_()
    z = net.units.inputs(x)
    moved = torch.einsum("smk,bk->bsm", net.lines.detach(), z)
    m = net.units.undo(x, net.location(z).unsqueeze(1))
    expected = m + 2 * (flat - m + net.units.y_scaler.scale * moved)
    assert torch.allclose(net(x).values, expected, atol=1e-4)
    plain = LocationScaleNetwork(MLP(3), net.units, x, y, start, True)
    assert plain.lines is None
    assert torch.allclose(plain(x).values, flat, atol=1e-5)


def test_x_moves_outcomes_and_not_their_weights(made):
    x, _, _, net = made
    with torch.no_grad():
        net.logits.copy_(torch.arange(10.0))
    s = net(x[:2])
    assert torch.equal(s.weights[0], s.weights[1])
    assert not torch.equal(s.values[0], s.values[1])
    assert s.weights[0].argmax() == 9
