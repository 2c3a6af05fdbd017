import numpy as np
import pytest
import torch

from costscape.models import Base, ByLevel, Changes, Damped, Standardise, Units, mean_level


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
    assert scaler.scale[0] == 1
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


def test_a_base_is_taken_off_outcomes_and_added_again():
    rng = torch.Generator().manual_seed(0)
    x = torch.randn(40, 5, generator=rng, dtype=torch.float64)
    y = x[:, -2:] + 3 + 0.1 * torch.randn(40, 2, generator=rng, dtype=torch.float64)
    units = Units(x, y, Base(lambda x: x[:, -2:]))
    z = units.standard(x, y)
    changes = (y - x[:, -2:]).numpy()
    assert np.allclose(z.numpy(), (changes - changes.mean(0)) / changes.std(0))
    assert torch.allclose(units.undo(x, z[:, None])[:, 0], y)
    assert torch.allclose(units.undo(x, z), y)
    # what the network sees of x stays as it is, and spreads have no base
    assert torch.equal(units.inputs(x), Standardise(x)(x))
    assert torch.allclose(units.spread(x, torch.ones_like(z)[:, None])[0, 0], units.y_scaler.scale)
    assert units.own
    assert not Units(x, y).own


def last_two(x):
    return x[:, -2:]


@pytest.mark.parametrize(("slope", "found"), [(0.6, 0.6), (1.8, 1.0), (-0.5, 0.0)])
def test_a_damped_base_counts_by_the_slope_of_a_pooled_regression(slope, found):
    rng = torch.Generator().manual_seed(0)
    x = torch.randn(400, 5, generator=rng, dtype=torch.float64)
    y = slope * last_two(x) + torch.tensor([3.0, -7.0]) + 0.01 * x[:, :2]
    units = Units(x, y, Base(Damped(last_two)))
    b = (last_two(x) - last_two(x).mean(0)).flatten()
    exact = np.polyfit(b.numpy(), (y - y.mean(0)).flatten().numpy(), 1)[0]
    assert float(units.base.damping) == pytest.approx(np.clip(exact, 0, 1), abs=1e-9)
    assert float(units.base.damping) == pytest.approx(found, abs=0.02)
    z = units.standard(x, y)
    left = (y - units.base.damping * last_two(x)).numpy()
    assert np.allclose(z.numpy(), (left - left.mean(0)) / left.std(0))
    assert torch.allclose(units.undo(x, z[:, None])[:, 0], y)


def test_what_is_far_from_the_mean_of_the_base_counts_as_the_limit():
    rng = torch.Generator().manual_seed(0)
    x = torch.randn(400, 5, generator=rng, dtype=torch.float64)
    b = last_two(x).numpy()
    least, most = (b.mean(0) + sign * 1.5 * b.std(0) for sign in (-1, 1))
    near = np.clip(b, least, most)
    y = torch.tensor(0.7 * near + [3.0, -7.0])
    units = Units(x, y, Base(Damped(last_two, within=1.5)))
    assert float(units.base.damping) == pytest.approx(0.7, abs=1e-9)
    z = torch.zeros(400, 2, dtype=torch.float64)
    assert np.allclose(units.undo(x, z).numpy(), y.numpy())
    far = x.clone()
    far[:, -2:] += 100.0
    assert np.allclose(units.undo(far, z).numpy(), 0.7 * most + [3.0, -7.0])
    noisy = y + 0.1 * x[:, :2]
    units = Units(x, noisy, Base(Damped(last_two, within=1.5)))
    assert torch.allclose(units.undo(far, units.standard(far, noisy)), noisy)


@pytest.mark.parametrize("limit", [0.0, -1.0, float("nan")])
def test_a_limit_that_is_not_positive_is_refused(limit):
    with pytest.raises(ValueError, match="Damped needs within to be a positive number"):
        Damped(last_two, within=limit)
    with pytest.raises(ValueError, match="Base needs seen to be a positive number"):
        Base(last_two, seen=limit)
    with pytest.raises(ValueError, match="Changes needs seen to be a positive number"):
        Changes(last_two, seen=limit)


def test_the_network_sees_x_within_the_limit_and_outcomes_follow_the_base_beyond_it():
    rng = torch.Generator().manual_seed(0)
    x = 5 + 2 * torch.randn(400, 5, generator=rng, dtype=torch.float64)
    y = last_two(x) + 0.1 * x[:, :2]
    exact = (x - x.mean(0)) / x.std(0, correction=0)
    units = Units(x, y, Base(last_two, seen=1.5))
    assert torch.allclose(units.inputs(x), exact.clamp(-1.5, 1.5))
    assert torch.allclose(Units(x, y, Base(last_two)).inputs(x), exact)
    far = x + 100
    assert torch.allclose(units.inputs(far), torch.full_like(x, 1.5))
    z = torch.zeros_like(y)
    assert torch.allclose(units.undo(far, z) - units.undo(x, z), torch.full_like(y, 100.0))
    raw = Units(x, y, Base(last_two, seen=1.5), standardise=False)
    assert torch.equal(raw.inputs(far), far)


def test_a_base_that_never_changes_counts_for_nothing():
    x, y = torch.ones(9, 3), torch.arange(18.0).reshape(9, 2)
    for damped in (Damped(last_two), Damped(last_two, within=2.0)):
        assert float(Units(x, y, Base(damped)).base.damping) == 0


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (lambda x: x, r"shape of y, \(4, 2\), but it gave shape \(4, 3\), all finite"),
        (lambda x: x[:, :2] / 0, "not all finite"),
    ],
)
def test_a_base_that_is_not_like_y_is_refused(bad, said):
    with pytest.raises(ValueError, match=said):
        Units(torch.ones(4, 3), torch.ones(4, 2), Base(bad))


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
