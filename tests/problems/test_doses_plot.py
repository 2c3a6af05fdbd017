import subprocess
import sys

import numpy as np
import pytest
import torch

from costscape.problems.vaccine_doses.doses_plot import doses_plot
from costscape.problems.vaccine_doses.prefectures import PREFECTURES

DOSES = np.random.default_rng(0).uniform(0, 2e6, 47)


def tile(figure, name):
    """The lines written in a tile, and where."""
    found = [t for t in figure.axes[0].texts if t.get_text().split("\n")[0] == name]
    assert len(found) == 1
    return found[0].get_text().split("\n")[1:], found[0].get_position()


def test_47_doses_are_shaded_tiles_in_the_order_of_codes():
    figure = doses_plot(torch.tensor(DOSES))
    shades = figure.axes[0].collections[0]
    np.testing.assert_array_equal(shades.get_array(), DOSES)
    corners = [path.vertices.min(0)[::-1].tolist() for path in shades.get_paths()]
    assert corners == [list(p.tile) for p in PREFECTURES]
    assert figure.axes[1].get_ylabel() == "doses"


def test_a_tile_tells_doses_and_infections_averted():
    doses, averted = np.zeros(47), np.zeros(47)
    doses[[0, 12, 46]] = 1_234_567, 45_000, 7
    averted[[0, 12]] = 1500, 3.25
    figure = doses_plot(doses, averted)
    assert tile(figure, "Hokkaido") == (["1.23M", "(1.5k)"], (11.5, 0.5))
    assert tile(figure, "Tokyo")[0] == ["45k", "(3.2)"]
    assert tile(figure, "Okinawa")[0] == ["7", "(0)"]
    assert "infections averted" in figure.axes[0].get_title()


def test_dark_tiles_have_white_letters():
    doses = np.zeros(47)
    doses[3] = 10.0
    inks = [t.get_color() for t in doses_plot(doses).axes[0].texts]
    assert inks == ["white" if i == 3 else "black" for i in range(47)]


def test_other_regions_are_bars_from_most_to_least():
    figure = doses_plot([10.0, 30.0, 20.0], [1.0, 2.0, 5.0], names=["a", "b", "c"])
    left, right = figure.axes
    assert [bar.get_width() for bar in left.patches] == [30, 20, 10]
    assert [bar.get_width() for bar in right.patches] == [2, 5, 1]
    assert [t.get_text() for t in left.get_yticklabels()] == ["b", "c", "a"]
    assert left.get_ylim()[0] > left.get_ylim()[1]  # the most on top
    assert (left.get_xlabel(), right.get_xlabel()) == ("doses", "infections averted")


def test_47_regions_with_names_of_their_own_are_bars():
    figure = doses_plot(DOSES, names=range(47))
    assert [bar.get_width() for bar in figure.axes[0].patches] == sorted(DOSES, reverse=True)


def test_tiles_may_be_given(tmp_path):
    path = tmp_path / "new" / "doses.png"
    figure = doses_plot([1.0, 2.0], names=["x", "y"], tiles=[(0, 1), (2, 0)], path=path)
    assert tile(figure, "y") == (["2"], (0.5, 2.5))
    assert path.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"doses": [[1.0, 2.0]]}, r"doses to be one number a region.*got shape \(1, 2\)"),
        ({"averted": [1.0]}, r"averted to be one number a region.*got shape \(1,\)"),
        ({"names": ["a"]}, "one of names for each of the 2 numbers, but got 1"),
        ({"tiles": [(0, 0)]}, r"a \(row, column\) for each region, of shape \(2, 2\)"),
        ({"tiles": [(0, 0), (0, 0)]}, "a tile of its own for each region"),
        ({"tiles": [(0, 0), (0, -1)]}, "a tile of its own for each region"),
    ],
    ids=["doses", "averted", "names", "few", "same", "negative"],
)
def test_bad_shapes_get_a_sentence(wrong, sentence):
    with pytest.raises(ValueError, match=sentence):
        doses_plot(**{"doses": [1.0, 2.0]} | wrong)


def test_the_pictures_know_neither_torch_nor_the_screen():
    code = (
        "import sys; from costscape.problems.vaccine_doses.doses_plot import doses_plot; "
        "from costscape.problems.wind_bids.bids_plot import bids_plot; "
        "from costscape.problems.stock_orders.orders_plot import orders_plot; "
        "before = 'matplotlib' in sys.modules; "
        "doses_plot([1.0]); bids_plot([1.0], [[1.0]]); orders_plot([1.0], [1.0]); "
        "print(before, {'torch', 'matplotlib.pyplot'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "False set()", done.stderr
