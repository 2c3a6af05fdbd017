import os
import shutil
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import sparse

from costscape.problems import generated_mobility, mobility, trip_weeks
from costscape.problems.vaccine_doses.gravity_model import gravity_trips, wave_cases
from costscape.problems.vaccine_doses.prefectures import PREFECTURES, distances, land_borders

REAL = Path(os.environ.get("COSTSCAPE_DATA") or "/nowhere") / "mobility"
real = pytest.mark.skipif(not REAL.is_dir(), reason="COSTSCAPE_DATA has no mobility files")
NAMES = [p.name for p in PREFECTURES]


@pytest.fixture(autouse=True)
def no_data_of_this_machine(monkeypatch, tmp_path):
    monkeypatch.delenv("COSTSCAPE_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def made():
    return generated_mobility()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The four files, in the public form, with other numbers; never changed by a test."""
    folder = tmp_path_factory.mktemp("mobility")
    rng = np.random.default_rng(0)
    trips = rng.poisson(0.3, (1155, 47, 47)) + 5 * np.eye(47, dtype=np.int64)
    sparse.save_npz(
        folder / "od_day20180101_20210228.npz", sparse.csc_matrix(trips.reshape(1155, -1))
    )
    np.save(folder / "adjacency_matrix.npy", land_borders().astype(np.int32))
    people = [f"{i + 1},{n},{1000 + i}" for i, n in enumerate(NAMES)]
    write(folder / "pref_population_2015.csv", ["gid,ken,population", *people, ""])
    start = np.datetime64("2020-01-16")
    days = [(start + d).item() for d in range(60)]
    cases = [
        ",".join([f"{d.year}-{d.month}-{d.day}", *(str(k * t) for k in range(47))])
        for t, d in enumerate(days)
    ]
    write(folder / "acc_infection_num.csv", [",".join(["Day", *NAMES]), *cases])
    return folder, trips


@pytest.fixture
def folder(whole, tmp_path):
    return Path(shutil.copytree(whole[0], tmp_path / "copy"))


def write(path, lines):
    path.write_text("\n".join([*lines, ""]))


def parts(data):
    return (data.splits.train, data.splits.val, data.splits.test)


def test_shapes_types_and_sizes(made):
    # 334 days give 321 pairs, cut at 205 and 257, 13 dropped before each cut
    assert [len(p) for p in parts(made)] == [192, 39, 64]
    for part in parts(made):
        assert part.x.shape[1:] == part.y.shape[1:] == (7, 47, 47)
        assert part.x.dtype == part.y.dtype == torch.float32
    assert made.population.dtype == made.cases.dtype == torch.float64
    assert made.adjacency.dtype == torch.float32
    assert made.cases.shape == (len(made.case_dates), 47)


def test_x_is_the_logarithm_of_last_week_and_y_the_shares_of_the_next(made):
    trips, days = gravity_trips(0)
    for part in parts(made):
        for n in (0, len(part) - 1):
            t = int((part.dates[n] - days[0]).astype(int))
            np.testing.assert_allclose(part.x[n], np.log1p(trips[t - 7 : t]), rtol=1e-6)
            for d, i, j in ((0, 12, 13), (6, 13, 12), (3, 5, 5)):
                share = 0 if i == j else trips[t + d, i, j] / trips[t + d, i].sum()
                assert float(part.y[n, d, i, j]) == pytest.approx(share, rel=1e-6)


def test_shares_have_a_zero_diagonal_and_leave_somebody_at_home(made):
    for part in parts(made):
        assert (part.y.diagonal(dim1=-2, dim2=-1) == 0).all()
        assert part.y.min() >= 0
        assert part.y.sum(-1).max() < 1


def test_no_day_is_in_two_parts(made):
    day = np.timedelta64(1, "D")
    for early, late in pairwise(parts(made)):
        assert (late.dates[0] - 7 * day) - (early.dates[-1] + 6 * day) == day


def test_a_day_without_trips_is_named():
    trips = np.ones((100, 3, 3), np.int64)
    trips[41, 2] = 0
    with pytest.raises(ValueError, match="on 2020-02-11 number 3 has none"):
        trip_weeks(trips, np.datetime64("2020-01-01") + np.arange(100))


def test_what_is_generated_says_so_and_is_the_stand_in(made):
    assert made.source.startswith("GENERATED")
    assert "not real data" in made.source
    assert "seed 3" in generated_mobility(seed=3).source
    stand_in = mobility()
    assert stand_in.source == made.source
    assert torch.equal(stand_in.splits.test.y, made.splits.test.y)


def test_the_same_seed_gives_the_same_bits_and_another_seed_others():
    for make in (gravity_trips, wave_cases):
        one, days = make(1)
        assert np.array_equal(one, make(1)[0])
        assert not np.array_equal(one, make(2)[0])
        assert one.dtype == np.int64
        assert (np.diff(days).astype(int) == 1).all()


def test_generated_trips_have_gravity_a_week_and_an_emergency():
    trips, days = gravity_trips(0)
    away = trips * ~np.eye(47, dtype=bool)
    share = away.sum(2) / trips.sum(2)
    assert 0.035 < share.mean() < 0.055
    # gravity: the logarithm of trips follows those of both populations and of the distance
    i, j = np.nonzero(away.sum(0) > 500)
    people = np.log([p.population for p in PREFECTURES])
    terms = np.stack([people[i], people[j], np.log(distances()[i, j] + 20), np.ones(len(i))], 1)
    slopes = np.linalg.lstsq(terms, np.log(away.sum(0)[i, j]), rcond=None)[0]
    np.testing.assert_allclose(slopes[:3], [1, 1, -2], atol=0.2)
    autumn = (days >= np.datetime64("2020-10-01")) & (days < np.datetime64("2020-12-01"))
    weekday = np.array([d.item().weekday() for d in days])
    commuters = away[:, 10, 12]  # Saitama to Tokyo
    weekend = commuters[autumn & (weekday >= 5)].mean()
    assert weekend < 0.85 * commuters[autumn & (weekday < 5)].mean()
    spring = (days >= np.datetime64("2020-04-15")) & (days < np.datetime64("2020-05-20"))
    assert away[spring].sum((1, 2)).mean() < 0.75 * away[autumn].sum((1, 2)).mean()


def test_generated_cases_grow_and_leave_no_place_untouched(made):
    assert (made.cases.diff(dim=0) >= 0).all()
    assert (made.cases == made.cases.round()).all()
    at = int((np.datetime64("2021-01-08") - made.case_dates[0]).astype(int))
    assert ((made.cases[at] - made.cases[at - 10]) > 0).all()
    assert made.case_dates[0] == np.datetime64("2020-01-16")
    assert made.case_dates[-1] == np.datetime64("2021-04-06")
    assert (made.cases[-1] < 0.05 * made.population).all()


def test_files_are_read_as_they_say(whole):
    folder, trips = whole
    data = mobility(folder)
    expected = trip_weeks(trips[-334:], np.datetime64("2020-04-01") + np.arange(334))
    assert torch.equal(data.splits.test.x, expected.test.x)
    assert torch.equal(data.splits.test.y, expected.test.y)
    assert data.splits.train.dates[0] == np.datetime64("2020-04-08")
    assert data.population.tolist() == list(range(1000, 1047))
    assert np.array_equal(data.adjacency, land_borders())
    assert data.cases[59].tolist() == [59 * k for k in range(47)]
    assert data.case_dates[59] == np.datetime64("2020-03-15")
    assert "NOT the known public file: od_day20180101_20210228.npz, acc_" in data.source


def test_files_are_found_in_the_cache_and_before_it_in_the_named_folder(
    whole, monkeypatch, tmp_path
):
    shutil.copytree(whole[0], tmp_path / "cache" / "costscape" / "mobility")
    assert mobility().population[0] == 1000
    named = Path(shutil.copytree(whole[0], tmp_path / "data" / "mobility"))
    people = named / "pref_population_2015.csv"
    people.write_text(people.read_text().replace(",1000\n", ",2000\n"))
    monkeypatch.setenv("COSTSCAPE_DATA", str(tmp_path / "data"))
    assert mobility().population[0] == 2000


@pytest.mark.parametrize("name", ["od_day20180101_20210228.npz", "adjacency_matrix.npy"])
@pytest.mark.parametrize(
    "spoil", [lambda b: b[: len(b) // 2], lambda b: b"", lambda b: b"no array at all"]
)
def test_a_broken_array_is_a_sentence(folder, name, spoil):
    path = folder / name
    path.write_bytes(spoil(path.read_bytes()))
    with pytest.raises(ValueError, match=f"{name} is not a whole .* Download it again"):
        mobility(folder)


def test_flipped_bytes_in_the_trips_are_a_sentence(folder):
    path = folder / "od_day20180101_20210228.npz"
    data = bytearray(path.read_bytes())
    for i in range(len(data) // 2, len(data) // 2 + 50):
        data[i] ^= 255
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"not a whole file"):
        mobility(folder)


def save_trips(folder, trips):
    sparse.save_npz(folder / "od_day20180101_20210228.npz", sparse.csc_matrix(trips))


def test_trips_of_another_shape_or_kind_are_refused_by_their_row(folder):
    save_trips(folder, np.ones((1154, 2209), np.int64))
    with pytest.raises(ValueError, match=r"each of the 1155 days .* has \(1154, 2209\)"):
        mobility(folder)
    for bad in (-1.0, 0.5, float("nan")):
        trips = np.ones((1155, 2209))
        trips[900, 7] = bad
        save_trips(folder, trips)
        with pytest.raises(ValueError, match=f"row 900 .2020-06-19. has {bad:g}"):
            mobility(folder)


def test_borders_that_are_none_are_refused(folder):
    for bad in (np.zeros((46, 46)), 2 * np.ones((47, 47)), np.triu(np.ones((47, 47)))):
        np.save(folder / "adjacency_matrix.npy", bad)
        with pytest.raises(ValueError, match="needs a symmetric"):
            mobility(folder)


def swap(lines):
    lines[20], lines[21] = lines[21], lines[20]
    return lines


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("acc_infection_num.csv", swap, "line 21 has '2020-2-5' after '2020-2-3'"),
        ("acc_infection_num.csv", lambda s: s[:20] + s[21:], "line 21 has '2020-2-5'"),
        (
            "acc_infection_num.csv",
            lambda s: [*s[:20], s[20].replace(",19,", ",3,"), *s[21:]],
            "never fall, but line 21 has -15",
        ),
        (
            "acc_infection_num.csv",
            lambda s: [s[0].replace("Tokyo", "Edo"), *s[1:]],
            "'Tokyo'. are missing",
        ),
        ("acc_infection_num.csv", lambda s: [*s[:-1], s[-1][:30]], "line 61 has"),
        ("pref_population_2015.csv", swap, "1 to 47 in column 'gid', in order"),
        ("pref_population_2015.csv", lambda s: s[:-1], "has 46 rows from 1 to 46"),
        (
            "pref_population_2015.csv",
            lambda s: [*s[:9], "9,Tochigi,0", *s[10:]],
            "inhabitants in every prefecture, but line 10 has 0",
        ),
    ],
)
def test_a_spoilt_table_is_refused_by_its_line(folder, name, change, message):
    lines = [line for line in (folder / name).read_text().splitlines() if line]
    write(folder / name, change(lines))
    with pytest.raises(ValueError, match=message):
        mobility(folder)


@real
def test_the_public_files_are_known_and_have_the_shares_of_the_specification():
    data = mobility(REAL)
    assert data.source == (
        "trips between 47 Japanese prefectures, 2020-04-01 to 2021-02-28, the known public files"
    )
    assert [len(p) for p in parts(data)] == [192, 39, 64]
    shares = torch.cat([p.y for p in parts(data)]).sum(-1)
    assert float(shares.mean()) == pytest.approx(0.046, abs=0.002)
    assert data.case_dates[0] == np.datetime64("2020-01-16")
    assert data.case_dates[-1] == np.datetime64("2021-04-06")


@real
def test_carried_populations_and_borders_are_those_of_the_public_files(made):
    data = mobility(REAL)
    assert torch.equal(data.population, made.population)
    assert torch.equal(data.adjacency, made.adjacency)
    assert np.array_equal(data.case_dates, made.case_dates)


@real
def test_generated_shares_resemble_the_real_ones(made):
    here, there = (d.splits.train.y.double().mean((0, 1)) for d in (made, mobility(REAL)))
    both = (here > 0) & (there > 0)
    logs = torch.stack([here[both].log(), there[both].log()])
    assert torch.corrcoef(logs)[0, 1] > 0.8
