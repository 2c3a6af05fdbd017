"""What the settings of DF2 do to its network."""

import pytest
import torch
from torch import nn

from costscape import (
    DF2,
    Absolute,
    Anchored,
    Box,
    Changes,
    Costs,
    Damped,
    LocationScale,
    Refined,
    Slopes,
    Task,
    Training,
    WindowLevels,
    load,
    train,
)
from costscape.data import Dataset
from costscape.methods import df2, forms
from costscape.models import AnchoredValues, Attention, LocationScaleNetwork, Values
from costscape.scenarios import ExpectedCost


def first(x):
    """Something of the shape of y and near it."""
    return x[:, :1]


FORMS = [
    Absolute(),
    Anchored(epochs=2),
    LocationScale(),
    WindowLevels(Anchored(epochs=2)),
    WindowLevels(Absolute()),
    WindowLevels(LocationScale()),
    Changes(first, Absolute()),
    Changes(first, LocationScale()),
    Refined(epochs=2),
    WindowLevels(Refined(epochs=2)),
    Changes(Damped(first), Refined(epochs=2)),
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


@pytest.mark.parametrize("of", [Absolute(), Anchored(epochs=2), LocationScale()], ids=name)
def test_with_window_levels_scenarios_grow_with_the_window(newsvendor, demand, tiny, of):
    x, y = demand(60)
    model = tiny(newsvendor(), outcomes=WindowLevels(of)).fit(1 + x, y)
    before, after, tripled = (model.scenarios(c * (1 + x)) for c in (1, 8, 3))
    assert torch.equal(after.values, 8 * before.values)
    assert torch.equal(after.weights, before.weights)
    assert torch.allclose(tripled.values, 3 * before.values, rtol=1e-4)


def test_changes_are_the_same_for_all_x_around_a_base_that_is_not(newsvendor, demand, tiny):
    x, y = demand(60)
    s = tiny(newsvendor(), outcomes=Changes(first, Absolute())).fit(x, y).scenarios(x)
    changes = s.values - first(x).unsqueeze(1)
    assert torch.allclose(changes, changes[:1], atol=1e-5)
    assert not torch.allclose(s.values, s.values[:1], atol=1e-2)


def test_changes_from_a_series_that_grew_decide_beyond_all_labels(newsvendor, tiny):
    rng = torch.Generator().manual_seed(0)
    x = 1 + torch.rand(200, 2, generator=rng)
    y = first(x) + 0.1 * torch.rand(200, 1, generator=rng)
    task = newsvendor(upper=100.0)
    grown = tiny(task, outcomes=Changes(first, Absolute())).fit(x, y).decide(x + 50)
    past = first(x) + 50
    assert ((grown >= past) & (grown <= past + 0.1)).float().mean() > 0.9
    assert (tiny(task, outcomes=Absolute()).fit(x, y).decide(x + 50) < 3).all()


def test_without_window_levels_scenarios_do_not_grow_with_the_window(newsvendor, demand, tiny):
    x, y = demand(60)
    model = tiny(newsvendor(), outcomes=Absolute()).fit(1 + x, y)
    assert torch.equal(model.scenarios(8 + 8 * x).values, model.scenarios(1 + x).values)


def test_anchored_outcomes_start_as_residuals_of_a_fitted_location(
    newsvendor, demand, tiny, monkeypatch
):
    real, titles = df2.fit_network, []

    def anchor_only(*args, title, **settings):
        titles.append(title)
        return real(*args, title=title, **settings) if title == "DF2 anchor" else train.History()

    monkeypatch.setattr(df2, "fit_network", anchor_only)
    x, y = demand(200)
    settings = {"outcomes": Anchored(epochs=30), "points": 50, "refit": False}
    model = tiny(newsvendor(), {"lr": 0.01}, **settings).fit(x, y, val=(x, y))
    assert titles == ["DF2 anchor", "DF2 anchored-0"]
    net = model.model_.members[0]
    # at the row an outcome was taken from, m(x) + residual is that row's label
    off = (net(x).values - y[:, None]).abs()[..., 0].amin(0)
    assert off.shape == (50,)
    assert off.max() < 1e-5
    assert torch.equal(net.values.log_scale.weight, torch.zeros_like(net.values.log_scale.weight))
    # m has learned E[y | x] = 1.5 + x_0: the residual variance is that of the noise, 1 / 12
    residual = y - net.units.y_scaler.undo(net.location(x)).detach()
    assert float(residual.var()) == pytest.approx(1 / 12, rel=0.25)
    assert float(y.var()) > 0.14


def test_a_refined_forecast_is_chosen_by_its_decisions_and_then_may_stay(
    newsvendor, demand, tiny, monkeypatch
):
    real, told, best = df2.fit_network, {}, []

    def noted(model, *args, title, score, start, ema, **settings):
        told[title] = (score is not None, start, ema)
        if title == "DF2 anchor":
            m = model.units.undo(x, model.location(x)).detach()
            paid = task.cost(y, m.clamp(0, 4)).mean()
            assert score(model.eval()) == pytest.approx(float(paid), rel=1e-2)  # on a coarse grid
        history = real(model, *args, title=title, score=score, start=start, ema=ema, **settings)
        best.append(history.best)
        return history

    monkeypatch.setattr(df2, "fit_network", noted)
    x, y = demand(200)
    task = newsvendor(upper=4.0)
    settings = {"outcomes": Refined(20), "points": 50, "ema": 0.9, "refit": False}
    model = tiny(task, {"lr": 0.01, "epochs": 3}, **settings).fit(x, y, val=(x, y))
    assert told == {"DF2 anchor": (True, False, 0.9), "DF2 refined-0": (True, True, 0.9)}
    # as it came it decides as the history says, if it stayed
    stayed = model.history_[0].best_epoch == -1
    paid = task.cost(y, model.decide(x)).mean()
    assert float(paid) == pytest.approx(best[1], rel=1e-2 if stayed else 0.1)


def test_without_a_choice_of_epochs_a_refined_forecast_is_the_last(newsvendor, demand, tiny):
    x, y = demand(60)
    model = tiny(newsvendor(), {"epochs": 2}, outcomes=Refined(2), choose_epoch=False).fit(x, y)
    assert model.history_[0].best_epoch == 1
    assert model.history_[0].scores == []


@pytest.mark.parametrize("form", [Absolute(), WindowLevels(Absolute())], ids=name)
def test_values_that_are_not_learned_stay_labels(newsvendor, demand, tiny, form):
    x, y = demand(60)
    x = 1 + x

    def away(learn):
        told = {"lr": 0.05, "batch_size": 8}
        model = tiny(newsvendor(), told, outcomes=form, learn_values=learn).fit(x, y, val=(x, y))
        net = model.model_.members[0]
        labels = net.units.standard(x, y)
        return (net.values.v[:, None] - labels).abs().amin(1).max()

    assert away(learn=False) < 1e-6
    assert away(learn=True) > 1e-3


def test_anchored_values_that_are_not_learned_stay_residuals(newsvendor, demand, tiny):
    x, y = demand(60)
    model = tiny(newsvendor(), outcomes=Anchored(epochs=2), learn_values=False).fit(x, y)
    net = model.model_.members[0]
    assert "values.values.v" not in dict(net.named_parameters())
    assert "values.values.v" in net.state_dict()


def test_location_scale_values_that_are_not_learned_stay_residuals(newsvendor, demand, tiny):
    x, y = demand(60)

    def moved(learn):
        told = {"lr": 0.05, "batch_size": 8}
        settings = {"outcomes": LocationScale(), "learn_values": learn, "points": 60}
        net = tiny(newsvendor(), told, **settings).fit(x, y, val=(x, y)).model_.members[0]
        fresh = LocationScaleNetwork(
            nn.Linear(2, 1), net.units, x, y, torch.arange(60), learn
        ).values.v
        return (net.values.v[:, None] - fresh).abs().amin(1).max()

    assert moved(learn=False) < 1e-6
    assert moved(learn=True) > 1e-3


def test_without_standardising_the_network_sees_x_and_y_in_their_own_units(
    newsvendor, demand, tiny
):
    x, y = demand(60)
    for wanted in (True, False):
        model = tiny(newsvendor(), outcomes=Absolute(), standardise=wanted, learn_values=False)
        net = model.fit(1 + 5 * x, y, val=(x, y)).model_.members[0]
        assert torch.equal(net.units.x_scaler(x), x) is not wanted
        assert torch.equal(net.units.y_scaler(y), y) is not wanted
        seen = y if not wanted else (y - y.mean()) / y.std(correction=0)
        assert (net.values.v[:, None] - seen).abs().amin(1).max() < 1e-5


def test_points_and_actions_depend_on_the_form_where_none_are_asked_for(newsvendor, demand, tiny):
    x, y = demand(700)
    shared, own, fixed = (500, 100), (100, 32), (400, 32)
    forms = {Absolute(): shared, Anchored(epochs=1): own, LocationScale(): fixed}
    for form, (points, actions) in forms.items():
        task = newsvendor()
        draw, asked = task.feasible.sample, []
        task.feasible.sample = lambda n, rng, d=draw, a=asked: a.append(n) or d(n, rng)
        model = tiny(task, {"epochs": 1, "batch_size": 700}, outcomes=form, points=None)
        model.fit(x, y, val=(x, y))
        assert model.scenarios(x[:2]).weights.shape == (2, points)
        assert max(asked) == actions


def test_there_are_no_more_points_than_training_rows(newsvendor, demand, tiny):
    x, y = demand(20)
    for refit, rows in ((False, 16), (True, 20)):
        model = tiny(newsvendor(), outcomes=Absolute(), points=100, refit=refit).fit(x, y)
        assert model.scenarios(x).weights.shape == (20, rows)


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
        "ema": None,
        "members": 1,
        "standardise": False,
        "solver": "auto",
        "training": Training(epochs=7, lr=0.5, decay=False),
        "choose_epoch": False,
        "refit": None,
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
        "ema": 0.995,
        "members": 5,
        "standardise": True,
        "solver": "auto",
        "training": Training(),
        "choose_epoch": True,
        "refit": None,
        "seed": 0,
    }
    assert Training().decay


