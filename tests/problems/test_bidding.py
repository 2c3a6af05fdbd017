import pickle

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from costscape import NearestNeighbours
from costscape.checks import check_task
from costscape.problems import inventory, profit, wind_bidding
from costscape.problems.wind_bids.bidding import wind_bidding_with_reserve

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


def both(a, r, y, **prices):
    """The cost of one hour with its reserve, holding included."""
    task = wind_bidding_with_reserve(hours=1, **prices)
    return float(task.cost(torch.tensor([y], dtype=D), torch.tensor([a, r], dtype=D)))


@given(y=st.floats(-0.5, 4.5), a=st.floats(0, 4), r=st.floats(0.15, 4))
@settings(deadline=None, max_examples=200)
def test_the_cost_of_bid_and_reserve_is_the_definition(y, a, r):
    if abs(a - r - y) > 1e-9:  # at the step itself rounding decides
        expected = by_the_book(y, a, r) + 20 * r
        assert both(a, r, y) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("r", [0.25, 1.0])
def test_the_fine_steps_where_the_decided_reserve_runs_out(r):
    e = 1e-9
    held = 20 * r
    assert both(1 + r, r, 1.0) == 110 * r + held  # binary fractions: the edge itself is safe
    assert both(1 + r + e, r, 1.0) == pytest.approx(110 * r + 10 + held, abs=1e-6)
    assert both(1 + r, r - e, 1.0) == pytest.approx(110 * r + 10 + held, abs=1e-6)
    assert both(1 + r + e, r, 1.0, fine=0.0) == pytest.approx(110 * r + held, abs=1e-6)


@pytest.mark.parametrize(
    ("short", "by_bid", "by_reserve"),
    [
        (-0.1, -20.0, 20.0),
        (0.1, 110.0, 20.0),
        (0.4, 110.0, 20.0),
        # the reserve of 0.5 is short by 0.1 and by 0.5: 200 + 200 over, and 20 + 110 less that
        (0.6, 220.0, -90.0),
        (1.0, 300.0, -170.0),
    ],
)
def test_slopes_in_bid_and_reserve_on_both_sides_of_each_kink(short, by_bid, by_reserve):
    a = torch.tensor([1.0 + short, 0.5], dtype=D, requires_grad=True)
    cost = wind_bidding_with_reserve(hours=1).cost(torch.tensor([1.0], dtype=D), a)
    slope = torch.autograd.grad(cost, a)[0]
    torch.testing.assert_close(slope, torch.tensor([by_bid, by_reserve], dtype=D))


def test_with_equal_reserves_the_two_tasks_differ_by_the_holding():
    rng = torch.Generator().manual_seed(0)
    y, a = (4 * torch.rand(40, 12, generator=rng, dtype=D) for _ in range(2))
    plain, wide = wind_bidding(reserve=0.4), wind_bidding_with_reserve(holding=7.0)
    pair = torch.cat([a, torch.full_like(a, 0.4)], -1)
    torch.testing.assert_close(wide.cost(y, pair), plain.cost(y, a) + 12 * 7.0 * 0.4)
    torch.testing.assert_close(profit(wide, y, pair), profit(plain, y, a, holding=7.0))


@pytest.mark.parametrize(
    "prices",
    [
        {},
        {"holding": 2.0},
        {"holding": 150.0, "up_squared": 400.0, "fine": 0.0},
        {"holding": 150.0, "up_squared": 0.0},
        {"fine": 60.0, "holding": 150.0},
        {"reserve_min": 0.0, "reserve_max": 0.3},
    ],
    ids=["paper", "cheap", "leaves-some", "linear", "fine", "narrow"],
)
def test_no_pair_of_a_grid_beats_the_hindsight_pair(prices):
    task = wind_bidding_with_reserve(hours=1, **prices)
    y = torch.linspace(-0.9, 4.6, 111, dtype=D).unsqueeze(-1)
    a = task.hindsight(y)
    assert task.feasible.contains(a).all()
    lower, upper = (v.double() for v in task.feasible.bounds)
    ends = [
        torch.linspace(float(l), float(u), 161, dtype=D) for l, u in zip(lower, upper, strict=True)
    ]
    grid = torch.cartesian_prod(*ends).unsqueeze(1)
    assert (task.cost(y, a) <= task.cost(y, grid).min(0).values + 1e-6).all()


def test_a_reserve_beyond_the_least_pays_in_hindsight_only_where_the_plant_draws_energy():
    task = wind_bidding_with_reserve(hours=3)
    a = task.hindsight(torch.tensor([-0.5, 0.7, 5.0]))
    torch.testing.assert_close(a, torch.tensor([0.0, 0.7, 4.0, 0.5, 0.15, 0.15]))


