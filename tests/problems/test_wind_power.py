import gzip
import hashlib
import os
import re
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pytest
import torch

from costscape.problems import bidding_windows, wind, wind_farm
from costscape.problems.wind_bids.wind_power import LA_HAUTE_BORNE, UNIT
from costscape.problems.wind_bids.wind_recipe import wind_farm_bidding, wind_power


@pytest.fixture(scope="module")
def farm():
    return wind_farm()


@pytest.fixture(scope="module")
def lines():
    return gzip.decompress(LA_HAUTE_BORNE.read_bytes()).decode().splitlines()


def test_the_embedded_file_is_the_published_one_and_names_its_owner():
    notice = LA_HAUTE_BORNE.with_name("NOTICE.md").read_text()
    assert hashlib.sha256(LA_HAUTE_BORNE.read_bytes()).hexdigest() in notice
    assert "ENGIE" in notice
    assert "Etalab Open Licence 2.0" in notice


def test_sizes_of_the_parts(farm):
    # 17,520 hours give 17,473 windows, cut at 11,183 and 13,978, 47 dropped before each cut
    assert [len(p) for p in (farm.train, farm.val, farm.test)] == [11136, 2748, 3495]
    assert farm.train.x.shape[1:] == (24, 1)
    assert farm.train.y.shape[1:] == (12,)
    assert farm.train.x.dtype == farm.train.y.dtype == torch.float32


