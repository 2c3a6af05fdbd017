import numpy as np
import pytest
import torch

from costscape.problems.wind_bids.bids_plot import bids_plot, quantiles

BIDS = [1.0, 2.0, 3.0]
VALUES = np.arange(1.0, 21.0)[:, None] + np.array([0.0, 10.0, 20.0])  # 20 scenarios, 3 hours


def lines(figure):
    return {line.get_label(): line.get_ydata() for line in figure.axes[0].get_lines()}


def bands(figure):
    """Lower and upper ends of each band, hour by hour."""
    found = {}
    for band in figure.axes[0].collections:
        points = band.get_paths()[0].vertices
        found[band.get_label()] = [
            (points[points[:, 0] == i, 1].min(), points[points[:, 0] == i, 1].max())
            for i in range(3)
        ]
    return found


def test_the_bands_hold_the_shares_they_name():
    drawn = bands(bids_plot(BIDS, VALUES))
    # of 20 equal scenarios: the first has 5 %, the 19th with all below 95 %
    assert drawn["5-95 % of scenarios"] == [(1, 19), (11, 29), (21, 39)]
    assert drawn["25-75 % of scenarios"] == [(5, 15), (15, 25), (25, 35)]


def test_lines_are_the_bid_the_median_the_outcome_and_the_bid_less_the_reserve():
    drawn = lines(bids_plot(BIDS, VALUES, None, [0.5, 0.6, 0.7], reserve=[0.1, 0.2, 0.3]))
    assert list(drawn["bid"]) == BIDS
    assert list(drawn["median"]) == [10, 20, 30]
    assert list(drawn["energy made"]) == [0.5, 0.6, 0.7]
    np.testing.assert_allclose(drawn["bid less reserve"], [0.9, 1.8, 2.7])
    one = lines(bids_plot(BIDS, VALUES, reserve=0.5))
    assert list(one["bid less reserve"]) == [0.5, 1.5, 2.5]
    assert "energy made" not in one


def test_weights_move_the_bands():
    w = np.zeros(20)
    w[[2, 17]] = 3.0, 1.0  # need not sum to one
    drawn = bands(bids_plot(BIDS, VALUES, w))
    assert drawn["5-95 % of scenarios"][0] == (3, 18)
    assert drawn["25-75 % of scenarios"][0] == (3, 3)


def test_equal_weights_give_numpys_inverted_distribution():
    y = np.random.default_rng(0).normal(size=(101, 4))
    shares = (0.05, 0.3, 0.5, 0.95)
    expected = np.quantile(y, shares, axis=0, method="inverted_cdf")
    np.testing.assert_array_equal(quantiles(y, np.full(101, 1 / 101), shares), expected)


def test_axes_carry_units_and_hours_and_a_file_is_written(tmp_path):
    path = tmp_path / "new" / "bids.png"
    figure = bids_plot(
        torch.tensor(BIDS, requires_grad=True),
        torch.tensor(VALUES),
        hours=["a", "b", "c"],
        unit="GWh",
        title="Monday",
        path=path,
    )
    axes = figure.axes[0]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("hour", "energy (GWh)")
    assert axes.get_title() == "Monday"
    assert [t.get_text() for t in axes.get_xticklabels()] == ["a", "b", "c"]
    assert path.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"bids": [[1.0]]}, r"needs bids to be one number an hour.*got shape \(1, 1\)"),
        (
            {"values": VALUES[:, :2]},
            r"scenarios by hours, of shape \(any, 3\).*got shape \(20, 2\)",
        ),
        ({"weights": [1.0]}, r"weights to be one number a scenario.*got shape \(1,\)"),
        ({"weights": -np.ones(20)}, "weights that are not negative"),
        ({"outcome": [1.0]}, r"outcome to be one number an hour"),
        ({"reserve": [1.0]}, r"reserve to be a number, or one an hour"),
        ({"hours": ["a"]}, "one of hours for each of the 3 numbers, but got 1"),
        ({"bids": [1.0, np.nan, 2.0]}, "finite numbers, but bids holds nan"),
    ],
    ids=["bids", "values", "weights", "signs", "outcome", "reserve", "hours", "nan"],
)
def test_bad_shapes_get_a_sentence(wrong, sentence):
    with pytest.raises(ValueError, match=sentence):
        bids_plot(**{"bids": BIDS, "values": VALUES} | wrong)


def test_words_are_refused():
    with pytest.raises(
        TypeError, match="bids to be one number an hour, but got a list that is no"
    ):
        bids_plot(["many"], VALUES)
