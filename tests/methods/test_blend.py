"""Blend: what is fitted, what is dropped, how candidates are weighted, saved and refused."""

from dataclasses import dataclass, replace
from functools import partial

import jaxtyping
import pytest
import torch
from torch import nn

from costscape import (
    DF2,
    MLP,
    Absolute,
    Auto,
    Blend,
    Constant,
    CrossFit,
    Greedy,
    KernelSmoother,
    Mixture,
    NearestNeighbours,
    PolicyNet,
    RandomForest,
    Scenarios,
    SlopeWeights,
    Training,
    TwoStage,
    evaluate,
    load,
)
from costscape.checks import check_method
from costscape.data import Dataset
from costscape.methods import blend as module
from costscape.methods.blend import default_candidates, names_of
from costscape.methods.selection import Selection
from costscape.methods.surfaces import ScenarioMethod
from costscape.training import Diverged

TOLD = Training(epochs=2, batch_size=16, progress=False)


@dataclass
class Far(ScenarioMethod):
    """One outcome whatever x is: as good as ``at`` is near."""

    task: object
    at: float = 0.0
    solver: object = Auto()
    seed: int = 0
    count = 0

    def _fit(self, train, val):
        Far.count += 1
        self.task_ = self.task
        self.model_ = _Point(self.at)

    def _facts(self):
        return {}

    def _rebuild(self, facts):
        return _Point(self.at)


class _Point(nn.Module):
    def __init__(self, at):
        super().__init__()
        self.register_buffer("at", torch.tensor(at))

    def forward(self, x):
        values = self.at.expand(len(x), 1, 1)
        return Scenarios(x.new_ones(len(x), 1), values, own=True)


@pytest.fixture
def small(newsvendor):
    """small(task): candidates that are fitted quickly."""

    def make(task=None):
        task = task or newsvendor()
        encoder = partial(MLP, 2, hidden=8)
        return [
            NearestNeighbours(task, k=7),
            KernelSmoother(task, width=0.3),
            DF2(task, encoder, points=9, outcomes=Absolute(), folds=1, training=TOLD),
            TwoStage(task, Mixture(2), 20, encoder, training=TOLD),
        ]

    return make


def fitted(methods, x, y, **settings):
    return Blend(methods[0].task, methods, **{"folds": 3, **settings}).fit(x, y)


# ---- weights


@pytest.mark.parametrize("selection", [Greedy(), SlopeWeights()], ids=str)
def test_weights_are_on_the_simplex_and_shared_among_folds(small, demand, selection):
    x, y = demand(60)
    blend = fitted(small(), x, y, selection=selection)
    names = ["NearestNeighbours", "KernelSmoother", "DF2 absolute", "TwoStage"]
    assert list(blend.weights_) == [line.name for line in blend.held_out_] == names
    assert sum(blend.weights_.values()) == pytest.approx(1, abs=1e-9)
    assert min(blend.weights_.values()) >= 0
    assert sum(blend.shares_) == pytest.approx(1)
    for job, share in zip(blend.jobs_, blend.shares_, strict=True):
        assert share == pytest.approx(blend.weights_[names[job.candidate]] / 3)
    g = sum(
        share * fit.expected_cost(x, y)
        for fit, share in zip(blend.fits_, blend.shares_, strict=True)
    )
    assert torch.allclose(blend.expected_cost(x, y), g, atol=1e-5)
    assert blend.chosen()["weights"] == blend.weights_


def test_fits_of_a_blend_are_those_of_crossfit(small, demand):
    x, y = demand(60)
    methods = small()
    blend = fitted(methods, x, y, selection=SlopeWeights())
    for c, method in enumerate(methods):
        alone = CrossFit(method, folds=3).fit(x, y)
        ours = [fit for fit, job in zip(blend.fits_, blend.jobs_, strict=True)
                if job.candidate == c]  # fmt: skip
        for one, other in zip(ours, alone.fits_, strict=False):
            a, b = one.model_.state_dict(), other.model_.state_dict()
            assert all(torch.equal(a[k], b[k]) for k in a)
    assert len(blend.fits_) == 3 * sum(w > 0 for w in blend.weights_.values())


def test_the_table_has_what_decisions_cost_on_held_out_rows(newsvendor, demand):
    x, y = demand(60)
    task = newsvendor()
    blend = fitted([Far(task, 2.0), Far(task, 1.9)], x, y)
    held = torch.cat([y[42:], y[22:38], y[2:18]])  # less a tenth of each fold at its edges
    for line, at in zip(blend.held_out_, (2.0, 1.9), strict=True):
        cost = task.cost(held, torch.full_like(held, at))
        assert line.cost == pytest.approx(float(cost.mean()), rel=0.01)
        assert 0 < line.standard_error < float(cost.std())
        assert line.folds == 3


