"""What the settings of DF2 do to its network."""

import pytest
import torch

from costscape import (
    DF2,
    Absolute,
    Anchored,
    Auto,
    Box,
    Costs,
    Greedy,
    LocationScale,
    Slopes,
    SlopeWeights,
    Task,
    Training,
    WindowLevels,
    load,
)
from costscape.data import Dataset
from costscape.methods.ensemble import Blended
from costscape.models import OutcomeNetwork, outcome_network
from costscape.scenarios import ExpectedCost
from costscape.training.settings import RATE

FORMS = [
    Absolute(),
    Anchored(),
    LocationScale(),
    WindowLevels(Anchored()),
    WindowLevels(Absolute()),
    WindowLevels(LocationScale()),
]


def name(form):
    return type(form).__name__ + type(getattr(form, "of", "")).__name__


@pytest.mark.parametrize("form", FORMS, ids=name)
def test_a_change_of_the_unit_of_everything_changes_nothing_else(newsvendor, demand, tiny, form):
    # a power of two is exact in floating point, so answers agree to the last bit
    x, y = demand(60)
    one = tiny(newsvendor(), outcomes=form).fit(x, y)
    four = tiny(newsvendor(upper=16.0), outcomes=form).fit(4 * x, 4 * y)
    assert torch.equal(four.decide(4 * x), 4 * one.decide(x))
    assert torch.equal(four.scenarios(4 * x).weights, one.scenarios(x).weights)


@pytest.mark.parametrize("of", [Absolute(), Anchored(), LocationScale()], ids=name)
def test_with_window_levels_scenarios_grow_with_the_window(newsvendor, demand, tiny, of):
    x, y = demand(60)
    model = tiny(newsvendor(), outcomes=WindowLevels(of)).fit(1 + x, y)
    before, after, tripled = (model.scenarios(c * (1 + x)) for c in (1, 8, 3))
    assert torch.equal(after.values, 8 * before.values)
    assert torch.equal(after.weights, before.weights)
    assert torch.allclose(tripled.values, 3 * before.values, rtol=1e-4)


def test_without_window_levels_scenarios_do_not_grow_with_the_window(newsvendor, demand, tiny):
    x, y = demand(60)
    model = tiny(newsvendor(), outcomes=Absolute()).fit(1 + x, y)
    assert torch.equal(model.scenarios(8 + 8 * x).values, model.scenarios(1 + x).values)


@pytest.mark.parametrize("form", [Absolute(), WindowLevels(Absolute())], ids=name)
def test_values_that_are_not_learned_stay_labels(newsvendor, demand, tiny, form):
    x, y = demand(60)
    x = 1 + x

    def away(learn):
        told = {"lr": 0.05, "batch_size": 8}
        model = tiny(newsvendor(), told, outcomes=form, learn_values=learn).fit(x, y, val=(x, y))
        labels = model.model_.units.standard(x, y)
        return (model.model_.v[:, None] - labels).abs().amin(1).max()

    assert away(learn=False) < 1e-6
    assert away(learn=True) > 1e-3


def test_without_standardising_the_network_sees_x_and_y_in_their_own_units(
    newsvendor, demand, tiny
):
    x, y = demand(60)
    for wanted in (True, False):
        model = tiny(newsvendor(), outcomes=Absolute(), standardise=wanted, learn_values=False)
        net = model.fit(1 + 5 * x, y, val=(x, y)).model_
        assert torch.equal(net.units.x_scaler(x), x) is not wanted
        assert torch.equal(net.units.y_scaler(y), y) is not wanted
        seen = y if not wanted else (y - y.mean()) / y.std(correction=0)
        assert (net.v[:, None] - seen).abs().amin(1).max() < 1e-5


