"""CrossFit against its fits made by hand."""

from dataclasses import dataclass, replace
from functools import partial

import pytest
import torch
from torch import nn

from costscape import (
    CME,
    DF2,
    MLP,
    Absolute,
    Constant,
    CrossFit,
    KernelSmoother,
    Mixture,
    NearestNeighbours,
    PolicyNet,
    RandomForest,
    Training,
    TwoStage,
    load,
)
from costscape.checks import check_method
from costscape.data import time_folds
from costscape.training import progress

TOLD = Training(epochs=2, batch_size=16, progress=False)


def small(task, kind):
    """An unfitted method that is fitted in the blink of an eye."""
    encoder = partial(MLP, 2, hidden=8)
    return {
        "two-stage": lambda: TwoStage(task, Mixture(2), 20, encoder, training=TOLD),
        "neighbours": lambda: NearestNeighbours(task, k=7),
        "forest": lambda: RandomForest(task, trees=5, min_leaf=5),
        "cme": lambda: CME(task, penalty=1e-2, width=1.0),
        "kernel": lambda: KernelSmoother(task),
        "df2": lambda: DF2.quick(task, training=TOLD),
    }[kind]()


KINDS = ["two-stage", "neighbours", "forest", "cme", "kernel", "df2"]


@pytest.mark.parametrize("kind", KINDS)
def test_cross_fitted_methods_keep_the_contract(newsvendor, demand, kind):
    x, y = demand(48)
    check_method(CrossFit(small(newsvendor(), kind), folds=3), x, y)


@pytest.mark.parametrize("kind", KINDS)
def test_scenarios_are_the_union_of_the_fits_made_by_hand(newsvendor, demand, kind):
    task, (x, y) = newsvendor(2), demand(50, dim=2)
    method = CrossFit(small(task, kind).changed(seed=4), folds=3).fit(x, y)
    parts = []
    for k, fold in enumerate(time_folds(50, 3)):
        own = small(task, kind).changed(seed=4 + 1000 * k)
        own.fit(x[fold.rows], y[fold.rows], val=(x[fold.held], y[fold.held]))
        parts.append(own.scenarios(x))
    s = method.scenarios(x)
    assert torch.allclose(s.weights, torch.cat([p.weights for p in parts], 1) / 3, rtol=1e-6)
    rows = len(s.values)
    values = [p.values.expand(rows, *p.values.shape[1:]) for p in parts]
    assert torch.equal(s.values, torch.cat(values, 1))
    assert method.shares_ == [1 / 3] * 3
    mean = sum(fit.expected_cost(x, y) for fit in method.fits_) / 3
    assert torch.allclose(method.expected_cost(x, y), mean, rtol=1e-5)


def test_no_more_scenarios_than_asked_for(newsvendor, demand):
    x, y = demand(48)
    fits = CrossFit(small(newsvendor(), "cme"), folds=3, most_scenarios=11).fit(x, y)
    s = fits.scenarios(x)
    assert s.weights.shape == (48, 11)
    assert torch.allclose(s.weights.sum(1), torch.ones(48))
    everything = CrossFit(small(newsvendor(), "cme"), folds=3).fit(x, y).scenarios(x)
    assert everything.weights.shape == (48, 96)


def same(a, b):
    a, b = a.model_.state_dict(), b.model_.state_dict()
    return a.keys() == b.keys() and all(torch.equal(a[k], b[k]) for k in a)


@pytest.mark.long
def test_two_workers_fit_the_same_bits_as_one(newsvendor, demand):
    x, y = demand(40)
    task = newsvendor()
    one, two = (
        CrossFit(small(task, "two-stage"), folds=2, workers=workers).fit(x, y)
        for workers in (1, 2)
    )
    assert same(one, two)
    assert torch.equal(one.decide(x), two.decide(x))


def test_workers_of_df2_fit_the_same_bits_as_one(newsvendor, demand, tiny):
    x, y = demand(40)
    task = newsvendor()
    one, two = (
        tiny(task, outcomes=None, folds=2, workers=workers).fit(x, y) for workers in (1, 2)
    )
    assert one.weights_ == two.weights_
    assert same(one, two)
    assert one.history_ == two.history_


# ---- going on from a checkpoint


class Fuse:
    left = None


class Fused(nn.Module):
    """An encoder that fails at the n-th forward pass in training."""

    def __init__(self):
        super().__init__()
        self.net, self.out_features = MLP(2, hidden=8, dropout=0.4), 8

    def forward(self, x):
        if self.training and Fuse.left is not None:
            Fuse.left -= 1
            if Fuse.left < 0:
                raise KeyboardInterrupt
        return self.net(x)


@pytest.fixture
def fit_with(newsvendor, demand, monkeypatch):
    x, y = demand(48)

    def fit(path=None, steps=None):
        monkeypatch.setattr(Fuse, "left", steps)
        told = Training(epochs=3, batch_size=16, patience=3, progress=False, checkpoint=path)
        inner = TwoStage(newsvendor(), Mixture(2), 20, Fused, training=told)
        return CrossFit(inner, folds=3).fit(x, y)

    return fit


@pytest.mark.parametrize("steps", [0, 3, 6, 13])  # two steps an epoch, six a fold
def test_an_interrupted_and_resumed_fit_ends_with_the_same_bits(fit_with, tmp_path, steps):
    whole = fit_with()
    with pytest.raises(KeyboardInterrupt):
        fit_with(tmp_path / "c", steps)
    assert same(whole, fit_with(tmp_path / "c"))
    names = {f"c.0-{k}.likelihood" for k in range(3)}
    assert {p.name for p in tmp_path.iterdir()} == names
    assert same(whole, fit_with(tmp_path / "c", 0))  # nothing is left to train


