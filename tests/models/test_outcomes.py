import torch
from torch import nn

from costscape.models import AnchoredValues, Values


def test_learned_values_start_at_the_labels_and_are_parameters():
    y = torch.randn(5, 3)
    values = Values(y, learn=True)
    assert torch.equal(values(torch.zeros(4, 2)), y[None])
    assert isinstance(values.v, nn.Parameter)
    assert values.v.data_ptr() != y.data_ptr()


def test_values_that_are_not_learned_are_no_parameters_but_are_saved():
    values = Values(torch.randn(5, 3), learn=False)
    assert list(values.parameters()) == []
    assert list(values.state_dict()) == ["v"]


def test_anchored_values_are_m_plus_r_v_by_hand():
    y, code = torch.randn(5, 3), torch.randn(4, 2)
    values = AnchoredValues(y, width=2, learn=True)
    with torch.no_grad():
        values.log_scale.weight.normal_()
        values.log_scale.bias.normal_()
    m = code @ values.location.weight.T + values.location.bias
    r = (code @ values.log_scale.weight.T + values.log_scale.bias).exp()
    expected = torch.stack([m[b] + r[b] * y for b in range(4)])
    assert torch.allclose(values(code), expected, atol=1e-6)
    assert torch.allclose(values.anchor(code), m, atol=1e-6)


def test_the_scale_of_anchored_values_starts_at_one():
    y, code = torch.randn(5, 3), torch.randn(4, 2)
    values = AnchoredValues(y, width=2, learn=True)
    assert torch.allclose(
        values(code) - values.anchor(code)[:, None], y.expand(4, 5, 3), atol=1e-6
    )


def test_start_replaces_the_values():
    values = AnchoredValues(torch.zeros(5, 2), width=2, learn=False)
    residuals = torch.randn(5, 2)
    values.start(residuals)
    assert torch.equal(values.values.v, residuals)


def test_outcomes_of_several_axes_keep_them():
    values = AnchoredValues(torch.randn(5, 2, 3), width=4, learn=True)
    assert values(torch.randn(7, 4)).shape == (7, 5, 2, 3)