def test_points_and_actions_depend_on_the_form_where_none_are_asked_for(
    newsvendor, demand, tiny, monkeypatch
):
    x, y = demand(300)
    asked, real = [], Slopes.actions
    monkeypatch.setattr(
        Slopes, "actions", lambda t, task, n, J, rng: asked.append(J) or real(t, task, n, J, rng)
    )
    for form, points, actions in (
        (Absolute(), 200, 50),
        (Anchored(), 64, 12),
        (LocationScale(), 64, 12),
    ):
        model = tiny(newsvendor(), {"epochs": 1, "batch_size": 300}, outcomes=form, points=None)
        asked.clear()
        model.fit(x, y, val=(x, y))
        assert model.scenarios(x[:2]).weights.shape == (2, points)
        assert asked[-2:] == [actions] * 2  # of the cost and of the outcomes


def test_there_are_no_more_points_than_training_rows(newsvendor, demand, tiny):
    x, y = demand(20)
    model = tiny(newsvendor(), outcomes=Absolute(), points=100).fit(x, y)
    assert model.scenarios(x).weights.shape == (20, 16)


def test_as_in_paper_is_the_papers_setting(newsvendor):
    model = DF2.as_in_paper(newsvendor(), training=Training(epochs=7, lr=0.5))
    told = {k: v for k, v in vars(model).items() if k != "task"}
    assert told == {
        "encoder": None,
        "points": 1000,
        "actions": 100,
        "share_actions": True,
        "learn_values": True,
        "outcomes": Absolute(),
        "target": Costs(weighting=False, by_coordinate=False),
        "outcome_share": 0.0,
        "ema": None,
        "folds": 1,
        "selection": Greedy(),
        "most_scenarios": 4000,
        "standardise": False,
        "solver": Auto(),
        "training": Training(epochs=7, lr=0.5, decay=False),
        "choose_epoch": False,
        "workers": 1,
        "seed": 0,
    }
    plain = Training(epochs=50, lr=1e-3, decay=False)
    assert DF2.as_in_paper(newsvendor()).training == plain
    assert not DF2.as_in_paper(newsvendor(), share_actions=False).share_actions


def test_the_defaults_are_those_documented(newsvendor):
    told = {k: v for k, v in vars(DF2(newsvendor())).items() if k != "task"}
    assert told == {
        "encoder": None,
        "points": None,
        "actions": None,
        "share_actions": True,
        "learn_values": True,
        "outcomes": None,
        "target": Slopes(),
        "outcome_share": 0.3,
        "ema": 0.995,
        "folds": 4,
        "selection": Greedy(),
        "most_scenarios": 4000,
        "standardise": True,
        "solver": Auto(),
        "training": Training(),
        "choose_epoch": True,
        "workers": 1,
        "seed": 0,
    }
    assert Training().decay


@pytest.mark.parametrize(("told", "rate"), [({}, RATE), ({"lr": 0.5}, 0.5)])
def test_the_rate_is_that_of_all_networks_unless_one_is_given(
    newsvendor, demand, tiny, monkeypatch, told, rate
):
    rates = []
    real = torch.optim.Adam
    monkeypatch.setattr(torch.optim, "Adam", lambda p, lr, **rest: rates.append(lr) or real(p, lr))
    x, y = demand(20)
    tiny(newsvendor(), {"epochs": 1, **told}, folds=2, outcomes=Anchored()).fit(x, y)
    assert rates == [rate] * 2


def test_as_in_paper_keeps_the_last_epoch(newsvendor, demand):
    x, y = demand(40)
    told = Training(epochs=3, progress=False)
    model = DF2.as_in_paper(newsvendor(), points=10, actions=5, training=told).fit(x, y)
    (history,) = model.history_
    assert (history.best_epoch, history.scores, len(history.losses)) == (2, [], 3)


# ---- folds


def test_one_fold_is_one_network(newsvendor, demand, tiny):
    x, y = demand(40)
    model = tiny(newsvendor()).fit(x, y)
    assert type(model.model_) is OutcomeNetwork
    assert model.model_.shift is not None  # anchored, where no form is given
    assert model.chosen() == {"form": "anchored"}
    assert len(model.history_) == 1


