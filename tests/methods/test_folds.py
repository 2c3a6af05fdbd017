"""Folds of the rows in time order, and what a fit learns from them."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from costscape import Absolute, CrossFit, NearestNeighbours
from costscape.data.dataset import EDGE, FEWEST, Dataset, check_folds, join, time_folds

counts = st.integers(2, 9).flatmap(
    lambda folds: st.tuples(st.integers(FEWEST * folds, 400), st.just(folds))
)


@given(counts)
@settings(deadline=None)
def test_folds_are_stretches_of_equal_length_the_latest_first(count):
    pairs, folds = count
    length = pairs // folds
    for k, fold in enumerate(time_folds(pairs, folds)):
        end = pairs - k * length
        left_out = sorted(set(range(pairs)) - set(fold.rows.tolist()))
        assert left_out == list(range(end - length, end))
        assert set(fold.held.tolist()) <= set(left_out)
        assert fold.held.tolist() == list(range(int(fold.held[0]), int(fold.held[-1]) + 1))
        assert len(fold.rows) == pairs - length


@given(counts)
@settings(deadline=None)
def test_the_stretches_left_out_are_a_partition_but_for_the_first_rows(count):
    pairs, folds = count
    times = torch.zeros(pairs)
    for fold in time_folds(pairs, folds):
        out = torch.ones(pairs)
        out[fold.rows] = 0
        times += out
    first = pairs % folds
    assert times[:first].sum() == 0
    assert (times[first:] == 1).all()


@given(counts)
@settings(deadline=None)
def test_rows_at_the_edges_are_neither_learned_nor_scored(count):
    pairs, folds = count
    edge = pairs // folds // EDGE
    for k, fold in enumerate(time_folds(pairs, folds)):
        held, rows = set(fold.held.tolist()), set(fold.rows.tolist())
        assert not held & rows
        start, end = min(held) - edge, max(held) + 1 + (edge if k else 0)
        assert end - start == pairs // folds
        for row in (*range(start, min(held)), *range(max(held) + 1, end)):
            assert row not in rows
        # no row that is learned is within ``edge`` of one that is scored
        later = [row for row in rows if row > max(held)]
        if later:
            assert min(later) - max(held) == edge + 1
        earlier = [row for row in rows if row < min(held)]
        if earlier:
            assert min(held) - max(earlier) == edge + 1


def test_the_latest_rows_are_all_held_out_by_the_first_fold():
    first, second = time_folds(100, 2)
    assert first.rows.tolist() == list(range(50))
    assert first.held.tolist() == list(range(55, 100))
    assert second.rows.tolist() == list(range(50, 100))
    assert second.held.tolist() == list(range(5, 45))


def test_pairs_together_are_in_time_order():
    moments = torch.arange(9.0).unsqueeze(1)
    found = join(Dataset(moments[:6], 2 * moments[:6]), Dataset(moments[6:], 2 * moments[6:]))
    assert torch.equal(found.x, moments)
    assert torch.equal(found.y, 2 * moments)


# ---- numbers of folds that cannot be had


def test_too_few_rows_for_the_folds_are_refused():
    with pytest.raises(
        ValueError,
        match=r"Ours needs at least 4 rows in each of 5 folds, that is 20, but got 19 rows\.",
    ):
        check_folds("Ours", 5, 19)
    check_folds("Ours", 5, 20)


@pytest.mark.parametrize("rows", [10, 15])
def test_too_few_rows_are_refused_before_anything_is_fitted(newsvendor, demand, tiny, rows):
    x, y = demand(rows)
    for method in (
        tiny(newsvendor(), folds=4, encoder=lambda: 1 / 0),
        CrossFit(NearestNeighbours(newsvendor(), k=10**6)),
    ):
        with pytest.raises(ValueError, match=f"4 folds, that is 16, but got {rows} rows"):
            method.fit(x, y)


# ---- in a fit


def changed(before, after, i):
    a, b = (model.fits_[i].model_.state_dict() for model in (before, after))
    return not all(torch.equal(a[k], b[k]) for k in a)


@pytest.mark.parametrize("fold", [0, 1, 2])
def test_what_a_fit_leaves_out_does_not_move_its_weights(newsvendor, demand, tiny, fold):
    # the last epoch is kept: other labels would change the choice of one
    told = {"epochs": 2}
    x, y = demand(90)
    end = 90 - 30 * fold
    other = y.clone()
    other[end - 30 : end] += 1.0
    a, b = (
        tiny(newsvendor(), told, folds=3, outcomes=Absolute(), choose_epoch=False).fit(
            x[:80], z[:80], (x[80:], z[80:])
        )
        for z in (y, other)
    )
    assert [changed(a, b, i) for i in range(3)] == [i != fold for i in range(3)]


def test_rows_at_the_edges_do_not_matter_to_the_fit_that_leaves_them_out(newsvendor, demand, tiny):
    x, y = demand(90)
    other = y.clone()
    other[30:33] += 1.0  # the first tenth of the second fold
    a, b = (tiny(newsvendor(), folds=3, outcomes=Absolute()).fit(x, z) for z in (y, other))
    assert [changed(a, b, i) for i in range(3)] == [True, False, True]
    assert a.fits_[1].history_ == b.fits_[1].history_


def test_together_the_fits_learn_from_the_latest_rows(newsvendor, demand, tiny):
    x, y = demand(90)
    later = y.clone()
    later[-5:] += 1.0
    told = {"epochs": 2, "smooth": 2, "lr": 1e-2}
    a, b = (tiny(newsvendor(), told, folds=3, outcomes=Absolute()).fit(x, z) for z in (y, later))
    assert [changed(a, b, i) for i in range(3)] == [False, True, True]


def test_a_single_network_does_not_learn_from_the_validation_rows(newsvendor, demand, tiny):
    x, y = demand(90)
    told = {"epochs": 2, "smooth": 2}
    a, b = (
        tiny(newsvendor(), told).fit(x[:70], y[:70], val=(x[70:], y[70:] + more))
        for more in (0.0, 1.0)
    )
    assert all(map(torch.equal, a.model_.parameters(), b.model_.parameters()))
