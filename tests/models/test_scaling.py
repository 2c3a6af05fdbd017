import numpy as np
import pytest
import torch

from costscape.models import ByLevel, Standardise, Units, mean_level


def test_rows_are_standardised_feature_by_feature_as_numpy_does():
    x = 5 + torch.randn(50, 3) * torch.tensor([1.0, 10.0, 0.01])
    a = x.numpy().astype(np.float64)
    expected = (a - a.mean(0)) / a.std(0)
    assert np.allclose(Standardise(x)(x).numpy(), expected, atol=1e-3)


def test_sequences_are_standardised_channel_by_channel_not_step_by_step():
    x = torch.arange(12.0)[:, None] * torch.tensor([1.0, 5.0]) + torch.randn(20, 12, 2)
    a = x.numpy().astype(np.float64)
    expected = (a - a.mean((0, 1))) / a.std((0, 1))
    scaler = Standardise(x)
    assert scaler.mean.shape == (2,)
    assert np.allclose(scaler(x).numpy(), expected, atol=1e-4)


def test_the_statistics_are_those_of_the_training_part():
    scaler = Standardise(torch.tensor([[0.0], [2.0]]))
    assert scaler(torch.tensor([[5.0]])).item() == pytest.approx(4.0)


@pytest.mark.parametrize("value", [0.0, 0.1, -7.3, 1e9])
def test_a_feature_that_never_changes_is_only_centred(value):
    x = torch.full((1000, 2), value)
    x[:, 1] = torch.randn(1000)
    scaler = Standardise(x)
    assert scaler.scale[0] == max(1.0, 1e-6 * abs(value))
    assert scaler(x)[:, 0].abs().max() <= 1e-6 * max(1, abs(value))
    assert float(scaler(x)[:, 1].std()) == pytest.approx(1, rel=1e-2)


@pytest.mark.parametrize("unit", [1e-9, 1e-3, 1e9])
def test_the_unit_of_a_feature_does_not_matter(unit):
    x = torch.rand(100, 2)
    assert torch.allclose(Standardise(x * unit)(x * unit), Standardise(x)(x), atol=1e-5)


def test_undo_undoes():
    x = 3 + 4 * torch.randn(30, 2, dtype=torch.float64)
    scaler = Standardise(x)
    assert torch.allclose(scaler.undo(scaler(x)), x, atol=1e-12)


def test_mean_level_is_the_mean_absolute_value_of_each_window():
    x = torch.tensor([[[1.0], [-3.0]], [[0.0], [0.5]]])
    assert mean_level(x).tolist() == [2.0, 0.25]


def test_a_level_is_never_under_one_percent_of_the_training_mean():
    level = ByLevel(mean_level, torch.tensor([[1.0], [3.0]]))
    new = torch.tensor([[5.0], [0.0], [0.019], [0.021]])
    assert torch.allclose(level(new), torch.tensor([5.0, 0.02, 0.02, 0.021]))


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (lambda x: x, r"shape \(4,\), but it gave shape \(4, 3\)"),
        (lambda x: x.mean(), r"but it gave shape \(\)"),
        (lambda x: x.sum(1) - 10, "least value -10"),
        (lambda x: x.sum(1) / 0, "least value nan"),
    ],
)
def test_a_level_that_is_not_one_positive_number_a_window_is_refused(bad, said):
    with pytest.raises(ValueError, match=said):
        ByLevel(bad, torch.zeros(4, 3))


def test_a_number_of_y_that_never_changes_hardly_moves_whatever_the_network_says():
    y = torch.randn(50, 2, 3, 3)
    y[:, 1, 2, 0] = 0.25
    units = Units(torch.randn(50, 4), y)
    z = torch.randn(5, 7, 2, 3, 3)
    back = units.undo(torch.randn(5, 4), z)
    assert torch.allclose(back[..., 1, 2, 0], torch.tensor(0.25), atol=1e-5)
    small = units.spread(torch.randn(5, 4), torch.ones_like(z))[..., 1, 2, 0]
    assert ((small > 0) & (small < 2e-6)).all()
    assert int((units.moves == 0).sum()) == 1
    assert units.moves[1, 2, 0] == 0
    assert float(back[..., 0, 0, 0].std()) == pytest.approx(
        float(y[:, 0, 0, 0].std(correction=0) * z[..., 0, 0, 0].std()), rel=1e-4
    )


def test_a_large_number_that_never_changes_stays_small_for_the_network():
    x = torch.column_stack([torch.randn(120), torch.full((120,), 1e9)])
    assert Standardise(x)(x)[:, 1].abs().max() < 1
