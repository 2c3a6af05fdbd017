from functools import partial

import pytest
import torch
from torch import nn

from costscape.models import LSTM, MLP, Flat, by_shape, encoder_for


@pytest.mark.parametrize(
    ("encoder", "shape"),
    [
        (partial(MLP, 3, hidden=5), (4, 3)),
        (partial(MLP, 6, hidden=5, layers=2), (4, 2, 3)),  # flattened
        (partial(LSTM, hidden=5), (4, 7)),
        (partial(LSTM, 3, hidden=5, layers=1), (4, 7, 3)),
    ],
)
def test_an_encoder_answers_with_out_features_numbers_a_row(encoder, shape):
    net = encoder()
    assert net.out_features == 5
    assert net(torch.randn(shape)).shape == (4, 5)


def test_mlp_is_relu_of_a_linear_layer_by_hand():
    net = MLP(3, hidden=4).eval()
    weight, bias = net.state_dict().values()
    x = torch.randn(6, 3)
    assert torch.allclose(net(x), (x @ weight.T + bias).clamp(min=0), atol=1e-6)


def test_lstm_answers_with_the_last_hidden_state_of_its_top_layer():
    net = LSTM(2, hidden=4, layers=2).eval()
    x = torch.randn(3, 9, 2)
    states, _ = net.lstm(x)
    assert torch.allclose(net(x), states[:, -1], atol=1e-6)


def test_lstm_reads_a_row_as_a_sequence_of_one_channel():
    net = LSTM(hidden=4).eval()
    x = torch.randn(3, 9)
    assert torch.equal(net(x), net(x[..., None]))


RANDOM = [
    partial(MLP, 6, hidden=32, dropout=0.5),
    partial(MLP, 6, hidden=32, noise=0.5),
    partial(LSTM, hidden=32, layers=1, dropout=0.5),
    partial(LSTM, hidden=32, layers=2, dropout=0.5),
    partial(LSTM, hidden=32, noise=0.5),
]


@pytest.mark.parametrize("encoder", RANDOM)
def test_dropout_and_noise_act_in_training_only(encoder):
    net, x = encoder(), torch.randn(4, 6)
    assert not torch.equal(net.train()(x), net(x))
    assert torch.equal(net.eval()(x), net(x))


def test_noise_has_the_standard_deviation_asked_for():
    noise = MLP(1, noise=0.25).train().net[0]
    x = torch.zeros(40_000, 1)
    assert float(noise(x).std()) == pytest.approx(0.25, rel=0.03)


def test_rows_get_an_mlp_and_sequences_an_lstm():
    rows, one, sequence, image = (by_shape(s)() for s in ((5,), (1,), (24, 3), (2, 4, 4)))
    assert isinstance(rows, MLP)
    assert isinstance(one, MLP)
    assert isinstance(image, MLP)
    assert isinstance(sequence, LSTM)
    assert sequence.lstm.input_size == 3
    assert rows(torch.randn(2, 5)).shape == (2, rows.out_features)
    assert image(torch.randn(2, 2, 4, 4)).shape == (2, image.out_features)


def test_the_mlp_of_rows_has_two_hidden_layers():
    rows = by_shape((5, 2, 3))()
    layers = [layer for layer in rows.net if isinstance(layer, nn.Linear)]
    assert [(layer.in_features, layer.out_features) for layer in layers] == [(30, 128), (128, 128)]


@pytest.mark.parametrize("shape", [(5,), (4, 3), (2, 4, 4)])
def test_flat_is_x_itself_in_one_row(shape):
    net = encoder_for(Flat, shape)
    x = torch.randn(6, *shape)
    assert torch.equal(net(x), x.reshape(6, -1))
    assert net.out_features == x[0].numel()
    assert not list(net.parameters())


def test_an_encoder_without_out_features_is_measured_and_others_are_left_alone():
    own = encoder_for(lambda: nn.Sequential(nn.Flatten(), nn.BatchNorm1d(6)), (2, 3))
    assert own.out_features == 6
    assert own.training
    assert own[1].num_batches_tracked == 0
    assert encoder_for(partial(MLP, 6, hidden=7), (2, 3)).out_features == 7
    assert str(encoder_for(None, (24, 3))) == str(by_shape((24, 3))())