def test_quick_is_one_network_of_the_usual_form(newsvendor):
    told = {k: v for k, v in vars(DF2.quick(newsvendor(), seed=3)).items() if k != "task"}
    usual = {k: v for k, v in vars(DF2(newsvendor())).items() if k != "task"}
    assert told == {**usual, "folds": 1, "seed": 3}
    assert DF2.quick(newsvendor(), training=Training(epochs=3)).training.epochs == 3


def test_folds_of_a_form_are_the_union_of_networks_with_other_seeds_and_rows(
    newsvendor, demand, tiny
):
    x, y = demand(40)
    task = newsvendor()
    both = tiny(task, outcomes=Absolute(), folds=2, seed=5).fit(x, y)
    assert type(both.model_) is Blended
    by_hand = [
        tiny(task, outcomes=Absolute(), seed=5).fit(x[:20], y[:20], val=(x[22:], y[22:])),
        tiny(task, outcomes=Absolute(), seed=1005).fit(x[20:], y[20:], val=(x[2:18], y[2:18])),
    ]
    a, b = (one.scenarios(x) for one in by_hand)
    s = both.scenarios(x)
    assert not torch.equal(a.weights, b.weights)
    assert torch.equal(s.weights, torch.cat([a.weights, b.weights], 1) / 2)
    assert torch.equal(s.values, torch.cat([a.values, b.values], 1))
    at = y.unsqueeze(1)
    mean = (ExpectedCost(task, a)(at) + ExpectedCost(task, b)(at)) / 2
    assert torch.allclose(both.expected_cost(x, at), mean, atol=1e-5)
    assert both.history_ == [history for one in by_hand for history in one.history_]


@pytest.mark.parametrize("selection", [Greedy(), SlopeWeights()], ids=str)
def test_forms_are_blended_by_their_weights(newsvendor, demand, tiny, tmp_path, selection):
    x, y = demand(60)
    model = tiny(newsvendor(), outcomes=None, folds=2, selection=selection).fit(x, y)
    names = ["absolute", "anchored", "location-scale"]
    assert list(model.weights_) == [line.name for line in model.held_out_] == names
    assert sum(model.weights_.values()) == pytest.approx(1, abs=1e-9)
    assert min(model.weights_.values()) >= 0
    for job, share in zip(model.jobs_, model.shares_, strict=True):
        assert share == pytest.approx(model.weights_[names[job.candidate]] / 2)
    shown = model.chosen()
    assert shown["weights"] == model.weights_
    assert list(shown["held_out"]) == names
    g = sum(
        share * fit.expected_cost(x, y)
        for fit, share in zip(model.fits_, model.shares_, strict=True)
    )
    assert torch.allclose(model.expected_cost(x, y), g, atol=1e-5)
    model.save(tmp_path / "m")
    back = load(tmp_path / "m", newsvendor())
    assert back.weights_ == model.weights_
    assert back.held_out_ == model.held_out_
    assert torch.equal(back.decide(x), model.decide(x))


def test_a_form_that_is_asked_for_is_the_only_one_fitted(newsvendor, demand, tiny):
    x, y = demand(40)
    model = tiny(newsvendor(), {"epochs": 1}, outcomes=LocationScale(), folds=2).fit(x, y)
    assert model.weights_ == {"location-scale": 1.0}
    assert len(model.history_) == len(model.fits_) == 2


def test_scenarios_are_at_most_as_many_as_asked_for(newsvendor, demand, tiny):
    x, y = demand(40)
    model = tiny(newsvendor(), outcomes=Absolute(), folds=2, points=20, most_scenarios=7)
    assert model.fit(x, y).scenarios(x).weights.shape == (40, 7)


# ---- the forms that suit the data


def suited(x_shape, y_shape, least_x=0.0, least_y=0.0):
    x, y = (torch.rand(40, *shape) for shape in (x_shape, y_shape))
    x.flatten()[-1], y.flatten()[-1] = least_x, least_y
    return outcome_network.suitable(x, y)


PLAIN = [Absolute(), Anchored(), LocationScale()]