def least_costs(seed, **prices):
    """Best mean cost on a grid of pairs, and the best with the reserve at its least.

    The grid is made of kinks and steps of a random discrete law, where the optima are: bids at
    outcomes and at outcomes plus the reserve.
    """
    rng = torch.Generator().manual_seed(seed)
    y = (4 * torch.rand(6, generator=rng, dtype=D) ** 2).mul(64).round().div(64)
    w = -torch.rand(6, generator=rng, dtype=D).log()
    task = wind_bidding_with_reserve(hours=1, reserve_min=0.125, reserve_max=4.0, **prices)
    gaps = (y[:, None] - y).flatten()
    reserves = torch.cat([torch.linspace(0.125, 4, 63, dtype=D), gaps[gaps > 0.125]]).unique()
    bids = torch.cat([torch.linspace(0, 4, 257, dtype=D), y])
    on_edge = (y[:, None] + reserves).flatten()
    bids = torch.cat([bids, on_edge[on_edge <= 4]]).unique()
    pairs = torch.cartesian_prod(bids, reserves)
    mean = (task.cost(y[:, None, None], pairs) * (w / w.sum())[:, None]).sum(0)
    return float(mean.min()), float(mean[pairs[:, 1] == 0.125].min())


@pytest.mark.parametrize("seed", range(12))
def test_the_least_reserve_is_optimal_at_the_papers_prices(seed):
    best, least = least_costs(seed)
    assert least == pytest.approx(best, rel=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_where_holding_is_cheaper_than_the_discount_more_reserve_can_pay(seed):
    # the condition of the claim is holding >= down; it fails here
    best, least = least_costs(seed, holding=1.0, down=60.0, deploy=30.0)
    assert best < 0.99 * least


@pytest.mark.parametrize("seed", range(6))
def test_at_the_border_of_the_claim_the_least_reserve_is_still_optimal(seed):
    best, least = least_costs(seed, holding=60.0, down=60.0, deploy=30.0)
    assert least == pytest.approx(best, rel=1e-12)


def test_the_cost_is_a_sum_over_the_bid_and_the_bid_less_the_reserve():
    task = wind_bidding_with_reserve(hours=1, holding=5.0)
    rng = torch.Generator().manual_seed(0)
    y, a, b = (4 * torch.rand(300, 1, generator=rng, dtype=D) for _ in range(3))
    a, b = torch.maximum(a, b), torch.minimum(a, b)
    first = 5 * a + 110 * (a - y).relu() + 20 * (y - a).relu()
    second = -5 * b + 90 * (b - y).relu() + 100 * (b - y).relu() ** 2 + 10 * (b > y)
    cost = task.cost(y, torch.cat([a, a - b], -1))
    torch.testing.assert_close(cost, (first + second)[:, 0])


def test_the_closed_form_of_the_reserve_task_is_the_mean_over_draws():
    task = wind_bidding_with_reserve(hours=2)
    m, s = torch.tensor([1.0, 2.0], dtype=D), torch.tensor([0.5, 0.8], dtype=D)
    a = torch.tensor([1.2, 2.5, 0.3, 0.6], dtype=D)
    # the quantiles of an even grid of probabilities
    z = torch.special.ndtri((torch.arange(200_000, dtype=D) + 0.5) / 200_000)
    mean = task.cost(m + s * z[:, None], a).mean()
    assert float(task.normal(m, s, a)) == pytest.approx(float(mean), rel=1e-4)


def test_the_reserve_task_keeps_its_contract_and_survives_pickling():
    task = wind_bidding_with_reserve(hours=3)
    y = 4 * torch.rand(6, 3, generator=torch.Generator().manual_seed(0))
    check_task(task, y)
    check_task(wind_bidding_with_reserve(hours=3, holding=1.0).double(), y)
    copy = pickle.loads(pickle.dumps(task))
    assert torch.equal(copy.hindsight(y), task.hindsight(y))
    lower, upper = wind_bidding_with_reserve().feasible.bounds
    torch.testing.assert_close(lower, torch.tensor([0.0] * 12 + [0.15] * 12))
    assert upper.tolist() == [4.0] * 24


def test_neighbours_decide_bids_and_reserves_close_to_the_best_of_a_grid():
    rng = torch.Generator().manual_seed(0)
    y = 3 * torch.rand(60, 1, generator=rng) ** 2
    task = wind_bidding_with_reserve(hours=1, holding=1.0, down=60.0, deploy=30.0)
    x = torch.rand(60, 2)
    model = NearestNeighbours(task, k=60).fit(x, y, val=(x, y))
    a = model.decide(x[:1])
    ends = torch.linspace(0, 4, 321), torch.linspace(0.15, 4, 321)
    mean = task.cost(y, torch.cartesian_prod(*ends).unsqueeze(1)).mean(-1)
    assert float(a[0, 1]) > 0.3
    assert float(task.cost(y, a).mean()) <= 1.01 * float(mean.min())


def test_holding_is_told_once_and_ends_of_the_reserve_in_order():
    task = wind_bidding_with_reserve(hours=1)
    with pytest.raises(
        ValueError, match=r"pays for holding in its cost, at 20, but got holding=5"
    ):
        profit(task, torch.ones(1), torch.ones(2), holding=5.0)
    with pytest.raises(ValueError, match="needs 0 <= reserve_min <= reserve_max, but got 1"):
        wind_bidding_with_reserve(reserve_min=1.0, reserve_max=0.5)
    with pytest.raises(ValueError, match="finite prices >= 0, but holding is -1"):
        wind_bidding_with_reserve(holding=-1.0)


def test_hindsight_is_within_the_bounds_as_rounded_to_single_precision():
    task = wind_bidding(cap=3.3).double()
    a = task.hindsight(torch.full((12,), 5.0, dtype=torch.float64))
    assert task.feasible.violation(a) == 0