def test_a_hopeless_candidate_is_fitted_once_and_has_no_weight(newsvendor, demand):
    x, y = demand(80)
    task = newsvendor()
    Far.count = 0
    blend = fitted([NearestNeighbours(task, k=9), Far(task, 0.0), KernelSmoother(task)], x, y)
    near, far, _ = blend.held_out_
    assert Far.count == far.folds == 1
    assert far.weight == blend.weights_["Far"] == 0
    assert near.folds == 3
    assert far.cost > near.cost + 3 * far.standard_error
    assert {job.candidate for job in blend.jobs_} <= {0, 2}


class Diverges(Far):
    """Finds no fit where a row with y above 50 is held out."""

    def _fit(self, train, val):
        if (val.y > 50).any():
            raise Diverged("The training loss became nan.")
        super()._fit(train, val)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("row", [5, 55])  # of the last fold and of the first one
def test_a_candidate_that_diverges_is_left_out_with_a_warning(newsvendor, demand, row, workers):
    x, y = demand(60)
    y[row] = 60.0
    task = newsvendor()
    with pytest.warns(UserWarning, match=r"^Diverges is left out of the blend. The training loss"):
        blend = fitted([NearestNeighbours(task, k=9), Diverges(task, 2.0)], x, y, workers=workers)
    assert blend.weights_["NearestNeighbours"] == 1
    assert {job.candidate for job in blend.jobs_} == {0}
    assert len(blend.fits_) == 3
    assert blend.decide(x).isfinite().all()


def test_where_all_candidates_diverge_the_error_says_why(newsvendor, demand):
    x, y = demand(60)
    y[5] = 60.0
    with pytest.raises(RuntimeError, match="training loss became nan"):
        fitted([Diverges(newsvendor(), 2.0)], x, y)


def test_as_good_candidates_are_all_fitted_to_every_fold(newsvendor, demand):
    x, y = demand(80)
    task = newsvendor()
    blend = fitted([NearestNeighbours(task, k=9), NearestNeighbours(task, k=10)], x, y)
    assert [line.folds for line in blend.held_out_] == [3, 3]
    assert [line.name for line in blend.held_out_] == [f"NearestNeighbours {i}" for i in (1, 2)]


def test_a_single_candidate_has_all_the_weight(newsvendor, demand):
    x, y = demand(60)
    blend = fitted([NearestNeighbours(newsvendor(), k=9)], x, y)
    assert blend.weights_ == {"NearestNeighbours": 1.0}
    alone = CrossFit(NearestNeighbours(newsvendor(), k=9), folds=3).fit(x, y)
    assert torch.equal(blend.decide(x), alone.decide(x))


@pytest.mark.parametrize("seed", range(3))
def test_a_blend_is_not_worse_than_its_worst_candidate_on_new_rows(small, demand, seed):
    x, y = demand(90, seed=seed)
    new, then = demand(200, seed=100 + seed)
    methods = small()
    costs = [evaluate(CrossFit(m, folds=3).fit(x, y), new, then).cost for m in methods]
    assert evaluate(fitted(methods, x, y), new, then).cost <= max(costs) + 1e-6


def test_two_candidates_with_opposite_errors_do_better_together(newsvendor, demand):
    # the best constant stock is between 1.0 and 3.0, which are both far off
    x, y = demand(80)
    task = newsvendor()
    blend = fitted([Far(task, 3.0), Far(task, 1.0)], x, y)
    alone = [float(task.cost(y, torch.full_like(y, at)).mean()) for at in (3.0, 1.0)]
    assert evaluate(blend, x, y).cost <= min(alone) + 1e-6


def test_no_more_scenarios_than_asked_for(small, demand):
    x, y = demand(60)
    blend = fitted(small(), x, y, most_scenarios=13)
    s = blend.scenarios(x)
    assert s.weights.shape == (60, 13)
    assert torch.allclose(s.weights, torch.full_like(s.weights, 1 / 13))


# ---- the contract, saving


def test_a_blend_keeps_the_contract(small, demand, newsvendor):
    x, y = demand(48)
    check_method(Blend(task := newsvendor(), small(task), folds=2), x, y)


def test_a_loaded_blend_answers_bit_for_bit_as_before(small, demand, newsvendor, tmp_path):
    x, y = demand(60)
    blend = fitted(small(), x, y, selection=SlopeWeights())
    blend.save(tmp_path / "m")
    back = load(tmp_path / "m", newsvendor())
    assert torch.equal(back.decide(x), blend.decide(x))
    assert back.weights_ == blend.weights_
    assert back.held_out_ == blend.held_out_
    assert back.to_json() == blend.to_json()
    back.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "m").read_bytes()


@dataclass(frozen=True)
class Even(Selection):
    def weights(self, parts):
        K = parts[0].expected.shape[1]
        return torch.full((K,), 1 / K, dtype=torch.float64)


@pytest.fixture
def quick_candidates(monkeypatch):
    """The usual candidates, fewer outcomes and trees."""
    real = default_candidates

    def made(*given):
        changes = {DF2: {"points": 5}, RandomForest: {"trees": 4}, NearestNeighbours: {"k": 7}}
        return [m.changed(**changes.get(type(m), {})) for m in real(*given)]

    monkeypatch.setattr(module, "default_candidates", made)
    monkeypatch.setattr("costscape.methods.ensemble.BEHIND", 1e9)  # none is left out


