"""What g is fitted to, against sums written out, closed forms and bounds."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from costscape import (
    DF2,
    Box,
    Costs,
    ExpectedCost,
    Finite,
    Scenarios,
    Separable,
    SeparableTask,
    Simplex,
    Slopes,
    Task,
)
from costscape.methods.df2.slopes import LABELS, POINTS, _squares, absolute_errors


def terms(y, a):
    return (y - a) ** 2 + 2 * (y - a).clamp(min=0)


def example(seed=0, B=6, S=5, d=2):
    rng = torch.Generator().manual_seed(seed)
    w = torch.rand(B, S, generator=rng, dtype=torch.float64)
    v = torch.randn(B, S, d, generator=rng, dtype=torch.float64)
    y = torch.randn(B, d, generator=rng, dtype=torch.float64)
    return w / w.sum(1, keepdim=True), v, y, rng


# ---- actions


@given(st.integers(2, 40), st.integers(1, 4), st.integers(0, 100))
@settings(max_examples=50, deadline=None)
def test_actions_of_a_sum_are_one_in_each_cell_and_both_bounds(J, rows, seed):
    task = SeparableTask(terms, Box([-2.0, 1.0], [2.0, 9.0])).double()
    a = Slopes().actions(task, rows, J, torch.Generator().manual_seed(seed))
    lower, upper = task.feasible.bounds
    assert a.shape == (rows, J + 2, 2)
    assert torch.equal(a[:, 0], lower.expand(rows, 2))
    assert torch.allclose(a[:, -1], upper.expand(rows, 2), rtol=1e-15)
    cell = ((a[:, 1:-1] - lower) / (upper - lower) * J).floor()
    assert torch.equal(cell, torch.arange(J).double()[:, None].expand(rows, J, 2))


@given(st.integers(2, 40), st.integers(0, 100))
@settings(max_examples=50, deadline=None)
def test_actions_of_another_cost_lie_on_chords_through_the_set_with_both_ends(J, seed):
    task = Task(lambda y, a: terms(y, a).sum(-1).sqrt(), Simplex(dim=3)).double()
    a = Slopes().actions(task, 2, J, torch.Generator().manual_seed(seed))
    points = min(J, POINTS)
    chords = a.unflatten(1, (-1, points))
    assert chords.shape == (2, max(1, J // POINTS), points, 3)
    assert task.feasible.contains(a.flatten(0, 1)).all()
    start, end = chords[:, :, :1], chords[:, :, -1:]
    whole = (end - start).norm(dim=-1)
    along = (chords - start).norm(dim=-1)
    assert torch.allclose(along + (end - chords).norm(dim=-1), whole.expand_as(along))
    assert (along.diff(dim=-1) >= 0).all()
    assert (whole > 0).all()


def test_actions_of_a_finite_set_are_some_of_it():
    task = Task(lambda y, a: (y - a).square().sum(-1), Finite([[0.0], [1.0], [5.0]]))
    a = Slopes().actions(task, 2, 30, torch.Generator().manual_seed(0))
    assert a.shape == (2, 30, 1)
    assert set(a.flatten().tolist()) == {0.0, 1.0, 5.0}


# ---- the loss


def written_out(w, v, y, a, width):
    """The loss of Slopes with a loop for each pair and coordinate; a is (1 or B, J + 2, d)."""
    total, n = 0.0, 0
    for b in range(len(y)):
        points = a[b if len(a) > 1 else 0].numpy()
        cell = width / (len(points) - 2)
        for i in range(y.shape[1]):
            f = [float(terms(y[b, i], torch.tensor(p))) for p in points[:, i]]
            g = [
                sum(float(w[b, s] * terms(v[b, s, i], torch.tensor(p))) for s in range(w.shape[1]))
                for p in points[:, i]
            ]
            for j in range(len(points) - 1):
                apart = max(points[j + 1, i] - points[j, i], cell / 2)
                total += ((g[j + 1] - g[j]) - (f[j + 1] - f[j])) ** 2 / apart
                n += 1
    return total / n


@pytest.mark.parametrize("shared", [True, False], ids=["shared", "own"])
def test_the_loss_of_slopes_is_the_sum_written_out(shared):
    w, v, y, rng = example()
    task = SeparableTask(terms, Box(-2.0, 2.0, dim=2)).double()
    a = Slopes().actions(task, 1 if shared else len(y), 7, rng)
    loss = Slopes().loss(ExpectedCost(task, Scenarios(w, v)), y, a)
    assert loss.item() == pytest.approx(written_out(w, v, y, a, 4.0), rel=1e-9)


@given(st.integers(0, 1000))
@settings(max_examples=20, deadline=None)
def test_a_cost_of_y_alone_changes_no_slope(seed):
    w, v, y, _ = example(seed)
    found = []
    for noise in (0.0, 50.0):
        task = SeparableTask(
            lambda y, a, n=noise: terms(y, a) + n * y.sin(), Box(-2.0, 2.0, dim=2)
        )
        a = Slopes().actions(task.double(), 1, 9, torch.Generator().manual_seed(seed))
        g = ExpectedCost(task, Scenarios(w, v))
        found.append([t.loss(g, y, a).item() for t in (Slopes(), Costs(weighting=False))])
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-6)
    assert found[0][1] != pytest.approx(found[1][1], rel=1e-2)


def ranked_probability_score(w, v, y):
    """E|v - y| - E|v - v'| / 2 is the integral of (F - 1{y <= a})^2."""
    first = (w * (v[..., 0] - y).abs()).sum(1)
    pairs = (v[:, :, None, 0] - v[:, None, :, 0]).abs()
    return (first - (w[:, :, None] * w[:, None] * pairs).sum((1, 2)) / 2).mean().item()