@pytest.mark.parametrize(("told", "rate"), [({}, 1e-3), ({"lr": 0.5}, 0.5)])
def test_the_rate_is_the_papers_unless_one_is_given(
    newsvendor, demand, tiny, monkeypatch, told, rate
):
    rates = []
    real = torch.optim.Adam
    monkeypatch.setattr(torch.optim, "Adam", lambda p, lr, **rest: rates.append(lr) or real(p, lr))
    x, y = demand(20)
    tiny(newsvendor(), {"epochs": 1, **told}, outcomes=Anchored(epochs=1)).fit(x, y)
    assert rates == [rate] * 4  # of the anchor and the fit, and of both again
    assert train.RATE == 1e-3


def test_as_in_paper_keeps_the_last_epoch(newsvendor, demand):
    x, y = demand(40)
    told = Training(epochs=3, progress=False)
    model = DF2.as_in_paper(newsvendor(), points=10, actions=5, training=told).fit(x, y)
    (history,) = model.history_
    assert (history.best_epoch, history.scores, len(history.losses)) == (2, [], 3)


# ---- members


def test_members_are_the_union_of_fits_from_different_seeds(newsvendor, demand, tiny):
    x, y = demand()
    both = tiny(newsvendor(), outcomes=Absolute(), members=2).fit(x, y)
    one = tiny(newsvendor(), outcomes=Absolute(), members=1, refit=False).fit(x, y)
    a, b = (member(x) for member in both.model_.members)
    s = both.scenarios(x)
    assert torch.equal(a.weights, one.scenarios(x).weights)
    assert not torch.equal(a.weights, b.weights)
    assert torch.equal(s.weights, torch.cat([a.weights, b.weights], 1) / 2)
    assert torch.equal(s.values, torch.cat([a.values, b.values], 1))
    at = y.unsqueeze(1)
    with torch.no_grad():
        mean = (ExpectedCost(both.task, a)(at) + ExpectedCost(both.task, b)(at)) / 2
    assert torch.allclose(both.expected_cost(x, at), mean, atol=1e-5)
    assert len(both.history_) == 2


