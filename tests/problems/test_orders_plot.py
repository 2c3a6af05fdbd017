import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from costscape.problems.stock_orders.orders_plot import orders_plot, service_level

ORDERS, DEMAND = [4.0, 2.0, 3.0, 5.0], [3.0, 4.0, 3.0, 0.0]


def bars(figure):
    return {
        group.get_label(): [(b.get_x() + 0.4, b.get_y(), b.get_height()) for b in group]
        for group in figure.axes[0].containers
    }


def test_the_service_by_hand():
    level = service_level(ORDERS, DEMAND)
    assert level.days == 0.75  # short on the second day alone
    assert level.demand == 8 / 10


def test_no_demand_is_all_served():
    assert service_level([1.0, 0.0], [0.0, 0.0]) == (1.0, 1.0)


@given(
    st.lists(st.tuples(st.floats(0, 9), st.floats(0, 9)), min_size=1, max_size=20),
    st.floats(0, 3),
)
def test_ordering_more_never_serves_less(pairs, more):
    a, y = np.array(pairs).T
    before, after = service_level(a, y), service_level(a + more, y)
    assert after.days >= before.days
    assert after.demand >= before.demand - 1e-12
    assert 0 <= before.demand <= 1


def test_bars_are_the_demand_and_steps_are_the_orders():
    figure = orders_plot(ORDERS, DEMAND)
    drawn = bars(figure)
    assert [h for _, _, h in drawn["demand served"]] == [3, 2, 3, 0]
    assert drawn["demand not served"] == [(1, 2, 2)]  # on day 1, from 2 up to 4
    steps = next(p for p in figure.axes[0].patches if p.get_label() == "order").get_data()
    assert list(steps.values) == ORDERS
    assert list(steps.edges) == [-0.5, 0.5, 1.5, 2.5, 3.5]


def test_nothing_short_draws_no_hatch():
    assert set(bars(orders_plot([5.0, 5.0], [1.0, 2.0]))) == {"demand served"}


def test_the_title_tells_the_service_and_axes_carry_units(tmp_path):
    path = tmp_path / "new" / "orders.png"
    figure = orders_plot(
        torch.tensor(ORDERS), torch.tensor(DEMAND), unit="boxes", title="Item 1", path=path
    )
    axes = figure.axes[0]
    assert axes.get_title() == (
        "Item 1\nno shortage on 75 % of 4 days, 80.0 % of the demand served"
    )
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("day", "quantity (boxes)")
    assert path.read_bytes().startswith(b"\x89PNG")


def test_a_long_time_has_few_labels_each_at_its_day():
    days = np.arange("2024-01-01", "2024-03-01", dtype="datetime64[D]")
    axes = orders_plot(np.ones(60), np.ones(60), days=days).axes[0]
    assert len(axes.get_xticks()) <= 15
    told = [t.get_text() for t in axes.get_xticklabels()]
    assert told == [str(days[int(i)]) for i in axes.get_xticks()]


def test_bad_shapes_get_a_sentence():
    with pytest.raises(ValueError, match=r"orders to be one number a day.*got shape \(1, 2\)"):
        orders_plot([[1.0, 2.0]], [1.0, 2.0])
    with pytest.raises(ValueError, match=r"demand to be one number a day.*\(2\), but got shape"):
        orders_plot([1.0, 2.0], [1.0])
    with pytest.raises(ValueError, match="one of days for each of the 2 numbers, but got 1"):
        orders_plot([1.0, 2.0], [1.0, 2.0], days=["Monday"])
    with pytest.raises(ValueError, match="at least 0, but the least are 1 and -2"):
        orders_plot([1.0, 2.0], [1.0, -2.0])