def test_of_absolute_errors_slopes_are_the_ranked_probability_score():
    w, v, y, _ = example(B=4, S=6, d=1)
    task = SeparableTask(lambda y, a: (y - a).abs(), Box(-6.0, 6.0, dim=1)).double()
    a = torch.linspace(-6, 6, 24_001, dtype=torch.float64).reshape(1, -1, 1)
    loss = Slopes().loss(ExpectedCost(task, Scenarios(w, v)), y, a)
    # the loss is a mean over the neighbours, and f' is 2 1{y <= a} - 1
    score = ranked_probability_score(w, v, y)
    assert 24_000 * loss.item() == pytest.approx(4 * score, rel=2e-3)


def test_sampled_actions_estimate_the_ranked_probability_score():
    w, v, y, rng = example(B=4, S=6, d=1)
    task = SeparableTask(lambda y, a: (y - a).abs(), Box(-6.0, 6.0, dim=1)).double()
    g = ExpectedCost(task, Scenarios(w, v))
    found = [501 * Slopes().loss(g, y, Slopes().actions(task, 1, 500, rng)) for _ in range(20)]
    assert np.mean(found) == pytest.approx(4 * ranked_probability_score(w, v, y), rel=0.02)


def test_absolute_errors_are_those_of_each_outcome_over_the_range_of_the_labels():
    y = torch.tensor([[1.0, 5.0], [3.0, 5.0], [2.0, 5.0]])
    task = absolute_errors(y)
    lower, upper = task.feasible.bounds
    assert lower.tolist() == [1.0, 5.0]
    assert upper[0] == 3.0
    assert 5.0 < float(upper[1]) < 5.0001  # a set needs some width
    a = torch.tensor([[2.5, 5.0]])
    assert task.terms(y, a).tolist() == [[1.5, 0.0], [0.5, 0.0], [0.5, 0.0]]


# ---- costs that are no sum


def joint(y, a):
    return (terms(y, a).sum(-1) + 0.1).sqrt()


@pytest.mark.parametrize("J", [2, 5, 8, 20])
def test_the_loss_along_chords_is_the_sum_written_out(J):
    w, v, y, rng = example()
    task = Task(joint, Box(-2.0, 2.0, dim=2)).double()
    a = Slopes().actions(task, 1, J, rng)
    g = ExpectedCost(task, Scenarios(w, v))
    r = (g(a) - task.cost(y[:, None], a)).numpy()
    points = min(J, POINTS)
    every = []
    for b in range(len(y)):
        for first in range(0, a.shape[1], points):
            chord = a[0, first : first + points].numpy()
            cell = np.linalg.norm(chord[-1] - chord[0]) / max(points - 2, 1)
            for j in range(points - 1):
                apart = max(np.linalg.norm(chord[j + 1] - chord[j]), cell / 2)
                every.append((r[b, first + j + 1] - r[b, first + j]) ** 2 / apart)
    assert Slopes().loss(g, y, a).item() == pytest.approx(np.mean(every), rel=1e-9)


