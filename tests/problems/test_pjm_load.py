import os
from datetime import UTC, date, datetime, time
from pathlib import Path

import numpy as np
import pytest
import torch

from costscape.bench import PROBLEMS
from costscape.problems import generator_scheduling, pjm
from costscape.problems.files.sources import PUBLIC
from costscape.problems.generator_schedule.pjm_load import day_pairs, read_days, split_at
from costscape.problems.generator_schedule.us_calendar import (
    NEW_YORK,
    federal_holidays,
    is_summer_time,
)

REAL = Path(os.environ.get("COSTSCAPE_DATA") or "/nowhere") / "pjm" / PUBLIC["pjm"][0].name
real = pytest.mark.skipif(not REAL.is_file(), reason="COSTSCAPE_DATA has no pjm folder")


def hours(first, n):
    """The next n hours from midnight in New York on that day, in seconds."""
    start = int(datetime(*first, tzinfo=NEW_YORK).timestamp())
    return start + 3600 * np.arange(n)


def save(path, seconds, load, temperature):
    np.savetxt(path, np.column_stack([seconds, load, temperature]), fmt=" %.8e")
    return path


@pytest.fixture
def three_days(tmp_path):
    """Friday 3 to Sunday 5 July 2009; load 1, 1.01, ..., temperature 60, 61, ..."""
    t = np.arange(72)
    return save(tmp_path / "load.txt", hours((2009, 7, 3), 72), 1 + t / 100, 60 + t)


def test_features_of_a_made_up_file_by_hand(three_days):
    pairs = day_pairs(read_days([three_days]), temperatures=True)
    assert pairs.x.shape == (2, 149)
    assert pairs.y.shape == (2, 24)
    assert pairs.x.dtype == pairs.y.dtype == torch.float32
    assert pairs.dates.tolist() == [date(2009, 7, 4), date(2009, 7, 5)]
    x, y = pairs.x[0].double().numpy(), pairs.y[0].double().numpy()
    np.testing.assert_allclose(y, 1.24 + np.arange(24) / 100, rtol=1e-6)
    np.testing.assert_allclose(x[:24], 1 + np.arange(24) / 100, rtol=1e-6)  # past load
    assert x[[24, 47]].tolist() == [60, 83]  # past temperature
    assert x[[48, 71]].tolist() == [3600, 6889]  # its square
    assert x[[72, 95]].tolist() == [84, 107]  # the day's temperature
    assert x[[96, 119]].tolist() == [7056, 11449]  # its square
    assert x[[120, 143]].tolist() == [592704, 1225043]  # its cube
    # a Saturday; the holiday of Saturday 4 July was observed on Friday; summer time; day 185
    assert x[144:147].tolist() == [1, 0, 1]
    angle = 2 * np.pi * 185 / 365
    np.testing.assert_allclose(x[147:], [np.cos(angle), np.sin(angle)], rtol=1e-5)
    without = day_pairs(read_days([three_days]), temperatures=False)
    assert torch.equal(without.x, torch.cat([pairs.x[:, :24], pairs.x[:, 144:]], 1))
    assert torch.equal(without.y, pairs.y)


def test_a_weekday_that_is_a_holiday_and_a_plain_one(tmp_path):
    path = save(tmp_path / "a.txt", hours((2010, 1, 17), 72), np.ones(72), np.ones(72))
    x = day_pairs(read_days([path]), temperatures=False).x
    assert x[:, 24:27].tolist() == [[0, 1, 0], [0, 0, 0]]  # Martin Luther King, then Tuesday


def test_missing_hours_take_the_next_hour_and_else_the_last(tmp_path):
    seconds, load = hours((2009, 7, 3), 72), 1 + np.arange(72) / 100
    kept = np.setdiff1d(np.arange(72), [0, 47])  # the first of all, the last of the second day
    path = save(tmp_path / "gaps.txt", seconds[kept], load[kept], load[kept])
    days = read_days([path])
    np.testing.assert_allclose(days.load[0, :2], [1.01, 1.01])
    np.testing.assert_allclose(days.load[1, -2:], [1.46, 1.46])
    np.testing.assert_allclose(days.temperature, days.load)


def test_an_hour_given_twice_counts_once_and_the_clocks_change(tmp_path):
    # 2009-03-08 has no 2 o'clock; 2009-11-01 has 1 o'clock twice, of which the last counts
    spring = read_days([save(tmp_path / "s.txt", hours((2009, 3, 7), 71), *2 * [np.arange(71)])])
    assert len(spring.dates) == 3
    assert spring.load[1, :5].tolist() == [24, 25, 26, 26, 27]
    autumn = hours((2009, 10, 31), 73)
    days = read_days([save(tmp_path / "a.txt", autumn, *2 * [np.arange(73)])])
    assert days.load[1, :4].tolist() == [24, 26, 27, 28]


def test_an_incomplete_last_day_is_dropped(tmp_path):
    path = save(tmp_path / "a.txt", hours((2009, 7, 3), 49), *2 * [np.arange(49)])
    assert read_days([path]).dates == [date(2009, 7, 3), date(2009, 7, 4)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 2\n3 4\n", "2 columns"),
        ("1.2e9 nan 3\n", "1 numbers that are not finite"),
        ("1.2e9 much 3\n", "three numbers in each line"),
        ("1.2e9 1 3\n", "at least 23 hours of every day"),
    ],
)
def test_a_spoilt_file_is_refused(tmp_path, text, message):
    path = tmp_path / "bad.txt"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_days([path])


