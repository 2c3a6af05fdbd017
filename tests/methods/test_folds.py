"""Members hold out stretches in turn, and learn from all else."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from costscape import Absolute
from costscape.data import Dataset
from costscape.methods.folds import fold, together


def parts(n, v):
    moments = torch.arange(n + v, dtype=torch.float32).unsqueeze(1)
    return Dataset(moments[:n], moments[:n]), Dataset(moments[n:], moments[n:])


@given(st.integers(1, 200), st.integers(1, 60), st.integers(0, 12))
def test_a_member_learns_from_as_many_pairs_as_the_first_and_from_none_that_it_holds_out(
    n, v, member
):
    train, val = parts(n, v)
    own = fold(train, val, member)
    learned = together(train, val).x[own.rows, 0]
    assert len(learned.unique()) == len(own.rows) == n
    assert not set(learned.tolist()) & set(own.held.x[:, 0].tolist())
    assert len(own.held) == (v if own.held is val else v - 2 * (v // 10)) > 0


@given(st.integers(1, 200), st.integers(1, 60))
def test_the_first_holds_out_the_validation_part_and_every_pair_is_learned_by_all_but_one(n, v):
    train, val = parts(n, v)
    turns = (n + v) // v
    assert fold(train, val, 0).held is val
    assert torch.equal(fold(train, val, turns + 1).rows, fold(train, val, 1).rows)
    times = torch.zeros(n + v)
    for member in range(turns):
        times[fold(train, val, member).rows] += 1
    assert int(times.min()) == turns - 1
    assert int((times == turns).sum()) == (n + v) % v  # the oldest, which no turn reaches


def test_pairs_next_to_a_held_out_stretch_are_neither_learned_nor_scored():
    train, val = parts(80, 20)
    own = fold(train, val, 2)
    assert own.held.x[:, 0].tolist() == list(range(42, 58))  # of 40 to 59
    assert own.rows.tolist() == [*range(40), *range(60, 100)]


# ---- in a fit


def weights(model, i):
    return [p.detach() for p in model.model_.members[i].parameters()]


def changed(before, after, i):
    pairs = zip(weights(before, i), weights(after, i), strict=True)
    return not all(torch.equal(a, b) for a, b in pairs)


@pytest.mark.parametrize("stretch", [0, 1, 2])
def test_what_a_member_holds_out_does_not_move_its_weights(newsvendor, demand, tiny, stretch):
    # smooth = epochs: the last epoch is kept whatever the score, which other labels change
    told = {"epochs": 2, "smooth": 2}
    settings = {"members": 3, "outcomes": Absolute(), "training": told}
    x, y = demand(100)
    end = 100 - 20 * stretch
    other = y.clone()
    other[end - 20 : end] += 1.0
    a, b = (
        tiny(newsvendor(), **settings).fit(x[:80], z[:80], val=(x[80:], z[80:]))
        for z in (y, other)
    )
    assert [changed(a, b, i) for i in range(3)] == [i != stretch for i in range(3)]


def test_without_a_choice_of_epoch_nobody_learns_from_the_validation_part(
    newsvendor, demand, tiny
):
    x, y = demand(100)
    a, b = (
        tiny(newsvendor(), members=2, choose_epoch=False).fit(
            x[:80], y[:80], val=(x[80:], y[80:] + more)
        )
        for more in (0.0, 1.0)
    )
    assert not changed(a, b, 0)
    assert not changed(a, b, 1)