# ---- the choice between the forms


def test_the_first_form_stays_unless_a_later_one_is_cheaper_by_two_standard_errors():
    base = torch.zeros(100)
    noise = torch.randn(100, generator=torch.Generator().manual_seed(0))
    noise = (noise - noise.mean()) / noise.std()  # a difference of standard error 0.1
    assert forms.clearly_best([base, base]) == 0
    assert forms.clearly_best([base, noise + 1]) == 0
    assert forms.clearly_best([base, noise - 0.19]) == 0
    assert forms.clearly_best([base, noise - 0.21]) == 1
    assert forms.clearly_best([base, noise - 0.21, noise - 0.21 + 1e-3]) == 1
    assert forms.clearly_best([base, noise - 0.3, noise - 0.4]) == 2
    assert forms.clearly_best([base, noise - 0.19, noise - 0.21]) == 2  # against the first


def test_one_row_is_never_clear():
    assert forms.clearly_best([torch.ones(1), torch.zeros(1)]) == 0


def suited(x_shape, y_shape, least_x=0.0, least_y=0.0):
    level = torch.arange(1.0, 41.0)  # from row to row, of both
    x, y = (torch.einsum("n,n...->n...", level, torch.rand(40, *s)) for s in (x_shape, y_shape))
    x.flatten()[-1], y.flatten()[-1] = least_x, least_y
    return forms.suitable(Dataset(x, y))


