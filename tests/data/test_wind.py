import gzip
import hashlib
import re

import numpy as np
import pytest
import torch

from costscape.data import bidding_windows, wind_farm
from costscape.data.wind import LA_HAUTE_BORNE, UNIT


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
