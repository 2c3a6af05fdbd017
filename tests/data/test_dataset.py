import numpy as np
import pytest
import torch

from costscape.data import Dataset, split


def pairs(n):
    dates = np.datetime64("2020-01-01") + np.arange(n)
    return Dataset(torch.arange(n).float().unsqueeze(1), -torch.arange(n).float(), dates)


def test_an_x_without_y_is_refused():
    with pytest.raises(ValueError, match="got 3 x and 2 y"):
        Dataset(torch.zeros(3, 1), torch.zeros(2, 1))


def test_a_missing_date_is_refused():
    with pytest.raises(ValueError, match="got 2 dates for 3 pairs"):
        Dataset(torch.zeros(3, 1), torch.zeros(3, 1), np.array([0, 1], dtype="datetime64[h]"))


def test_a_slice_keeps_x_y_and_dates_together():
    part = pairs(10)[3:5]
    assert part.x.flatten().tolist() == [3, 4]
    assert part.y.tolist() == [-3, -4]
    assert part.dates.tolist() == pairs(10).dates[3:5].tolist()


def test_to_changes_precision_and_keeps_dates():
    data = pairs(3).to("cpu", torch.float64)
    assert (data.x.dtype, data.y.dtype) == (torch.float64, torch.float64)
    assert data.dates is not None


def test_split_cuts_in_order_and_drops_the_reach_before_each_cut():
    parts = split(pairs(100), train=0.64, val=0.16, reach=5)
    assert parts.train.y.tolist() == [-i for i in range(59)]
    assert parts.val.y.tolist() == [-i for i in range(64, 75)]
    assert parts.test.y.tolist() == [-i for i in range(80, 100)]


@pytest.mark.parametrize(("n", "reach"), [(10, 8), (20, 10), (2, 0)])
def test_a_part_left_empty_is_refused(n, reach):
    with pytest.raises(ValueError, match="part is empty"):
        split(pairs(n), train=0.64, val=0.16, reach=reach)


def test_a_reach_beyond_the_first_cut_does_not_count_from_the_back():
    # train would end at row 20 - 30 = -10, which a slice reads as row 90
    with pytest.raises(ValueError, match="train part is empty: 100 rows cut at 20 and 80"):
        split(pairs(100), train=0.2, val=0.6, reach=30)


@pytest.mark.parametrize(
    ("train", "val"), [(0.0, 0.5), (0.8, 0.2), (0.5, -0.1), (float("nan"), 0.1)]
)
def test_shares_that_leave_a_part_nothing_are_refused(train, val):
    with pytest.raises(ValueError, match=r"split needs (shares|train|val)"):
        split(pairs(10), train=train, val=val)
