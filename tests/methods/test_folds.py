"""Members hold out stretches in turn, and learn from all else; a single fit is made again."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from costscape import Absolute, Anchored, LocationScale, Refined, WindowLevels
from costscape.data import Dataset
from costscape.methods import df2
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


# ---- a single fit, made once more to all pairs


FORMS = [Absolute(), LocationScale(), Anchored(epochs=3), WindowLevels(Absolute())]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: type(form).__name__)
def test_a_single_fit_is_that_to_all_pairs_for_as_many_epochs_as_were_best(
    newsvendor, demand, tiny, form
):
    x, y = demand(100)
    told = {"epochs": 8, "smooth": 1, "decay": False}
    once = tiny(newsvendor(), told, outcomes=form, refit=False).fit(1 + x, y)
    twice = tiny(newsvendor(), told, outcomes=form).fit(1 + x, y)
    assert twice.history_ == once.history_  # of the fit that chose
    assert changed(once, twice, 0)
    best = once.history_[0].best_epoch + 1
    whole = tiny(newsvendor(), {**told, "epochs": best}, outcomes=form, choose_epoch=False)
    assert not changed(twice, whole.fit(1 + x, y, val=(1 + x, y)), 0)


def test_the_rate_falls_in_the_second_fit_as_in_the_first(newsvendor, demand, tiny):
    x, y = demand(100)
    told = {"epochs": 8, "smooth": 8}  # all epochs are best
    twice = tiny(newsvendor(), told, outcomes=Absolute()).fit(x, y)
    whole = tiny(newsvendor(), told, outcomes=Absolute(), choose_epoch=False)
    assert not changed(twice, whole.fit(x, y, val=(x, y)), 0)


@pytest.mark.parametrize("refit", [None, False, True])
@pytest.mark.parametrize("choose", [True, False])
@pytest.mark.parametrize("members", [1, 2])
def test_who_learns_from_the_latest_pairs(newsvendor, demand, tiny, members, choose, refit):
    x, y = demand(100)
    later = y.clone()
    later[80:] += 1.0
    told = {"epochs": 2, "smooth": 2}
    settings = {"members": members, "choose_epoch": choose, "refit": refit}
    a, b = (
        tiny(newsvendor(), told, outcomes=Absolute(), **settings).fit(x, z) for z in (y, later)
    )
    again = choose and members == 1 if refit is None else refit
    assert [changed(a, b, i) for i in range(members)] == [again, again or choose][:members]


def test_every_member_can_be_made_again(newsvendor, demand, tiny):
    x, y = demand(100)
    told = {"epochs": 4, "smooth": 1}
    a = tiny(newsvendor(), told, outcomes=Absolute(), members=2, refit=True).fit(x, y)
    b = tiny(newsvendor(), told, outcomes=Absolute(), members=2).fit(x, y)
    assert a.history_ == b.history_
    assert all(changed(a, b, i) for i in range(2))
    alone = tiny(newsvendor(), told, outcomes=Absolute()).fit(x, y)
    assert not changed(a, alone, 0)


@pytest.mark.parametrize("stayed", [True, False])
def test_a_forecast_is_made_again_for_as_long_as_it_was_best_and_may_stay(
    newsvendor, demand, tiny, monkeypatch, stayed
):
    real, calls = df2.fit_network, []

    def noted(*args, title, score, until, **settings):
        history = real(*args, title=title, score=score, until=until, **settings)
        if title == "DF2 refined-0":
            history.best_epoch = -1 if stayed else 1
        calls.append((title, score is not None, until, history.best_epoch + 1))
        return history

    monkeypatch.setattr(df2, "fit_network", noted)
    x, y = demand(100)
    told = {"epochs": 3, "smooth": 2}
    model = tiny(newsvendor(), told, outcomes=Refined(6), points=50).fit(x, y)
    (*_, anchored), (*_, refined), anchor, last = calls
    assert anchor == ("DF2 anchor", False, anchored, anchored)
    assert last == ("DF2 refined-0-again", False, refined, refined)
    # as it came, m(x) + an outcome is the label of the row the outcome was taken from
    off = (model.model_(x).values - y[:, None]).abs()[..., 0].amin(0)
    assert bool(off.max() < 1e-5) == stayed