@pytest.mark.parametrize("kind", ["box", "simplex", "finite"])
def test_where_g_is_f_and_a_constant_nothing_is_lost(kind):
    # f(y, .) of any two outcomes differ by a constant, so any scenarios have the right slopes
    C = {
        "box": Box(-2.0, 2.0, dim=2),
        "simplex": Simplex(dim=2),
        "finite": Finite([[0.0, 1.0], [2.0, 0.5], [1.0, 1.0]]),
    }[kind]
    task = Task(lambda y, a: (1 + a.square().sum(-1)).sqrt() + 30 * y.sum(-1), C).double()
    w, v, y, rng = example()
    a = Slopes().actions(task, len(y), 20, rng)
    g = ExpectedCost(task, Scenarios(w, v))
    assert Slopes().loss(g, y, a).item() < 1e-20
    assert Costs(weighting=False).loss(g, y, a).item() > 1
    other = Task(joint, C).double()
    assert Slopes().loss(ExpectedCost(other, Scenarios(w, v)), y, a).item() > 1e-3


def test_on_a_finite_set_residuals_are_taken_from_their_mean():
    w, v, y, rng = example()
    task = Task(joint, Finite(torch.randn(9, 2, generator=torch.Generator().manual_seed(0))))
    task = task.double()
    a = Slopes().actions(task, 1, 7, rng)
    g = ExpectedCost(task, Scenarios(w, v))
    r = g(a).numpy() - task.cost(y[:, None], a).numpy()
    r = r - r.mean(1, keepdims=True)
    assert Slopes().loss(g, y, a).item() == pytest.approx((r**2).mean(), rel=1e-9)


@pytest.mark.parametrize("separable", [True, False], ids=["sum", "chords"])
def test_slopes_have_the_gradient_of_finite_differences(separable):
    w, v, y, rng = example()
    box = Box(-2.0, 2.0, dim=2)
    task = (SeparableTask(terms, box) if separable else Task(joint, box)).double()
    a = Slopes().actions(task, 1, 7, rng)

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


# ---- jumps


@given(st.integers(2, 60), st.floats(0.01, 0.99), st.floats(0.1, 100.0), st.integers(0, 1000))
@settings(max_examples=100, deadline=None)
def test_a_jump_enters_with_at_most_its_square_over_half_a_cell(J, at, jump, seed):
    width = 5.0
    task = SeparableTask(lambda y, a: jump * (a > y).to(a), Box(0.0, width, dim=1)).double()
    a = Slopes().actions(task, 1, J, torch.Generator().manual_seed(seed))
    y = torch.full((1, 1), at * width, dtype=torch.float64)
    total = _squares(task, task.terms(y.unsqueeze(1), a), a).sum().item()
    least = jump**2 / (2 * width / J)  # over the widest distance, two cells
    assert least * (1 - 1e-9) <= total <= 2 * J * jump**2 / width * (1 + 1e-9)


def test_two_actions_as_good_as_equal_do_not_make_a_jump_infinite():
    task = SeparableTask(lambda y, a: 10.0 * (a > y).to(a), Box(0.0, 1.0, dim=1)).double()
    a = torch.tensor([0.0, 0.5, 0.5 + 1e-12, 1.0], dtype=torch.float64).reshape(1, 4, 1)
    y = torch.full((1, 1), 0.5, dtype=torch.float64)
    total = _squares(task, task.terms(y.unsqueeze(1), a), a).sum().item()
    assert total == pytest.approx(2 * 2 * 10.0**2 / 1.0)


# ---- the unit


def long_tailed(n, seed):
    rng = torch.Generator().manual_seed(seed)
    return torch.rand(n, 1, generator=rng, dtype=torch.float64) ** (-1 / 1.5)


def shortage(upper=10.0):
    def terms(y, a):
        return 20 * (y - a).clamp(min=0) + 5 * (a - y).clamp(min=0)

    return SeparableTask(terms, Box(0.0, upper, dim=1), convex=True).double()


