"""Last layers: linear by default, or one line for all numbers where the encoder brings it."""

import pytest
import torch
from torch import nn

from costscape.models import MLP
from costscape.models.forecasts import MixtureForecast, PointForecast
from costscape.models.last_layer import last_layer
from costscape.models.scaling import Units
from costscape.problems.one_resource.cubic_values import cubic_values
from costscape.problems.one_resource.one_line import OneLine


def one_line(d):
    encoder = OneLine()
    encoder.out_features = d
    return encoder


def test_the_last_layer_is_linear_in_the_code_unless_the_encoder_brings_one():
    plain = last_layer(MLP(4, hidden=8), size=3, k=2)
    assert isinstance(plain, nn.Linear)
    assert (plain.in_features, plain.out_features) == (8, 6)
    own = last_layer(one_line(3), size=3, k=2)
    assert sum(p.numel() for p in own.parameters()) == 4


def test_one_line_gives_every_resource_the_same_line():
    layer = one_line(3).forecast_layer(size=3, k=2)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([2.0, -1.0]))
        layer.bias.copy_(torch.tensor([0.5, 0.0]))
    x = torch.tensor([[1.0, 0.0, -1.0]])
    assert layer(x).tolist() == [[2.5, 0.5, -1.5, -1.0, 0.0, 1.0]]


def test_least_squares_by_one_line_has_the_slope_of_minus_one_half():
    """E[x y] / E[x^2] = -1/2 for y = 10 x^3 - 6.5 x, whatever the resource."""
    data = cubic_values((4000, 1, 1), resources=10).train
    model = PointForecast(one_line(10), Units(data.x, data.y, None), (10,))
    assert not model.location.weight.any()
    # without a line search the first step may mirror the start, with equal loss, and LBFGS stops
    fit = torch.optim.LBFGS(model.location.parameters(), line_search_fn="strong_wolfe")

    def loss():
        fit.zero_grad()
        value = model.loss(data.x, data.y).mean()
        value.backward()
        return value

    fit.step(loss)
    with torch.no_grad():
        ends = model.mean(torch.stack([torch.ones(10), -torch.ones(10)]))
    assert float((ends[0] - ends[1]).mean() / 2) == pytest.approx(-0.5, abs=0.06)


def test_the_components_of_a_mixture_on_one_line_start_apart():
    x, y = torch.rand(20, 3), torch.rand(20, 3)
    labels = torch.tensor([[0.1, 0.2, 0.3], [5.0, 6.0, 7.0]])
    model = MixtureForecast(one_line(3), Units(x, y, None), labels, draws=4)
    assert model.head.location.bias.tolist() == pytest.approx([0.1, 5.0])
    assert model.samples(x, 4, torch.Generator().manual_seed(0)).shape == (20, 4, 3)


def test_an_encoder_with_a_layer_of_that_name_gets_a_linear_one():
    encoder = MLP(4, hidden=8)
    encoder.last_layer = nn.Linear(8, 8)  # of its own, no part of a forecast
    assert isinstance(last_layer(encoder, size=3), nn.Linear)
    assert last_layer(encoder, size=3) is not encoder.last_layer