PLAIN = [LocationScale(), Absolute(), Anchored()]


@pytest.mark.parametrize(
    ("follows", "suits"), [(1.0, True), (0.6, True), (0.3, False), (0.0, False)]
)
def test_window_levels_suit_where_the_outcome_follows_them(follows, suits):
    rng = torch.Generator().manual_seed(0)
    level, other = torch.rand(2, 500, generator=rng) + 0.5
    y = 40 * (follows * level + (1 - follows) * other)
    found = forms.suitable(Dataset(level.reshape(-1, 1, 1).expand(-1, 6, -1), y[:, None]))
    multiple = y / level
    steadier = multiple.std() / multiple.mean() < y.std() / y.mean()
    assert (WindowLevels() in found) == suits == bool(steadier)


@pytest.mark.parametrize(
    ("given", "forms"),
    [
        pytest.param([(2,), (1,)], PLAIN, id="rows"),
        pytest.param([(6, 1), (3,)], [*PLAIN, WindowLevels()], id="one series"),
        pytest.param([(6, 2), (3,)], PLAIN, id="two channels"),
        pytest.param([(6, 1), (3, 2)], PLAIN, id="a matrix to come"),
        pytest.param([(6, 1), (3,), -0.1], PLAIN, id="a negative past"),
        pytest.param([(6, 1), (3,), 0.0, -0.1], PLAIN, id="a negative future"),
        pytest.param([(1000,), (20,)], PLAIN, id="as large as may be"),
        pytest.param([(1001,), (1,)], PLAIN[1:], id="many features"),
        pytest.param([(1000,), (21,)], PLAIN[1:], id="many numbers in the line"),
        pytest.param([(1001, 1), (3,)], [*PLAIN[1:], WindowLevels()], id="a long series"),
    ],
)
def test_the_forms_that_suit_the_data_come_simplest_first(given, forms):
    assert suited(*given) == forms


def test_every_other_member_of_location_and_scale_has_lines(newsvendor, demand, tiny):
    x, y = demand(60)
    for form in (LocationScale(), WindowLevels(LocationScale()), Changes(first, LocationScale())):
        model = tiny(newsvendor(), {"epochs": 1}, outcomes=form, members=3).fit(x, y)
        assert [m.lines is not None for m in model.model_.members] == [False, True, False]
    for lines in (False, True):
        form = LocationScale(lines)
        model = tiny(newsvendor(), {"epochs": 1}, outcomes=form, members=2).fit(x, y)
        assert [m.lines is not None for m in model.model_.members] == [lines, lines]


LINES, NONE = LocationScale(lines=True), LocationScale(lines=False)


@pytest.mark.parametrize(
    ("given", "chosen", "found"),
    [
        pytest.param(PLAIN, 0, [NONE, LINES, NONE], id="the first"),
        pytest.param(PLAIN, 1, [Absolute()] * 3, id="absolute"),
        pytest.param(PLAIN, 2, [Anchored(), LINES, Anchored()], id="anchored"),
        *(
            pytest.param(
                [*PLAIN, WindowLevels()], i, [WindowLevels(), LINES, WindowLevels()], id=name
            )
            for i, name in ((0, "levels suit"), (2, "levels for anchored"), (3, "levels"))
        ),
        pytest.param(
            [*PLAIN, WindowLevels()], 1, [Absolute()] * 3, id="absolute where levels suit"
        ),
        pytest.param(PLAIN[1:], 1, [Anchored()] * 3, id="without location and scale"),
        pytest.param([Absolute()], 0, [Absolute()] * 3, id="asked for"),
    ],
)
def test_every_other_member_is_of_location_and_scale_beside_anchored_ones(given, chosen, found):
    assert forms.in_turn(given, chosen, 3) == found


def test_a_single_fit_has_the_form_that_was_chosen():
    given = [*PLAIN, WindowLevels()]
    found = [forms.in_turn(given, chosen, 1) for chosen in range(4)]
    assert found == [[NONE], [Absolute()], [Anchored()], [WindowLevels()]]