def test_a_missing_day_is_named(tmp_path):
    one = save(tmp_path / "1.txt", hours((2009, 7, 3), 24), *2 * [np.ones(24)])
    two = save(tmp_path / "2.txt", hours((2009, 7, 5), 24), *2 * [np.ones(24)])
    with pytest.raises(ValueError, match="2009-07-03 is followed by 2009-07-05"):
        read_days([one, two])
    both = save(
        tmp_path / "3.txt",
        np.r_[hours((2009, 7, 3), 24), hours((2009, 7, 5), 24)],
        *2 * [np.ones(48)],
    )
    with pytest.raises(ValueError, match="2009-07-03 is followed by 2009-07-05"):
        read_days([both])


def test_the_split_is_in_time_and_a_fifth_validates(tmp_path):
    path = save(tmp_path / "a.txt", hours((2009, 1, 1), 24 * 40), *2 * [np.ones(960)])
    parts = split_at(day_pairs(read_days([path]), temperatures=False), date(2009, 2, 1))
    assert [len(p) for p in vars(parts).values()] == [24, 6, 9]
    assert parts.test.dates[0] == np.datetime64("2009-02-01")
    assert parts.val.dates[-1] == np.datetime64("2009-01-31")
    with pytest.raises(ValueError, match="days before and after 2012-01-01"):
        split_at(day_pairs(read_days([path]), temperatures=False), date(2012, 1, 1))


def test_federal_holidays_are_those_of_pandas():
    holiday = pytest.importorskip("pandas.tseries.holiday")
    theirs = holiday.USFederalHolidayCalendar().holidays("2008-01-01", "2016-12-31")
    assert federal_holidays(2008, 2016) == {day.date() for day in theirs}


def test_summer_time_is_that_of_new_york():
    # from the second Sunday of March to the first of November, at 2 o'clock
    assert not is_summer_time(date(2010, 3, 14))
    assert is_summer_time(date(2010, 3, 15))
    assert is_summer_time(date(2010, 11, 7))
    assert not is_summer_time(date(2010, 11, 8))


@pytest.mark.usefixtures("elsewhere")
def test_without_the_files_the_error_says_how_to_get_them(tmp_path):
    with pytest.raises(FileNotFoundError, match="costscape fetch pjm"):
        pjm()
    with pytest.raises(FileNotFoundError, match="costscape fetch pjm"):
        PROBLEMS["scheduling"](0)
    with pytest.raises(FileNotFoundError, match=r"pjm_load_data_2008-11\.txt"):
        pjm(tmp_path)


@pytest.fixture
def elsewhere(monkeypatch, tmp_path):
    """A machine without data."""
    monkeypatch.delenv("COSTSCAPE_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@real
def test_the_public_files_have_the_known_days():
    data = pjm(REAL.parent)
    parts = data.splits
    assert [len(p) for p in vars(parts).values()] == [2043, 511, 638]
    assert parts.test.x.shape[1] == 29
    assert parts.train.dates[0] == np.datetime64("2008-01-02")
    assert parts.test.dates[0] == np.datetime64("2014-12-30")
    assert parts.test.dates[-1] == np.datetime64("2016-09-27")
    everything = torch.cat([p.y for p in vars(parts).values()])
    assert float(everything.min()) == pytest.approx(1.014, abs=1e-6)
    assert float(everything.max()) == pytest.approx(3.054, abs=1e-6)
    assert data.source == (
        "load of PJM's grid (United States), 2008-01-01 to 2016-09-27, without temperatures, the "
        "known public files"
    )


@real
def test_temperatures_are_measured_in_the_first_file_only():
    data = pjm(REAL.parent, filler=True)
    assert "filler from 2011-12-31 on" in data.source
    heat = {n: p.x[:, 72:96] for n, p in vars(data.splits).items()}
    assert (heat["test"] == heat["test"][0, 0]).all()
    assert float(heat["test"][0, 0]) == pytest.approx(1.4)
    daily = heat["train"].amax(1) - heat["train"].amin(1)
    first = torch.from_numpy(data.splits.train.dates <= np.datetime64("2011-12-30"))
    assert daily[first].median() > 10  # degrees between day and night
    assert daily[~first].max() < 1.2
    with pytest.raises(ValueError, match="got both"):
        pjm(REAL.parent, measured=True, filler=True)


@real
def test_the_measured_days_are_those_of_the_first_file():
    data = pjm(REAL.parent, measured=True)
    assert [len(p) for p in vars(data.splits).values()] == [876, 219, 364]
    assert data.splits.test.x.shape[1] == 149
    assert data.splits.test.dates[0] == np.datetime64("2011-01-01")
    assert data.splits.test.dates[-1] == np.datetime64("2011-12-30")
    assert "temperatures measured, the known" in data.source


@real
def test_every_row_is_what_the_file_says_at_its_date():
    lines = np.loadtxt(REAL)
    part = pjm(REAL.parent, measured=True).splits.train
    i = 500
    noon = datetime.combine(part.dates[i].item(), time(12), NEW_YORK)
    at = int(np.searchsorted(lines[:, 0], noon.astimezone(UTC).timestamp()))
    assert float(part.y[i, 12]) == pytest.approx(lines[at, 1], rel=1e-6)
    assert float(part.x[i, 72 + 12]) == pytest.approx(lines[at, 2], rel=1e-6)
    assert float(part.x[i, 12]) == pytest.approx(lines[at - 24, 1], rel=1e-6)


@real
def test_hindsight_costs_nothing_on_the_test_days_so_that_published_costs_are_regrets():
    task, y = generator_scheduling(), pjm(REAL.parent).splits.test.y
    assert task.cost(y, task.hindsight(y)).max() == 0