@pytest.mark.parametrize("low", [0.0, -2.0], ids=["positive", "of both signs"])
def test_the_usual_candidates_of_a_series_come_back(
    newsvendor, demand, tmp_path, quick_candidates, low
):
    # window levels suit a series of non-negative numbers only
    _, y = demand(40)
    x = y[:, None] + low + 0.1 * torch.rand(40, 4, 1)
    settings = {"folds": 2, "selection": Even(), "training": replace(TOLD, epochs=1)}
    blend = Blend(newsvendor(), **settings).fit(x, y)
    levels = "DF2 window-levels of anchored" in blend.weights_
    assert levels == (low == 0.0)
    assert [*blend.weights_][-3:] == ["TwoStage", "RandomForest", "NearestNeighbours"]
    assert min(blend.weights_.values()) > 0
    blend.save(tmp_path / "m")
    back = load(tmp_path / "m", newsvendor(), selection=Even())
    assert torch.equal(back.decide(x), blend.decide(x))


def test_the_usual_candidates_are_those_documented(newsvendor, demand):
    x, y = demand(40)
    made = default_candidates(newsvendor(), Dataset(x, y), TOLD, Auto(), 3)
    assert names_of(made) == [
        *("DF2 absolute", "DF2 anchored", "DF2 location-scale"),
        *("TwoStage", "RandomForest", "NearestNeighbours"),
    ]
    assert all(m.seed == 3 for m in made)
    assert all(m.training is TOLD for m in made[:4])


# ---- settings


def test_task_seed_and_training_reach_the_candidates(small, newsvendor):
    blend = Blend(task := newsvendor(), small(task))
    other = newsvendor(2)
    changed = blend.changed(task=other, seed=5, training=Training(epochs=9), folds=2)
    assert all(m.task is other and m.seed == 5 for m in changed.methods)
    assert [m.training.epochs for m in changed.methods if m.trains()] == [9, 9]
    assert (changed.folds, changed.seed) == (2, 5)
    assert all(m.task is task and m.seed == 0 for m in blend.methods)
    assert Blend(task).changed(seed=4).methods is None


# ---- what is refused, before anything is fitted


@pytest.fixture
def untyped(monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


@pytest.mark.parametrize(
    ("methods", "error", "message"),
    [
        ([], ValueError, "Blend needs a list of at least one method, but got"),
        (3, TypeError, "Blend needs methods to be a Sequence or None, but got 3"),
    ],
)
def test_a_list_without_methods_is_refused(newsvendor, untyped, methods, error, message):
    with pytest.raises(error, match=message):
        Blend(newsvendor(), methods)


def test_candidates_of_another_task_are_refused(newsvendor):
    with pytest.raises(ValueError, match="candidates for one task, but its NearestNeighbours was"):
        Blend(newsvendor(), [NearestNeighbours(newsvendor())])


@pytest.mark.parametrize("kind", [PolicyNet, Constant])
def test_methods_without_scenarios_are_refused(newsvendor, kind):
    task = newsvendor()
    with pytest.raises(TypeError, match=f"Blend mixes scenarios, and {kind.__name__} gives none"):
        Blend(task, [NearestNeighbours(task), kind(task)])


def test_what_is_no_method_is_refused(newsvendor, untyped):
    task = newsvendor()
    with pytest.raises(TypeError, match=r"Blend needs unfitted methods .* but got str"):
        Blend(task, [NearestNeighbours(task), "DF2"])


def test_folds_that_cannot_be_had_are_refused(newsvendor, demand):
    task = newsvendor()
    with pytest.raises(ValueError, match="Blend needs folds to be a whole number of at least 2"):
        Blend(task, folds=1)
    x, y = demand(10)
    Far.count = 0
    with pytest.raises(ValueError, match="Blend needs at least 4 rows in each of 3 folds"):
        fitted([Far(task)], x, y)
    assert Far.count == 0


class Mine(nn.Module):
    out_features = 4

    def __init__(self):
        super().__init__()
        self.net = nn.Linear(2, 4)

    def forward(self, x):
        return self.net(x)


def test_code_of_the_users_own_inside_is_passed_to_load(newsvendor, demand, tmp_path):
    x, y = demand(48)

    def methods(task):
        return [NearestNeighbours(task, k=5), TwoStage(task, Mixture(2), 20, Mine, training=TOLD)]

    blend = fitted(methods(newsvendor()), x, y, selection=SlopeWeights())
    blend.save(tmp_path / "m")
    with pytest.raises(ValueError, match=r"encoder=Mine.* load\(path, task, methods=\[\.\.\.\]\)"):
        load(tmp_path / "m", newsvendor())
    task = newsvendor()
    back = load(tmp_path / "m", task, methods=methods(task))
    assert torch.equal(back.decide(x), blend.decide(x))
