import pytest
import torch

from costscape.problems import three_gaussians


def joined(data):
    parts = (data.splits.train, data.splits.val, data.splits.test)
    return torch.cat([p.x for p in parts]), torch.cat([p.y for p in parts])


def test_sizes_and_ranges():
    data = three_gaussians()
    assert [len(p) for p in vars(data.splits).values()] == [3500, 750, 750]
    x, y = joined(data)
    assert x.shape == y.shape == (5000, 2)
    assert x.abs().max() <= 1
    assert data.maps.shape == (3, 2, 2)
    assert data.maps.min() >= 0
    assert data.maps.max() <= 1


def test_the_same_seed_gives_the_same_bits_and_another_seed_others():
    x, y = joined(three_gaussians(seed=3))
    assert all(
        torch.equal(a, b) for a, b in zip((x, y), joined(three_gaussians(seed=3)), strict=True)
    )
    assert not torch.equal(x, joined(three_gaussians(seed=4))[0])


def test_bits_ignore_the_global_seed_and_the_default_precision():
    expected = joined(three_gaussians(seed=1))
    torch.manual_seed(9)
    torch.set_default_dtype(torch.float64)
    try:
        again = joined(three_gaussians(seed=1))
    finally:
        torch.set_default_dtype(torch.float32)
    assert all(torch.equal(a, b) for a, b in zip(expected, again, strict=True))


def test_maps_depend_on_the_seed_and_not_on_n():
    assert torch.equal(three_gaussians(n=50, seed=2).maps, three_gaussians(n=5000, seed=2).maps)
    assert not torch.equal(three_gaussians(seed=2).maps, three_gaussians(seed=1).maps)


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_the_moments_of_y_given_x_are_those_of_the_mixture(dim):
    data = three_gaussians(n=200_000, dim=dim, seed=5)
    x, y = (t.double() for t in joined(data))
    weights = torch.tensor([0.3, 0.3, 0.4], dtype=torch.float64)
    means = torch.einsum("cij,nj->nci", data.maps.double(), x)
    mean = torch.einsum("c,nci->ni", weights, means)
    variance = torch.einsum("c,nci->ni", weights, means**2) - mean**2 + 0.1
    # under the law, standardised residuals have mean 0 and variance 1; both within 5 sd
    z = (y - mean) / variance.sqrt()
    sd = len(z) ** -0.5
    assert z.mean(0).abs().max() < 5 * sd
    assert (z**2).mean(0).sub(1).abs().max() < 5 * (z**2).std() * sd
    # and are uncorrelated with x, as only the right maps make them
    assert (z.T @ x / len(z)).abs().max() < 5 * sd


def test_each_component_is_drawn_as_often_as_its_weight():
    data = three_gaussians(n=100_000, dim=6, seed=0)  # far apart in six dimensions
    x, y = (t.double() for t in joined(data))
    means = torch.einsum("cij,nj->nci", data.maps.double(), x)
    log_density = -(y.unsqueeze(1) - means).square().sum(-1) / 0.2
    weights = torch.tensor([0.3, 0.3, 0.4], dtype=torch.float64)
    # one step of expectation maximisation leaves the true weights where they are
    share = (log_density + weights.log()).softmax(-1)
    assert (share.mean(0) - weights).abs().max() < 5 * float(share.std(0).max()) * len(x) ** -0.5


def test_sizes_that_make_no_data_are_refused():
    with pytest.raises(ValueError, match="n >= 1 and dim >= 1, but got 0 and 2"):
        three_gaussians(n=0)
    with pytest.raises(ValueError, match="part is empty"):
        three_gaussians(n=2)
