"""Stacked LSTMs against as many nn.LSTM; the kernels by Triton's interpreter without a GPU."""

from functools import partial
from importlib.util import find_spec

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from costscape.training.cuda import stacked_lstm as stacked

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
if not torch.cuda.is_available():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_INTERPRET", "1")  # Triton asks when kernels are made
        from costscape.training.cuda import stacked_lstm_kernels


def made(n, channels, hidden, layers, **settings):
    torch.manual_seed(0)
    return [nn.LSTM(channels, hidden, layers, batch_first=True, **settings) for _ in range(n)]


def inputs_for(lstms, B, T):
    like = lstms[0].weight_hh_l0
    return [torch.randn(B, T, one.input_size).to(like) for one in lstms]


def codes_and_slopes(compute, lstms, inputs):
    """The last states, and what a random sum of them wants of all weights."""
    codes = compute(lstms, inputs)
    weight = torch.randn(codes.shape, generator=torch.Generator().manual_seed(1)).to(codes)
    weights = [p for one in lstms for p in one.parameters()]
    return [codes.detach(), *torch.autograd.grad((codes * weight).sum(), weights)]


def separate(lstms, inputs):
    return torch.stack([one(x)[1][0][-1] for one, x in zip(lstms, inputs, strict=True)])


def assert_same(lstms, inputs, tol):
    found, wanted = (
        codes_and_slopes(way, lstms, inputs) for way in (stacked.last_codes, separate)
    )
    for one, other in zip(found, wanted, strict=True):
        assert (one - other).abs().max() <= tol * max(1.0, float(other.abs().max()))


@settings(max_examples=25, deadline=None)
@given(
    n=st.integers(1, 4),
    B=st.integers(1, 5),
    T=st.integers(1, 6),
    channels=st.integers(1, 3),
    hidden=st.integers(1, 6),
    layers=st.integers(1, 3),
)
def test_a_stack_of_lstms_equals_each_by_itself(n, B, T, channels, hidden, layers):
    lstms = made(n, channels, hidden, layers, dtype=torch.float64)
    assert_same(lstms, inputs_for(lstms, B, T), 1e-12)


@pytest.mark.parametrize("top", [False, True])
def test_the_slope_is_that_of_finite_differences(top):
    shapes = [(2, 3, 2, 2), (2, 12, 2), (2, 12, 3), (2, 12)]
    rng = torch.Generator().manual_seed(0)
    given = [torch.randn(s, generator=rng, dtype=torch.float64).requires_grad_() for s in shapes]
    assert torch.autograd.gradcheck(partial(stacked._layer, top=top), given)


def test_dropout_between_the_layers_drops_its_share_and_only_in_training():
    lstms = made(2, 1, 64, 2, dropout=0.5)
    inputs = inputs_for(lstms, 8, 3)
    for one in lstms:
        one.train()
    first, second = (stacked.last_codes(lstms, inputs) for _ in range(2))
    assert not torch.allclose(first, second)
    torch.manual_seed(3)
    first = stacked.last_codes(lstms, inputs)
    torch.manual_seed(3)
    assert torch.equal(first, stacked.last_codes(lstms, inputs))
    for one in lstms:
        one.eval()
    assert torch.allclose(stacked.last_codes(lstms, inputs), separate(lstms, inputs), atol=1e-6)


@pytest.mark.parametrize(
    "other",
    [
        {"hidden_size": 5},
        {"input_size": 2},
        {"num_layers": 1},
        {"dropout": 0.1},
        {"dtype": torch.float64},
    ],
    ids=str,
)
def test_lstms_that_differ_are_not_alike(other):
    sizes = {"input_size": 1, "hidden_size": 4, "num_layers": 2}
    assert stacked.alike([nn.LSTM(**sizes), nn.LSTM(**sizes)])
    assert not stacked.alike([nn.LSTM(**sizes), nn.LSTM(**{**sizes, **other})])


@pytest.mark.parametrize(
    "way", [{"bidirectional": True}, {"proj_size": 2}, {"bias": False}], ids=str
)
def test_other_kinds_of_lstm_are_not_stacked(way):
    assert not stacked.alike([nn.LSTM(1, 4, **way)])


def test_on_a_cpu_kernels_serve_nothing():
    assert not stacked.fast(nn.LSTM(1, 32))


# ---- the kernels

SIZES = [(3, 5, 4, 2, 16, 2), (1, 40, 1, 1, 32, 1), (2, 33, 3, 1, 48, 2)]


@pytest.fixture
def interpreted(monkeypatch):
    if find_spec("triton") is None:
        pytest.skip("needs Triton")
    if torch.cuda.is_available():
        pytest.skip("the same is tested on the GPU")
    if not type(stacked_lstm_kernels._forward).__name__.startswith("Interpreted"):
        pytest.skip("Triton was imported before, to compile")
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    monkeypatch.setattr(stacked, "_hours", lambda like: stacked_kernels)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("n", "B", "T", "channels", "hidden", "layers"), SIZES)
def test_the_kernels_compute_what_torch_does(n, B, T, channels, hidden, layers, interpreted):
    lstms = made(n, channels, hidden, layers)
    assert_same(lstms, inputs_for(lstms, B, T), 1e-5)


@needs_gpu
@pytest.mark.parametrize(
    ("n", "B", "T", "channels", "hidden", "layers"), [*SIZES, (5, 64, 24, 1, 256, 2)]
)
@pytest.mark.parametrize(("tf32", "tol"), [(False, 1e-4), (True, 2e-2)])
def test_the_kernels_compute_what_cudnn_does(
    n, B, T, channels, hidden, layers, tf32, tol, monkeypatch
):
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", tf32)
    lstms = made(n, channels, hidden, layers, device="cuda")
    assert stacked.fast(lstms[0])
    assert_same(lstms, inputs_for(lstms, B, T), tol)
