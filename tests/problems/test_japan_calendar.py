import numpy as np
import pytest
import torch

from costscape.bench.problem_names import problem_named
from costscape.problems.files.sources import find
from costscape.problems.vaccine_doses.dcrnn import DCRNN
from costscape.problems.vaccine_doses.japan_calendar import HOLIDAYS, calendar_flags
from costscape.problems.vaccine_doses.mobility import calendar_weeks, trip_weeks

needs_trips = pytest.mark.skipif(
    find("mobility") is None, reason="the public mobility files are not here"
)
DAYS = np.arange("2018-06-01", "2021-01-01", dtype="datetime64[D]")


def test_holidays_of_fixed_rules_are_where_the_rules_put_them():
    assert len(set(HOLIDAYS.tolist())) == len(HOLIDAYS)
    assert (np.sort(HOLIDAYS) == HOLIDAYS).all()
    weekday = (HOLIDAYS.astype("datetime64[D]").astype(int) + 3) % 7  # 1970-01-01: a Thursday
    texts = HOLIDAYS.astype(str)
    for at, text in enumerate(texts):
        if text[5:7] == "01" and text[8:] != "01":
            assert weekday[at] == 0  # Coming of Age Day is a Monday
        if weekday[at] == 6:  # a holiday on a Sunday has a substitute, the next day that is none
            rest = {str(HOLIDAYS[at] + np.timedelta64(n, "D")) for n in (1, 2, 3)}
            assert rest & set(texts)
    for year in (2018, 2019, 2020):
        fixed = ("01-01", "02-11", "04-29", "05-03", "05-04", "05-05", "11-03", "11-23")
        assert {f"{year}-{day}" for day in fixed} <= set(texts)


def test_pairs_have_the_calendar_of_their_outcome_at_every_node():
    trips = np.random.default_rng(0).integers(1, 50, (len(DAYS), 3, 3))
    made = calendar_weeks(trips, DAYS)
    plain = trip_weeks(trips, DAYS)
    assert torch.equal(made.train.x[0, ..., :3], plain.train.x[0])
    assert torch.equal(made.train.y[0], plain.train.y[0])
    for part in vars(made).values():
        for row in (0, len(part) // 2, -1):
            week = part.dates[row] + np.arange(7)
            flags = torch.from_numpy(calendar_flags(week))
            assert torch.equal(part.x[row, :, :, 3:], flags[:, None].expand(-1, 3, -1))
    assert str(made.val.dates[0]) == "2019-02-01"
    assert str(made.test.dates[0]) == "2020-02-01"


def test_a_dcrnn_reads_flags_beside_flows():
    torch.manual_seed(0)
    net = DCRNN(3, ((0, 1), (1, 2)), hidden=4, extra=2)
    x = torch.randn(2, 7, 3, 5)
    other = x.clone()
    other[0, 3, :, 4] += 1
    assert not torch.equal(net(x)[0], net(other)[0])
    assert torch.equal(net(x)[1], net(other)[1])
    with pytest.raises(ValueError, match=r"\(B, T, 3, 5\)"):
        net(x[..., :3])


@needs_trips
def test_origins_of_the_wave_begin_in_2018_and_those_of_the_paper_do_not():
    whole = problem_named("vaccine-wave")(0)
    assert str(whole.data.train.dates[0]) == "2020-04-08"
    last = None
    for number in range(1, 9):
        p = problem_named(f"vaccine-wave@{number}of8")(0)
        train, val, test = vars(p.data).values()
        assert str(train.dates[0]) == "2018-01-08"
        assert train.x.shape[2:] == (47, 50)
        assert test.dates[0] - val.dates[-1] >= np.timedelta64(14, "D")
        assert val.dates[0] - train.dates[-1] >= np.timedelta64(14, "D")
        assert last is None or test.dates[0] > last
        last = test.dates[-1]
        if number == 1:
            assert str(test.dates[0]) == "2019-02-01"
            assert float(train.x[..., 48].sum() + val.x[..., 48].sum()) > 0  # a New Year
    assert str(last) == "2021-02-22"
    y, a = p.data.test.y[:2], p.task.feasible.sample(2)
    assert torch.equal(p.task.cost(y, a), whole.task.cost(y, a))
