from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from costscape.data import split, windows


@given(
    history=st.integers(1, 6),
    gap=st.integers(0, 5),
    horizon=st.integers(1, 6),
    more=st.integers(0, 20),
    shape=st.sampled_from([(), (2,), (2, 3)]),
)
@settings(deadline=None, max_examples=60)
def test_each_pair_is_the_slice_of_the_formula(history, gap, horizon, more, shape):
    length = history + gap + horizon
    series = torch.randn(length + more, *shape, generator=torch.Generator().manual_seed(0))
    dates = np.datetime64("2020-01-01T00") + np.arange(len(series))
    data = windows(series, history, gap, horizon, dates)
    assert len(data) == more + 1
    for i in range(len(data)):
        t = history + i
        assert torch.equal(data.x[i], series[t - history : t])
        assert torch.equal(data.y[i], series[t + gap : t + gap + horizon])
        assert data.dates[i] == dates[t + gap]


@given(
    history=st.integers(1, 5),
    gap=st.integers(0, 4),
    horizon=st.integers(1, 5),
    n=st.integers(80, 200),
)
@settings(deadline=None, max_examples=40)
def test_no_moment_is_in_two_parts_of_a_split(history, gap, horizon, n):
    data = windows(torch.arange(float(n)), history, gap, horizon)
    parts = split(data, 0.6, 0.2, reach=history + gap + horizon - 1)
    # from the first moment of x to the last of y, gap included
    spans = [(int(p.x.min()), int(p.y.max())) for p in (parts.train, parts.val, parts.test)]
    for (_, end), (start, _) in pairwise(spans):
        assert end == start - 1


def test_a_series_that_is_too_short_is_refused():
    with pytest.raises(ValueError, match="at least 48 moments, but got 47"):
        windows(torch.zeros(47), 24, 12, 12)


@pytest.mark.parametrize("sizes", [(0, 0, 1), (1, -1, 1), (1, 0, 0)])
def test_sizes_that_make_no_window_are_refused(sizes):
    with pytest.raises(ValueError, match=r"windows needs (history|gap|horizon) of at least"):
        windows(torch.zeros(10), *sizes)


def test_dates_of_another_length_are_refused():
    with pytest.raises(ValueError, match="got 9 dates for 10 moments"):
        windows(torch.zeros(10), 1, 0, 1, np.arange(9))