@pytest.mark.parametrize("part", ["train", "val", "test"])
def test_every_window_is_what_the_file_says_at_its_date(farm, lines, part):
    data = getattr(farm, part)
    energy = np.array([float(line.split(",")[1]) for line in lines[1:]])
    expected = np.maximum(energy, 0) / 2.05
    first = np.datetime64("2014-01-01T00")
    for i in (0, len(data) // 2, len(data) - 1):
        at = int((data.dates[i] - first) / np.timedelta64(1, "h"))
        np.testing.assert_allclose(data.y[i], expected[at : at + 12], rtol=1e-6)
        np.testing.assert_allclose(data.x[i, :, 0], expected[at - 36 : at - 12], rtol=1e-6)


def test_dates_run_by_the_hour_and_parts_share_no_hour(farm):
    hour = np.timedelta64(1, "h")
    parts = (farm.train, farm.val, farm.test)
    for part in parts:
        assert (np.diff(part.dates) == hour).all()
    for early, late in ((farm.train, farm.val), (farm.val, farm.test)):
        last_hour_of_y = early.dates[-1] + 11 * hour
        first_hour_of_x = late.dates[0] - 36 * hour
        assert first_hour_of_x - last_hour_of_y == hour


def test_energy_lies_in_the_range_of_bids_and_is_never_negative(farm, lines):
    most = max(float(line.split(",")[1]) for line in lines[1:])
    everything = torch.cat([p.y.flatten() for p in (farm.train, farm.val, farm.test)])
    assert everything.min() == 0
    assert float(everything.max()) == pytest.approx(most / UNIT, rel=1e-6)
    assert everything.max() < 4


def test_bidding_windows_counts_hours_from_the_end_of_x():
    hours = np.datetime64("2020-01-01T00") + np.arange(2000)
    parts = bidding_windows(np.arange(2000.0), hours)
    assert parts.train.x[0, :, 0].tolist() == list(range(24))
    assert parts.train.y[0].tolist() == list(range(36, 48))
    assert parts.train.dates[0] == hours[36]


def spoilt(lines, tmp_path, change):
    path = tmp_path / "wind.csv"
    path.write_text("\n".join(change(list(lines[:2000]))))
    return path


def swap(lines):
    lines[100], lines[101] = lines[101], lines[100]
    return lines


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (swap, "line 101 has"),
        (lambda s: s[:100] + s[101:], "line 101 has"),
        (lambda s: [*s[:9], s[9].split(",")[0] + ",NaN", *s[10:]], "line 10 has 'NaN'"),
        (lambda s: [*s[:9], s[9].split(",")[0] + ",much", *s[10:]], "line 10 has 'much'"),
        (lambda s: ["time,power", *s[1:]], "needs the columns"),
        (lambda s: s[:40], "at least 48 moments, but got 39"),
    ],
)
def test_a_spoilt_file_is_refused_by_its_line(lines, tmp_path, change, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        wind_farm(spoilt(lines, tmp_path, change))


REAL = Path(os.environ.get("COSTSCAPE_DATA") or "/nowhere") / "wind" / "TenneTTSO.csv"
HEADER = ["Date", *(f"{q // 4:02}:{q % 4 * 15:02}:00" for q in range(96))]


@pytest.fixture
def elsewhere(monkeypatch, tmp_path):
    """A machine without data."""
    monkeypatch.delenv("COSTSCAPE_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def quarters(days):
    return np.arange(days * 96).reshape(days, 96) % 691 / 2


def tennet(days=30):
    dates = [date(2019, 12, 20) + timedelta(d) for d in range(days)]
    rows = [
        [d.strftime("%d/%m/%Y"), *map(str, q)] for d, q in zip(dates, quarters(days), strict=True)
    ]
    return [",".join(row) for row in [HEADER, *rows]]


def save(folder, lines):
    path = folder / "TenneTTSO.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(("\ufeff" + "\r\n".join([*lines, ""])).encode())
    return path


def test_quarters_are_summed_to_hours_and_divided_by_a_thousand(tmp_path):
    data = wind(save(tmp_path, tennet()))
    hourly = quarters(30).reshape(-1, 4).sum(1) / 1000
    first = np.datetime64("2019-12-20T00")
    assert data.unit == "GWh"
    assert len(data.splits.train) == round(0.64 * (720 - 47)) - 47
    for part in vars(data.splits).values():
        for i in (0, len(part) - 1):
            at = int((part.dates[i] - first) / np.timedelta64(1, "h"))
            np.testing.assert_allclose(part.y[i], hourly[at : at + 12], rtol=1e-6)
            np.testing.assert_allclose(part.x[i, :, 0], hourly[at - 36 : at - 12], rtol=1e-6)


def test_columns_are_read_by_their_hour_in_whatever_order(tmp_path):
    order = np.random.default_rng(0).permutation(97)
    mixed = [",".join(np.array(line.split(","))[order]) for line in tennet()]
    one, two = wind(save(tmp_path, tennet())), wind(save(tmp_path / "mixed", mixed))
    assert torch.equal(one.splits.test.x, two.splits.test.x)


@pytest.mark.usefixtures("elsewhere")
def test_the_farm_gives_way_to_the_cache_then_the_variable_then_the_path(monkeypatch, tmp_path):
    data = wind()
    assert data.source == (
        "La Haute Borne wind farm 2014-2015 (ENGIE), embedded: TenneT's file was not found"
    )
    assert data.unit == "2.05 MWh"
    assert torch.equal(data.splits.test.y, wind_farm().test.y)
    save(tmp_path / "cache" / "costscape" / "wind", tennet(20))
    assert "2019-12-20 to 2020-01-08" in wind().source
    save(tmp_path / "data" / "wind", tennet(21))
    monkeypatch.setenv("COSTSCAPE_DATA", str(tmp_path / "data"))
    assert "2019-12-20 to 2020-01-09" in wind().source
    source = wind(save(tmp_path, tennet(22))).source
    assert "2019-12-20 to 2020-01-10, NOT the known public file" in source


def change_field(lines, row, column, text):
    fields = lines[row].split(",")
    fields[column] = text
    return [*lines[:row], ",".join(fields), *lines[row + 1 :]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: [*s[:9], s[10], s[9], *s[11:]], "line 10 has '29/12/2019' after '27/12/2019'"),
        (lambda s: s[:9] + s[10:], "line 10 has '29/12/2019' after '27/12/2019'"),
        (lambda s: change_field(s, 5, 7, "n/e"), "column '01:30:00' of every row, but line 6"),
        (lambda s: change_field(s, 5, 0, "12/24/2019"), "line 6 has '12/24/2019'"),
        (lambda s: [*s[:-1], s[-1][:90]], "needs 97 fields in every row, but line 31 has"),
        (lambda s: [s[0].replace("23:45", "24:00"), *s[1:]], "['23:45:00'] are missing"),
        (lambda s: s[:2], "at least 48 moments, but got 24"),
    ],
)
def test_a_spoilt_tennet_file_is_refused_by_its_line(tmp_path, change, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        wind(save(tmp_path, change(tennet())))


def test_a_path_without_a_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"No file at .*TenneTTSO\.csv"):
        wind(tmp_path / "TenneTTSO.csv")


@pytest.mark.skipif(not REAL.is_file(), reason="COSTSCAPE_DATA has no wind file")
def test_the_public_file_has_the_windows_and_the_scale_of_the_specification():
    data = wind()
    # 397 days: 9,528 hours, 9,481 windows, cut at 6,068 and 7,585, 47 dropped before each cut
    assert sum(len(p) for p in vars(data.splits).values()) + 2 * 47 == 9481
    assert [len(p) for p in vars(data.splits).values()] == [6021, 1470, 1896]
    assert data.source == (
        "wind power of TenneT's grid (Germany), 2019-08-23 to 2020-09-22, the known public file"
    )
    everything = torch.cat([p.y.flatten() for p in vars(data.splits).values()])
    assert 2.8 < float(everything.max()) < 2.885
    assert everything.min() >= 0


@pytest.mark.usefixtures("elsewhere")
def test_the_problem_wind_needs_its_own_file():
    with pytest.raises(FileNotFoundError, match=r"costscape fetch wind.*wind-farm"):
        wind_power()
    assert "La Haute Borne" in wind_farm_bidding().source
