"""The 47 prefectures of Japan, north to south in the order of their official codes.

Populations: census of 1 October 2015, Statistics Bureau of Japan (127,094,726 people). Latitude
and longitude: the prefectural offices, rounded to a tenth of a degree (about 10 km), enough for a
gravity model. Borders: by land; bridges and tunnels to Hokkaido, Shikoku and Kyushu do not count.
Tiles: a map on a grid, rows from north to south and columns from west to east, with neighbours
near each other.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Prefecture:
    """Name, people, degrees north and east, and the tile (row, column) on a map of tiles."""

    name: str
    population: int
    latitude: float
    longitude: float
    tile: tuple[int, int]


_ROWS = """
Hokkaido 5381733 43.1 141.3 0 11; Aomori 1308265 40.8 140.7 1 11
Iwate 1279594 39.7 141.2 2 11; Miyagi 2333899 38.3 140.9 3 11
Akita 1023119 39.7 140.1 2 10; Yamagata 1123891 38.2 140.4 3 10
Fukushima 1914039 37.8 140.5 4 11; Ibaraki 2916976 36.3 140.4 5 12
Tochigi 1974255 36.6 139.9 5 11; Gunma 1973115 36.4 139.1 5 10
Saitama 7266534 35.9 139.6 6 10; Chiba 6222666 35.6 140.1 6 12
Tokyo 13515269 35.7 139.7 6 11; Kanagawa 9126197 35.4 139.6 7 10
Niigata 2304264 37.9 139.0 4 10; Toyama 1066328 36.7 137.2 4 9
Ishikawa 1154008 36.6 136.6 4 8; Fukui 786740 36.1 136.2 5 7
Yamanashi 834930 35.7 138.6 6 9; Nagano 2098804 36.7 138.2 5 9
Gifu 2031903 35.4 136.7 5 8; Shizuoka 3700305 35.0 138.4 7 9
Aichi 7483128 35.2 136.9 6 8; Mie 1815865 34.7 136.5 7 7
Shiga 1412916 35.0 135.9 6 7; Kyoto 2610353 35.0 135.8 5 6
Osaka 8839469 34.7 135.5 6 5; Hyogo 5534800 34.7 135.2 5 5
Nara 1364316 34.7 135.8 6 6; Wakayama 963579 34.2 135.2 7 6
Tottori 573441 35.5 134.2 5 4; Shimane 694352 35.5 133.1 5 3
Okayama 1921525 34.7 133.9 6 4; Hiroshima 2843990 34.4 132.5 6 3
Yamaguchi 1404729 34.2 131.5 6 2; Tokushima 755733 34.1 134.6 9 5
Kagawa 976263 34.3 134.0 8 5; Ehime 1385262 33.8 132.8 8 4
Kochi 728276 33.6 133.5 9 4; Fukuoka 5101556 33.6 130.4 7 1
Saga 832832 33.2 130.3 7 0; Nagasaki 1377187 32.8 129.9 8 0
Kumamoto 1786170 32.8 130.7 8 1; Oita 1166338 33.2 131.6 7 2
Miyazaki 1104069 31.9 131.4 8 2; Kagoshima 1648177 31.6 130.6 9 1
Okinawa 1433566 26.2 127.7 10 0
"""
# each prefecture's neighbours of higher number, counted from 0
# fmt: off
_BORDERS = {
    1: (2, 4), 2: (3, 4), 3: (4, 5, 6), 4: (5,), 5: (6, 14), 6: (7, 8, 9, 14), 7: (8, 10, 11),
    8: (9, 10), 9: (10, 14, 19), 10: (11, 12, 18, 19), 11: (12,), 12: (13, 18), 13: (18, 21),
    14: (15, 19), 15: (16, 19, 20), 16: (17, 20), 17: (20, 24, 25), 18: (19, 21),
    19: (20, 21, 22), 20: (22, 23, 24), 21: (22,), 22: (23,), 23: (24, 25, 28, 29), 24: (25,),
    25: (26, 27, 28), 26: (27, 28, 29), 27: (30, 32), 28: (29,), 30: (31, 32, 33), 31: (33, 34),
    32: (33,), 33: (34,), 35: (36, 37, 38), 36: (37,), 37: (38,), 39: (40, 42, 43), 40: (41,),
    42: (43, 44, 45), 43: (44,), 44: (45,),
}
# fmt: on


def _parse(row: str) -> Prefecture:
    name, population, latitude, longitude, *tile = row.split()
    return Prefecture(
        name, int(population), float(latitude), float(longitude), (int(tile[0]), int(tile[1]))
    )


PREFECTURES = tuple(_parse(row) for row in _ROWS.strip().replace("\n", ";").split(";"))


def land_borders() -> np.ndarray:
    """1 where two prefectures share a border on land, else 0: (47, 47), float32, symmetric."""
    matrix = np.zeros((len(PREFECTURES), len(PREFECTURES)), np.float32)
    for i, neighbours in _BORDERS.items():
        for j in neighbours:
            matrix[i, j] = matrix[j, i] = 1
    return matrix


def distances() -> np.ndarray:
    """Kilometres between the prefectural offices along great circles, (47, 47)."""
    degrees = np.array([(p.latitude, p.longitude) for p in PREFECTURES])
    lat, lon = np.radians(degrees).T
    half = (
        np.sin((lat[:, None] - lat) / 2) ** 2
        + np.cos(lat[:, None]) * np.cos(lat) * np.sin((lon[:, None] - lon) / 2) ** 2
    )
    kilometres: np.ndarray = 2 * 6371 * np.arcsin(np.sqrt(half))
    return kilometres
