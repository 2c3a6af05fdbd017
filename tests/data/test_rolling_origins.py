"""Rolling origins: the past of an origin shares no moment with its test rows, and all are used."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from costscape.data import Dataset, Splits, rolling_origins, split, windows

HISTORY, GAP, HORIZON = 5, 2, 3
REACH = HISTORY + GAP + HORIZON
HOUR = np.timedelta64(1, "h")


def hourly(moments, items=1):
    """Windows of a series that counts its hours, so that a row shows which hours it uses."""
    hours = np.datetime64("2020-01-01T00", "h") + np.arange(moments)
    pairs = windows(torch.arange(float(moments)), HISTORY, GAP, HORIZON, hours)
    rows = Dataset(
        pairs.x.repeat_interleave(items, 0),
        pairs.y.repeat_interleave(items, 0),
        np.repeat(pairs.dates, items),
    )
    return split(rows, train=0.5, val=0.2, reach=(REACH - 1) * items)


def moments_of(part):
    return set(part.x.flatten().tolist()) | set(part.y.flatten().tolist())


@settings(deadline=None)
@given(st.integers(150, 400), st.integers(1, 6), st.integers(1, 3))
def test_parts_share_no_moment_and_the_past_comes_first(moments, origins, items):
    data = hourly(moments, items)
    parts = rolling_origins(data, origins, REACH * HOUR)
    assert len(parts) == origins
    for origin in parts:
        train, val, test = map(moments_of, (origin.train, origin.val, origin.test))
        assert not train & val
        assert not (train | val) & test
        assert max(train) < min(val)
        assert max(val) < min(test)


@settings(deadline=None)
@given(st.integers(150, 400), st.integers(1, 6))
def test_every_row_after_the_training_part_is_tested_once(moments, origins):
    data = hourly(moments)
    tested = torch.cat([o.test.x for o in rolling_origins(data, origins, REACH * HOUR)])
    assert torch.equal(tested, torch.cat([data.val.x, data.test.x]))


def test_the_past_grows_and_is_cut_where_it_may_be():
    data = hourly(300)
    first, second = rolling_origins(data, 2, REACH * HOUR)
    assert len(second.train) > len(first.train)
    # the last validation row ends just before the first moment of the test part
    assert max(moments_of(first.val)) + 1 == min(moments_of(first.test))
    assert max(moments_of(first.train)) + 1 == min(moments_of(first.val))
    past = len(first.train) + len(first.val) + REACH - 1
    assert len(first.val) == past - round(0.8 * past)


def test_what_cannot_be_cut_is_refused():
    data = hourly(150)
    with pytest.raises(ValueError, match="origins of at least 1, but got 0"):
        rolling_origins(data, 0, REACH * HOUR)
    with pytest.raises(ValueError, match="Take fewer origins"):
        rolling_origins(data, 1000, REACH * HOUR)
    with pytest.raises(ValueError, match="Take fewer origins"):
        rolling_origins(data, 2, 1000 * HOUR)
    bare = Splits(*(Dataset(p.x, p.y) for p in (data.train, data.val, data.test)))
    with pytest.raises(ValueError, match="rows with dates"):
        rolling_origins(bare, 2, REACH * HOUR)
