import numpy as np
import pytest
import torch
from sklearn.neighbors import NearestNeighbors as Sklearn
from sklearn.preprocessing import StandardScaler

from costscape import Box, NearestNeighbours, SeparableTask


def squares(dim=1, upper=3.0):
    return SeparableTask(lambda y, a: (y - a) ** 2, Box(0.0, upper, dim=dim), convex=True)


def test_the_scenarios_are_the_labels_of_the_rows_sklearn_finds():
    rng = torch.Generator().manual_seed(0)
    x = torch.randn(120, 3, generator=rng, dtype=torch.float64) * torch.tensor([1.0, 100.0, 0.01])
    y = torch.rand(120, 2, generator=rng, dtype=torch.float64)
    new = torch.randn(15, 3, generator=rng, dtype=torch.float64) * torch.tensor([1.0, 100.0, 0.01])
    model = NearestNeighbours(squares(2).double(), k=7).fit(
        x[:100], y[:100], val=(x[100:], y[100:])
    )
    scaler = StandardScaler().fit(x[:100])
    found = Sklearn(n_neighbors=7).fit(scaler.transform(x[:100]))
    near = found.kneighbors(scaler.transform(new), return_distance=False)
    s = model.scenarios(new)
    assert torch.equal(s.values, y[:100][torch.as_tensor(near)])
    assert torch.equal(s.weights, torch.full((15, 7), 1 / 7, dtype=torch.float64))


def test_the_decision_is_the_mean_of_the_neighbours_for_squares():
    x = torch.arange(20.0)[:, None]
    y = (x % 7) / 3
    model = NearestNeighbours(squares(), k=3).fit(x, y, val=(x, y))
    a = model.decide(torch.tensor([[0.1], [10.0], [25.0]]))
    expected = torch.stack([y[[0, 1, 2]].mean(0), y[[9, 10, 11]].mean(0), y[[17, 18, 19]].mean(0)])
    assert torch.allclose(a, expected, atol=1e-4)


def test_the_nearest_row_to_a_training_row_is_itself_however_close_the_others():
    rng = torch.Generator().manual_seed(0)
    x = torch.randperm(2**20, generator=rng)[:4000, None].float() / 2**20
    y = torch.rand(4000, 1)
    model = NearestNeighbours(squares(), k=1).fit(x, y, val=(x[:5], y[:5]))
    assert torch.equal(model.scenarios(x).values[:, 0], y)


def test_sequences_are_compared_as_a_whole():
    x = torch.rand(30, 4, 2)
    y = torch.rand(30, 1)
    model = NearestNeighbours(squares(), k=1).fit(x, y, val=(x, y))
    assert torch.equal(model.scenarios(x).values[:, 0], y)


def test_the_k_that_costs_least_on_validation_is_taken():
    rng = torch.Generator().manual_seed(0)

    def draw(n, noise):
        x = torch.rand(n, 1, generator=rng)
        steep = 1.5 + (12 * x).sin()
        return x, steep + noise * torch.randn(n, 1, generator=rng)

    def chosen(noise):
        x, y = draw(450, noise)
        val = draw(300, noise)
        return NearestNeighbours(squares()).fit(x, y, val=val), val

    quiet, _ = chosen(0.0)
    loud, (x, y) = chosen(1.0)
    assert quiet.chosen() == {"k": 10}
    assert 25 <= loud.model_.k <= 100
    # by hand, each size on its own
    costs = []
    for k in (10, 25, 50, 100, 200, 400):
        near = (loud.model_.x[None, :, 0] - loud.model_.scaler(x)).abs().topk(k, largest=False)
        a = loud.model_.y[near.indices].mean(1).clamp(0, 3)
        costs.append(float((y - a).square().mean()))
    assert (10, 25, 50, 100, 200, 400)[int(np.argmin(costs))] == loud.model_.k


def test_with_fewer_rows_than_the_least_k_all_are_neighbours():
    x, y = torch.rand(6, 1), torch.rand(6, 1)
    model = NearestNeighbours(squares()).fit(x, y, val=(x, y))
    assert model.scenarios(x[:1]).weights.shape == (1, 6)


@pytest.mark.parametrize("k", [0, -1, 21])
def test_a_k_out_of_range_is_refused(k):
    x, y = torch.rand(20, 1), torch.rand(20, 1)
    with pytest.raises(ValueError, match=f"k needs to be from 1 to the 20 training rows, .* {k}"):
        NearestNeighbours(squares(), k=k).fit(x, y, val=(x, y))