@pytest.mark.parametrize("n", [7, LABELS, 3 * LABELS + 5])
def test_the_unit_is_the_loss_of_nothing_over_the_labels(n):
    task, y = shortage(), long_tailed(n, 0)
    a = Slopes().actions(task, 1, 20, torch.Generator().manual_seed(0))
    some = y[:: max(1, n // LABELS)]
    squares = [
        (task.terms(label, a[0]).diff(dim=0).square() / a[0].diff(dim=0).clamp(min=0.25)).mean()
        for label in some
    ]
    assert Slopes().unit(task, y, a).item() == pytest.approx(float(np.mean(squares)), rel=1e-9)
    assert len(some) < 1.5 * LABELS


def test_the_unit_of_a_cost_of_nothing_is_not_nothing():
    task = SeparableTask(lambda y, a: 0 * (y - a), Box(0.0, 1.0, dim=1)).double()
    a = Slopes().actions(task, 1, 20, torch.Generator().manual_seed(0))
    assert Slopes().unit(task, long_tailed(9, 0), a).item() > 0


def test_the_unit_of_the_fit_is_one_number_from_all_training_labels(tiny, monkeypatch):
    seen, real = [], Slopes.unit
    monkeypatch.setattr(
        Slopes, "unit", lambda t, task, y, a: seen.append(y) or real(t, task, y, a)
    )
    x, y = torch.rand(80, 2), long_tailed(80, 0).float()
    task = shortage().to(torch.float32)
    tiny(task, {"epochs": 3, "batch_size": 8}).fit(x[:60], y[:60], val=(x[60:], y[60:]))
    assert len(seen) == 2  # of the cost and of the outcomes, whatever the number of batches
    assert all(torch.equal(labels, y[:60]) for labels in seen)


def best_constant(y, weights):
    """argmin of the weighted mean of the cost above: the weighted 0.8 quantile."""
    order = y.argsort()
    share = weights[order].cumsum(0) / weights.sum()
    return float(y[order][int((share < 0.8).sum())])


@pytest.mark.parametrize("seed", range(4))
def test_one_unit_for_all_batches_leaves_the_best_order_unbiased(seed):
    # a divisor of each batch would weigh batches with large demand less, and orders would be low
    task, y = shortage(), long_tailed(64 * 500, seed)
    truth = 5 ** (2 / 3)
    a = Slopes().actions(task, 1, 100, torch.Generator().manual_seed(0))
    batches = y.split(64)
    slopes = torch.stack([Slopes().unit(task, batch, a) for batch in batches])
    spread = torch.stack([task.cost(batch[:, None], a).std(0).mean() ** 2 for batch in batches])
    fixed = best_constant(y[:, 0], torch.ones(len(y)))
    by_slopes, by_spread = (
        best_constant(y[:, 0], (1 / size).repeat_interleave(64)) for size in (slopes, spread)
    )
    assert fixed == pytest.approx(truth, abs=0.06)
    assert by_slopes < fixed
    assert by_spread < fixed - 0.1
    # these orders are those of the minimisers of the two losses
    law = Scenarios(torch.full((1, 1000), 1e-3).double(), y[None, :1000])
    each = 1 / slopes[:16].repeat_interleave(64)[:1000]
    low = Scenarios((each / each.sum())[None], y[None, :1000])
    losses = [
        [
            sum(
                float(Slopes().loss(ExpectedCost(task, Scenarios(s.weights.expand(len(part), -1),
                                                                 s.values)), part, a))
                * len(part) / float(unit)
                for part, unit in zip(y[:1000].split(64), units, strict=True)
            )
            for s in (law, low)
        ]
        for units in (torch.ones(16), slopes[:16])
    ]  # fmt: skip
    assert losses[0][0] < losses[0][1]
    assert losses[1][1] < losses[1][0]


# ---- what the loss bounds


def test_the_root_of_the_loss_bounds_the_regret_in_one_coordinate():
    rng = np.random.default_rng(0)
    tight = 0.0
    for _ in range(50):
        S = rng.integers(1, 6)
        under, over = rng.uniform(0.5, 10, 2)

        def terms(y, a, under=under, over=over):
            return under * (y - a).clamp(min=0) + over * (a - y).clamp(min=0)

        task = SeparableTask(terms, Box(0.0, 1.0, dim=1), convex=True).double()
        laws = []
        for _ in range(2):
            w, v = rng.dirichlet(np.ones(S)), rng.uniform(-0.2, 1.2, S)
            law = Scenarios(torch.tensor(w)[None], torch.tensor(v)[None, :, None])
            laws.append(ExpectedCost(task, law))
        f, g = laws
        best, taken = (
            Separable().minimise(cost, task.feasible, 1).action.reshape(1, 1, 1) for cost in (f, g)
        )
        regret = float(f(taken) - f(best))
        knots = torch.cat([f.scenarios.values[0, :, 0], g.scenarios.values[0, :, 0]]).clamp(0, 1)
        a = torch.cat([torch.tensor([0.0, 1.0]).double(), knots]).unique().reshape(1, -1, 1)
        apart = a.diff(dim=1)[0, :, 0]
        norm = float(((f(a) - g(a)).diff(dim=1)[0].square() / apart).sum().sqrt())
        bound = float((taken - best).abs().sqrt()) * norm
        assert -1e-6 <= regret <= bound + 1e-5
        tight = max(tight, regret / max(bound, 1e-9))
    assert tight > 0.5  # the bound is no empty one


def test_slopes_need_two_actions():
    task = SeparableTask(terms, Box(-2.0, 2.0, dim=2))
    with pytest.raises(ValueError, match="need at least 2, but got actions=1"):
        DF2(task, actions=1)
    DF2(task, actions=1, target=Costs())
