import pickle

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from costscape.tasks import inventory, profit, wind_bidding

D = torch.float64


def one(a, y, **prices):
    """The cost of one hour."""
    task = wind_bidding(hours=1, **prices)
    return float(task.cost(torch.tensor([y], dtype=D), torch.tensor([a], dtype=D)))


def by_the_book(y, a, r=0.15):
    """The definition, case by case."""
    if a - r - y > 0:
        over = a - r - y
        return 200 * over + 100 * over**2 + 110 * r + 10
    if y <= a:
        return 110 * (a - y)
    return 20 * (y - a)


def test_numbers_by_hand():
    # bid 2, reserve 0.15, made 1: over = 0.85
    assert one(2.0, 1.0) == pytest.approx(200 * 0.85 + 100 * 0.85**2 + 110 * 0.15 + 10)
    assert one(2.0, 1.9) == pytest.approx(11.0)
    assert one(2.0, 3.0) == pytest.approx(20.0)
    assert one(2.0, 2.0) == 0.0


@given(y=st.floats(-0.5, 4.5), a=st.floats(0, 4))
@settings(deadline=None, max_examples=200)
def test_the_cost_is_the_definition(y, a):
    if abs(a - 0.15 - y) > 1e-9:  # at the step itself rounding decides
        assert one(a, y) == pytest.approx(by_the_book(y, a), rel=1e-9, abs=1e-9)


def test_the_step_of_the_fine_stands_where_the_reserve_runs_out():
    e = 1e-9
    edge = 1.0 + 0.15
    assert one(edge - e, 1.0) == pytest.approx(16.5, abs=1e-6)
    assert one(edge + e, 1.0) == pytest.approx(26.5, abs=1e-6)
    # no step without a fine
    assert one(edge + e, 1.0, fine=0.0) == pytest.approx(16.5, abs=1e-6)


def test_at_the_edge_itself_the_reserve_still_suffices():
    # numbers that binary fractions hold, so that over is exactly 0
    assert one(1.25, 1.0, reserve=0.25) == 110 * 0.25


@pytest.mark.parametrize(
    ("short", "left", "right"), [(0.0, -20.0, 110.0), (0.15, 110.0, 200.0), (0.65, 300.0, 300.0)]
)
def test_slopes_on_both_sides_of_each_kink(short, left, right):
    a, e = 1.0 + short, 1e-6

    def slope(b):
        bid = torch.tensor([b], dtype=D, requires_grad=True)
        cost = wind_bidding(hours=1).cost(torch.tensor([1.0], dtype=D), bid)
        return float(torch.autograd.grad(cost, bid)[0])

    assert slope(a - e) == pytest.approx(left, abs=1e-3)
    assert slope(a + e) == pytest.approx(right, abs=1e-3)


def test_hindsight_is_not_beaten_by_brute_force():
    task = wind_bidding(hours=1)
    y = torch.linspace(-0.3, 4.6, 99, dtype=D).unsqueeze(-1)
    a = task.hindsight(y)
    assert task.feasible.contains(a).all()
    grid = torch.linspace(0, 4, 8001, dtype=D).view(-1, 1, 1)
    assert (task.cost(y, a) <= task.cost(y, grid).min(0).values + 1e-9).all()


def test_hindsight_of_energy_within_the_bids_costs_nothing():
    y = 4 * torch.rand(50, 12, generator=torch.Generator().manual_seed(0))
    task = wind_bidding()
    assert task.cost(y, task.hindsight(y)).abs().max() == 0


def test_the_cost_is_not_convex_and_does_not_say_so():
    assert not wind_bidding().convex
    # across the step, the middle costs more than the mean of the ends
    middle, ends = one(1.1500001, 1.0), (one(1.1, 1.0), one(1.2000002, 1.0))
    assert middle > sum(ends) / 2


def test_batches_broadcast_and_terms_are_the_hours():
    task = wind_bidding(hours=3)
    y, a = 4 * torch.rand(4, 1, 3), 4 * torch.rand(1, 5, 3)
    assert task.terms(y, a).shape == (4, 5, 3)
    torch.testing.assert_close(task.terms(y, a).sum(-1), task.cost(y, a))
    torch.testing.assert_close(task.cost(y, a)[2, 3], task.cost(y[2, 0], a[0, 3]))


def test_defaults_are_the_papers():
    lower, upper = wind_bidding().feasible.bounds
    assert lower.tolist() == [0.0] * 12
    assert upper.tolist() == [4.0] * 12


def test_profit_in_each_of_the_three_cases():
    task = wind_bidding(hours=1)
    y = torch.tensor([[1.0], [1.9], [3.0]], dtype=D)
    a = torch.full((3, 1), 2.0, dtype=D)
    # P y - nu a_R, less the three penalties
    expected = [
        100 * 1.0 - 20 * 0.15 - (200 * 0.85 + 100 * 0.85**2 + 110 * 0.15 + 10),
        100 * 1.9 - 20 * 0.15 - 110 * 0.1,
        100 * 3.0 - 20 * 0.15 - 20 * 1.0,
    ]
    torch.testing.assert_close(profit(task, y, a), torch.tensor(expected, dtype=D))


def test_profit_counts_every_hour_and_its_prices_are_parameters():
    task = wind_bidding(hours=12, reserve=0.5)
    y = torch.ones(2, 12, dtype=D)
    earned = profit(task, y, y, price=50.0, holding=4.0)
    torch.testing.assert_close(earned, torch.full((2,), 12 * (50.0 - 4.0 * 0.5), dtype=D))


def test_profits_differ_by_the_costs():
    task = wind_bidding()
    rng = torch.Generator().manual_seed(1)
    y, a, b = (4 * torch.rand(30, 12, generator=rng, dtype=D) for _ in range(3))
    earned = profit(task, y, a) - profit(task, y, b)
    torch.testing.assert_close(earned, task.cost(y, b) - task.cost(y, a))


def test_more_reserve_never_earns_more_at_the_best_bid():
    # skewed energy, as wind is: many still hours and a few strong ones
    y = 4 * torch.rand(2000, 1, generator=torch.Generator().manual_seed(0), dtype=D) ** 3
    bids = torch.linspace(0, 4, 401, dtype=D).view(-1, 1, 1)
    best = [
        float(profit(wind_bidding(hours=1, reserve=r), y, bids).mean(1).max())
        for r in (0.15, 0.2, 0.4, 0.8, 1.6)
    ]
    assert best == sorted(best, reverse=True)
    assert best[0] > best[1]


def test_profit_of_another_task_is_refused():
    with pytest.raises(TypeError, match="needs a task made by wind_bidding"):
        profit(inventory(), torch.zeros(7), torch.zeros(7))


def test_a_pickled_task_costs_the_same():
    task = wind_bidding(hours=2, fine=3.0)
    copy = pickle.loads(pickle.dumps(task))
    y, a = 4 * torch.rand(5, 2), 4 * torch.rand(5, 2)
    assert torch.equal(copy.cost(y, a), task.cost(y, a))
    assert torch.equal(copy.hindsight(y), task.hindsight(y))


def test_a_negative_reserve_or_price_is_refused():
    with pytest.raises(ValueError, match=r"finite prices >= 0, but reserve is -0\.1"):
        wind_bidding(reserve=-0.1)
    with pytest.raises(ValueError, match="but down is nan"):
        wind_bidding(down=float("nan"))
