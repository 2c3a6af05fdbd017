"""What g is fitted to, against sums written out."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from costscape import DF2, Box, Costs, ExpectedCost, Scenarios, SeparableTask, Slopes, Task


def terms(y, a):
    return (y - a) ** 2 + 2 * (y - a).clamp(min=0)


def example(seed=0, B=6, S=5, d=2):
    rng = torch.Generator().manual_seed(seed)
    w = torch.rand(B, S, generator=rng, dtype=torch.float64)
    v = torch.randn(B, S, d, generator=rng, dtype=torch.float64)
    y = torch.randn(B, d, generator=rng, dtype=torch.float64)
    return w / w.sum(1, keepdim=True), v, y, rng


def written_out(w, v, y, a, width):
    """The loss of Slopes with a loop for each pair and coordinate; a is (1 or B, J, d)."""
    total, size, n = 0.0, 0.0, 0
    for b in range(len(y)):
        own = a[b if len(a) > 1 else 0].numpy()
        for i in range(y.shape[1]):
            points = np.sort(own[:, i])
            f = [float(terms(y[b, i], torch.tensor(p))) for p in points]
            g = [
                sum(float(w[b, s] * terms(v[b, s, i], torch.tensor(p))) for s in range(w.shape[1]))
                for p in points
            ]
            for j in range(len(points) - 1):
                apart = max(points[j + 1] - points[j], width / 2 / len(points))
                total += ((g[j + 1] - g[j]) - (f[j + 1] - f[j])) ** 2 / apart
                size += (f[j + 1] - f[j]) ** 2 / apart
                n += 1
    return total / size


@pytest.mark.parametrize("shared", [True, False], ids=["shared", "own"])
def test_the_loss_of_slopes_is_the_sum_written_out(shared):
    w, v, y, rng = example()
    task = SeparableTask(terms, Box(-2.0, 2.0, dim=2)).double()
    a = 4 * torch.rand(1 if shared else len(y), 7, 2, generator=rng, dtype=torch.float64) - 2
    loss = Slopes().loss(ExpectedCost(task, Scenarios(w, v)), y, a)
    assert loss.item() == pytest.approx(written_out(w, v, y, a, 4.0), rel=1e-9)


@given(st.integers(0, 1000))
@settings(max_examples=20, deadline=None)
def test_a_cost_of_y_alone_changes_no_slope(seed):
    w, v, y, rng = example(seed)
    a = 4 * torch.rand(1, 9, 2, generator=rng, dtype=torch.float64) - 2
    found = []
    for noise in (0.0, 50.0):
        task = SeparableTask(
            lambda y, a, n=noise: terms(y, a) + n * y.sin(), Box(-2.0, 2.0, dim=2)
        )
        g = ExpectedCost(task.double(), Scenarios(w, v))
        found.append([t.loss(g, y, a).item() for t in (Slopes(), Costs(weighting=False))])
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-6)
    assert found[0][1] != pytest.approx(found[1][1], rel=1e-2)


def test_of_absolute_errors_slopes_are_the_ranked_probability_score():
    w, v, y, _ = example(B=4, S=6, d=1)
    task = SeparableTask(lambda y, a: (y - a).abs(), Box(-6.0, 6.0, dim=1)).double()
    a = torch.linspace(-6, 6, 24_001, dtype=torch.float64).reshape(1, -1, 1)
    loss = Slopes().loss(ExpectedCost(task, Scenarios(w, v)), y, a)
    # E|v - y| - E|v - v'| / 2 is the integral of (F - 1{y <= a})^2, and f' is 2 1{y <= a} - 1
    first = (w * (v[..., 0] - y).abs()).sum(1)
    pairs = (v[:, :, None, 0] - v[:, None, :, 0]).abs()
    score = first - (w[:, :, None] * w[:, None] * pairs).sum((1, 2)) / 2
    assert loss.item() == pytest.approx(4 * score.mean().item() / 12, rel=2e-3)


def test_where_nothing_is_separable_residuals_are_taken_from_their_mean():
    w, v, y, rng = example()
    task = Task(lambda y, a: (terms(y, a).sum(-1)).sqrt(), Box(-2.0, 2.0, dim=2)).double()
    a = 4 * torch.rand(1, 7, 2, generator=rng, dtype=torch.float64) - 2
    g = ExpectedCost(task, Scenarios(w, v))
    f = task.cost(y[:, None], a).numpy()
    r = g(a).numpy() - f
    r, f = r - r.mean(1, keepdims=True), f - f.mean(1, keepdims=True)
    assert Slopes().loss(g, y, a).item() == pytest.approx((r**2).mean() / (f**2).mean(), rel=1e-9)


def test_slopes_have_the_gradient_of_finite_differences():
    w, v, y, rng = example()
    task = SeparableTask(terms, Box(-2.0, 2.0, dim=2)).double()
    a = 4 * torch.rand(1, 7, 2, generator=rng, dtype=torch.float64) - 2

    def loss(v):
        return Slopes().loss(ExpectedCost(task, Scenarios(w, v)), y, a)

    assert torch.autograd.gradcheck(loss, v.requires_grad_(), atol=1e-6)


def test_the_least_loss_is_that_of_the_law_of_y():
    # of all g the mean of f over the law has the least loss: here over two equal outcomes
    y = torch.tensor([[0.0], [1.0]], dtype=torch.float64).repeat(50, 1)
    task = SeparableTask(terms, Box(-2.0, 2.0, dim=1)).double()
    a = torch.linspace(-2, 2, 41, dtype=torch.float64).reshape(1, -1, 1)
    losses = []
    for p in (0.3, 0.5, 0.7):
        w = torch.tensor([[p, 1 - p]], dtype=torch.float64).expand(len(y), 2)
        v = torch.tensor([[[0.0], [1.0]]], dtype=torch.float64)
        losses.append(Slopes().loss(ExpectedCost(task, Scenarios(w, v)), y, a).item())
    assert losses[1] < min(losses[0], losses[2])


def test_a_jump_stays_finite():
    task = SeparableTask(lambda y, a: (a > y) * 10.0, Box(0.0, 1.0, dim=1)).double()
    w, v = torch.ones(1, 1, dtype=torch.float64), torch.full((1, 1, 1), 0.4, dtype=torch.float64)
    a = torch.tensor([0.1, 0.5, 0.5, 0.5 + 1e-9], dtype=torch.float64).reshape(1, 4, 1)
    y = torch.full((1, 1), 0.5, dtype=torch.float64)
    assert Slopes().loss(ExpectedCost(task, Scenarios(w, v)), y, a).isfinite()


def test_slopes_need_two_actions():
    task = SeparableTask(terms, Box(-2.0, 2.0, dim=2))
    with pytest.raises(ValueError, match="need at least 2, but got actions=1"):
        DF2(task, actions=1)
    DF2(task, actions=1, target=Costs())