@pytest.mark.parametrize(
    ("given", "found"),
    [
        pytest.param([(2,), (1,)], PLAIN, id="rows"),
        pytest.param([(6, 1), (3,)], [*PLAIN, WindowLevels()], id="one series"),
        pytest.param([(6, 2), (3,)], PLAIN, id="two channels"),
        pytest.param([(6, 1), (3, 2)], PLAIN, id="a matrix of outcomes"),
        pytest.param([(6, 1), (3,), -0.1], PLAIN, id="a negative past"),
        pytest.param([(6, 1), (3,), 0.0, -0.1], PLAIN, id="a negative future"),
        pytest.param([(1001,), (21,)], PLAIN, id="many features"),
        pytest.param([(1001, 1), (3,)], [*PLAIN, WindowLevels()], id="a long series"),
    ],
)
def test_the_forms_that_suit_the_data(given, found):
    assert suited(*given) == found


def test_forms_have_names_and_numbers_of_points():
    names = [
        outcome_network.name_of(form)
        for form in (*PLAIN, WindowLevels(), WindowLevels(Absolute()))
    ]
    assert names == [
        *("absolute", "anchored", "location-scale"),
        *("window-levels of anchored", "window-levels of absolute"),
    ]
    assert [outcome_network.usual_points(form) for form in PLAIN] == [200, 64, 64]


def test_what_is_not_given_is_recorded(newsvendor, demand):
    x, y = demand(40)
    data = Dataset(x, y)
    found = DF2(newsvendor()).resolved_defaults(data)
    assert [form["is"] for form in found["forms"]] == ["Absolute", "Anchored", "LocationScale"]
    assert found["points"] == [200, 64, 64]
    assert found["rate"] == 3e-3
    assert found["encoder"] == {"partial": "MLP", "args": [2], "kwargs": {"layers": 2}}
    assert DF2(newsvendor(), points=9, folds=1).resolved_defaults(data)["points"] == [9]


# ---- settings out of range


@pytest.mark.parametrize("setting", ["points", "actions", "folds", "workers", "most_scenarios"])
def test_a_count_below_one_is_refused(newsvendor, setting):
    with pytest.raises(ValueError, match=f"DF2 needs {setting} to be a whole .* 1.* but got 0"):
        DF2(newsvendor(), **{setting: 0})


@pytest.mark.parametrize("ema", [0.0, 1.0, -0.5, 2.0])
def test_an_average_out_of_range_is_refused(newsvendor, ema):
    with pytest.raises(ValueError, match=f"DF2 needs ema .* above 0 and below 1 .* got {ema}"):
        DF2(newsvendor(), ema=ema)


def test_a_level_that_is_no_level_is_refused_at_fit(newsvendor, demand, tiny):
    x, y = demand(20)
    bad = WindowLevels(level=lambda x: x.sum(1) - 10)
    with pytest.raises(ValueError, match="one non-negative number for each window, shape"):
        tiny(newsvendor(), outcomes=bad).fit(x, y)


def test_by_coordinate_is_for_separable_tasks_and_ignored_for_others(demand, tiny, newsvendor):
    x, y = demand(40, dim=2)

    def losses(task, by_coordinate):
        target = Costs(by_coordinate=by_coordinate)
        settings = {"outcomes": Absolute(), "outcome_share": 0.0, "target": target}
        return tiny(task, **settings).fit(x, y).history_[0].losses

    separable = newsvendor(2)
    joint = Task(separable.cost, Box(0.0, 4.0, dim=2))
    assert losses(separable, True) != losses(separable, False)
    assert losses(joint, True) == losses(joint, False)


def test_very_wide_x_has_a_linear_map_that_a_model_file_keeps(newsvendor, tiny, tmp_path):
    x, y = torch.rand(20, 1001), torch.rand(20, 1)
    model = tiny(newsvendor(), encoder=None, outcomes=LocationScale(), folds=1).fit(x, y)
    assert isinstance(model.model_.line, torch.nn.Sequential)
    model.save(tmp_path / "m")
    again = load(tmp_path / "m", newsvendor())
    assert torch.equal(again.decide(x), model.decide(x))