# ---- saving


class Mine(nn.Module):
    out_features = 4

    def __init__(self):
        super().__init__()
        self.net = nn.Linear(2, 4)

    def forward(self, x):
        return self.net(x)


@pytest.mark.parametrize("kind", KINDS)
def test_a_loaded_one_answers_bit_for_bit_as_before(newsvendor, demand, tmp_path, kind):
    x, y = demand(48)
    method = CrossFit(small(newsvendor(), kind), folds=3).fit(x, y)
    method.save(tmp_path / "m")
    back = load(tmp_path / "m", newsvendor())
    assert torch.equal(back.decide(x), method.decide(x))
    ours, theirs = method.scenarios(x), back.scenarios(x)
    assert torch.equal(ours.weights, theirs.weights)
    assert torch.equal(ours.values, theirs.values)
    assert back.to_json() == method.to_json()
    assert back.jobs_[2].fold == 2
    back.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "m").read_bytes()


def test_code_of_the_users_own_inside_is_passed_to_load(newsvendor, demand, tmp_path):
    x, y = demand(48)
    inner = TwoStage(newsvendor(), Mixture(2), 20, Mine, training=TOLD)
    method = CrossFit(inner, folds=2).fit(x, y)
    method.save(tmp_path / "m")
    with pytest.raises(ValueError, match=r"fitted with encoder=Mine.* load\(path, task, encoder="):
        load(tmp_path / "m", newsvendor())
    back = load(tmp_path / "m", newsvendor(), encoder=Mine)
    assert torch.equal(back.decide(x), method.decide(x))
    with pytest.raises(TypeError, match="has no setting named colour"):
        load(tmp_path / "m", newsvendor(), colour="red")


@dataclass
class Neighbours(NearestNeighbours):
    """A class of the user's own."""


def test_a_method_of_the_users_own_inside_is_passed_to_load(newsvendor, demand, tmp_path):
    x, y = demand(48)
    task = newsvendor()
    method = CrossFit(Neighbours(task, k=3), folds=2).fit(x, y)
    method.save(tmp_path / "m")
    with pytest.raises(ValueError, match=r"a Neighbours inside a CrossFit.* method=Neighbours\("):
        load(tmp_path / "m", task)
    back = load(tmp_path / "m", task, method=Neighbours(task, k=3))
    assert torch.equal(back.decide(x), method.decide(x))


# ---- settings


def test_settings_reach_the_method_inside(newsvendor):
    method = CrossFit(NearestNeighbours(newsvendor(), k=5), folds=3)
    other = method.changed(k=9, seed=7, folds=2, workers=3)
    assert (other.method.k, other.method.seed, other.seed) == (9, 7, 7)
    assert (other.folds, other.workers) == (2, 3)
    assert (method.method.k, method.seed, method.folds) == (5, 0, 3)
    task = newsvendor(2)
    assert method.changed(task=task).task is task
    assert method.changed(task=task).method.task is task
    names = method.setting_names()
    assert {"method", "folds", "workers", "most_scenarios"} < names
    assert {"task", "k", "solver", "seed"} < names
    replaced = method.changed(method=KernelSmoother(newsvendor()), width=0.5)
    assert replaced.method.width == 0.5


def test_how_the_method_inside_trains_is_known(newsvendor):
    task = newsvendor()
    assert CrossFit(small(task, "two-stage")).trains() is TOLD
    assert CrossFit(small(task, "neighbours")).trains() is None


def test_what_each_fit_chose_is_kept(newsvendor, demand, tiny):
    x, y = demand(40)
    method = CrossFit(tiny(newsvendor(), outcomes=Absolute()), folds=2).fit(x, y)
    assert method.chosen() == {"fits": [{"form": "absolute"}] * 2}


# ---- what is refused


@pytest.mark.parametrize("folds", [1, 0])
def test_fewer_than_two_folds_are_refused(newsvendor, folds):
    with pytest.raises(ValueError, match=f"CrossFit needs folds .* at least 2, but got {folds}"):
        CrossFit(NearestNeighbours(newsvendor()), folds=folds)


def test_more_folds_than_the_rows_allow_are_refused(newsvendor, demand):
    x, y = demand(19)
    with pytest.raises(
        ValueError, match="at least 4 rows in each of 5 folds, that is 20, but got"
    ):
        CrossFit(NearestNeighbours(newsvendor()), folds=5).fit(x, y)


@pytest.mark.parametrize("kind", [PolicyNet, Constant])
def test_a_method_without_scenarios_is_refused(newsvendor, kind):
    said = f"CrossFit mixes scenarios, and {kind.__name__} gives none"
    with pytest.raises(TypeError, match=said):
        CrossFit(kind(newsvendor()))


def test_what_is_no_method_is_refused(newsvendor, monkeypatch):
    import jaxtyping

    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    for wrong in (NearestNeighbours, newsvendor(), 3):
        with pytest.raises(TypeError, match="CrossFit needs method to be a Method, but got"):
            CrossFit(wrong)


@pytest.mark.parametrize("shown", [True, False])
def test_all_folds_advance_one_bar(newsvendor, demand, monkeypatch, shown):
    made = []

    def lines(title, total):
        made.append((title, total, []))
        return lambda done, note: made[-1][2].append(done)

    monkeypatch.setattr(progress, "_lines", lines)
    x, y = demand(40)
    told = replace(TOLD, progress=shown)
    CrossFit(DF2.quick(newsvendor(), training=told), folds=2).fit(x, y)
    if shown:
        ((title, total, done),) = made
        assert (title, total) == ("DF2, 2 folds", 2)
        assert done == [0.5, 1.0, 1, 1.5, 2.0, 2]  # two epochs for each of two folds
    else:
        assert made == []