KINDS = {
    LocationScale(): lambda net: isinstance(net, LocationScaleNetwork),
    Absolute(): lambda net: isinstance(net, Attention) and type(net.values) is Values,
    Anchored(): lambda net: type(net.values) is AnchoredValues and net.units.level is None,
    WindowLevels(): lambda net: type(net.values) is AnchoredValues and net.units.level is not None,
}


@pytest.mark.parametrize("cheapest", KINDS, ids=name)
def test_outcomes_none_takes_the_form_that_is_clearly_cheapest_on_validation(
    newsvendor, demand, tiny, monkeypatch, tmp_path, cheapest
):
    def cost(task, net, data, solver):
        return data.y[:, 0] * 0 + 100.0 * (not KINDS[cheapest](net))

    monkeypatch.setattr(df2, "decision_costs", cost)
    _, y = demand(40)
    told = {"outcomes": None, "members": 3, "encoder": None, "points": 4}
    x = y.mean(1).reshape(40, 1, 1) * (1 + 0.1 * torch.rand(40, 3, 1))
    model = tiny(newsvendor(), {"epochs": 1}, **told).fit(x, y)
    assert model.outcomes_ == cheapest
    alone = cheapest == Absolute()
    kinds = [cheapest if alone else form for form in (WindowLevels(), LocationScale())]
    members = model.model_.members
    assert [KINDS[kinds[i % 2]](m) for i, m in enumerate(members)] == [True, True, True]
    assert len(model.history_) == 3
    model.save(tmp_path / "m")
    again = load(tmp_path / "m", newsvendor())
    assert again.outcomes_ == cheapest
    assert again.forms_ == model.forms_
    assert torch.equal(again.decide(x), model.decide(x))


def test_where_no_form_is_cheaper_the_simplest_is_taken(newsvendor, demand, tiny, monkeypatch):
    monkeypatch.setattr(df2, "decision_costs", lambda t, m, data, s: torch.zeros(len(data)))
    x, y = demand(40)
    assert tiny(newsvendor(), {"epochs": 1}, outcomes=None).fit(x, y).outcomes_ == LocationScale()


def test_the_choice_is_made_on_the_validation_part(newsvendor, demand, tiny, monkeypatch):
    seen = []
    real = df2.decision_costs
    monkeypatch.setattr(
        df2, "decision_costs", lambda t, m, data, s: seen.append(data) or real(t, m, data, s)
    )
    x, y = demand(60)
    tiny(newsvendor(), {"epochs": 1}, outcomes=None).fit(x[:50], y[:50], val=(x[50:], y[50:]))
    assert len(seen) == 3
    assert all(torch.equal(data.y, y[50:]) for data in seen)


def test_a_form_that_is_asked_for_is_the_only_one_fitted(newsvendor, demand, tiny, monkeypatch):
    monkeypatch.setattr(df2, "decision_costs", lambda *given: 1 / 0)
    monkeypatch.setattr(df2, "suitable", lambda *given: 1 / 0)
    x, y = demand(40)
    form = LocationScale()
    model = tiny(newsvendor(), {"epochs": 1}, outcomes=form, members=2).fit(x, y)
    assert model.outcomes_ is form
    assert len(model.history_) == 2


# ---- settings out of range


@pytest.mark.parametrize("setting", ["points", "actions", "members"])
def test_a_count_below_one_is_refused(newsvendor, setting):
    with pytest.raises(ValueError, match=f"DF2 needs {setting} of at least 1, but got 0"):
        DF2(newsvendor(), **{setting: 0})


@pytest.mark.parametrize("ema", [0.0, 1.0, -0.5, 2.0])
def test_an_average_out_of_range_is_refused(newsvendor, ema):
    with pytest.raises(ValueError, match=f"DF2 needs ema between 0 and 1.* but got {ema}"):
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
        return tiny(task, outcomes=Absolute(), target=target).fit(x, y).history_[0].losses

    separable = newsvendor(2)
    joint = Task(separable.cost, Box(0.0, 4.0, dim=2))
    assert losses(separable, True) != losses(separable, False)
    assert losses(joint, True) == losses(joint, False)


def test_a_linear_map_from_very_wide_x_is_refused(newsvendor):
    x, y = torch.rand(20, 1001), torch.rand(20, 1)
    model = DF2(newsvendor(), outcomes=LocationScale(), training=Training(progress=False))
    with pytest.raises(ValueError, match="at most 1000 numbers for its linear map, but got 1001"):
        model.fit(x, y)
