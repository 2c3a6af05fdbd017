import numpy as np
import pytest

from costscape.problems.vaccine_doses.prefectures import PREFECTURES, distances, land_borders

NAMES = [p.name for p in PREFECTURES]
TILES = {p.name: p.tile for p in PREFECTURES}


def test_names_and_people_are_those_of_japan():
    assert len(set(NAMES)) == 47
    assert sum(p.population for p in PREFECTURES) == 127_094_726
    codes = {1: "Hokkaido", 13: "Tokyo", 23: "Aichi", 27: "Osaka", 40: "Fukuoka", 47: "Okinawa"}
    assert {code: NAMES[code - 1] for code in codes} == codes


def test_islands_have_no_land_border_and_neighbours_are_near():
    borders = land_borders()
    assert np.array_equal(borders, borders.T)
    assert [NAMES[i] for i in np.flatnonzero(~borders.any(1))] == ["Hokkaido", "Okinawa"]
    assert distances()[borders == 1].max() < 250


def test_distances_are_kilometres():
    kilometres = distances()
    assert 380 < kilometres[NAMES.index("Tokyo"), NAMES.index("Osaka")] < 420
    np.testing.assert_allclose(kilometres, kilometres.T)


def test_each_prefecture_has_its_own_tile():
    assert len(set(TILES.values())) == 47


@pytest.mark.parametrize(
    ("north", "south"),
    [("Hokkaido", "Aomori"), ("Niigata", "Nagano"), ("Tokyo", "Kagawa"), ("Fukuoka", "Okinawa")],
)
def test_tiles_of_the_north_are_above(north, south):
    assert TILES[north][0] < TILES[south][0]


@pytest.mark.parametrize(
    ("west", "east"),
    [("Nagasaki", "Oita"), ("Hiroshima", "Osaka"), ("Osaka", "Aichi"), ("Akita", "Iwate")],
)
def test_tiles_of_the_west_are_left(west, east):
    assert TILES[west][1] < TILES[east][1]
