"""What the settings of DF2 do to its network."""

import pytest
import torch

from costscape import DF2, Absolute, Anchored, SeparableTask, Training, WindowLevels
from costscape.methods import df2
from costscape.models import AnchoredValues, Values
from costscape.scenarios import ExpectedCost

FORMS = [
    Absolute(),
    Anchored(epochs=2),
    WindowLevels(Anchored(epochs=2)),
    WindowLevels(Absolute()),
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


@pytest.mark.parametrize("of", [Absolute(), Anchored(epochs=2)], ids=name)
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


def test_anchored_outcomes_start_as_residuals_of_a_fitted_location(
    newsvendor, demand, tiny, monkeypatch
):
    real, titles = df2.fit_network, []

    def anchor_only(*args, title, **settings):
        titles.append(title)
        return real(*args, title=title, **settings) if title == "DF2 anchor" else df2.History()

    monkeypatch.setattr(df2, "fit_network", anchor_only)
    x, y = demand(200)
    form = Anchored(epochs=30)
    model = tiny(newsvendor(), {"lr": 0.01}, outcomes=form, points=50).fit(x, y, val=(x, y))
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
    for form, points, actions in ((Absolute(), 500, 100), (Anchored(epochs=1), 200, 8)):
        task = newsvendor()
        draw, asked = task.feasible.sample, []
        task.feasible.sample = lambda n, rng, d=draw, a=asked: a.append(n) or d(n, rng)
        model = tiny(task, {"epochs": 1, "batch_size": 700}, outcomes=form, points=None)
        model.fit(x, y, val=(x, y))
        assert model.scenarios(x[:2]).weights.shape == (2, points)
        assert actions in asked


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
        "weighting": False,
        "by_coordinate": False,
        "ema": None,
        "members": 1,
        "standardise": False,
        "solver": "auto",
        "training": Training(epochs=7, lr=0.5, decay=False),
        "choose_epoch": False,
        "seed": 0,
    }
    plain = Training(epochs=50, lr=1e-3, decay=False)
    assert DF2.as_in_paper(newsvendor()).training == plain
    assert not DF2.as_in_paper(newsvendor(), share_actions=False).share_actions


@pytest.mark.parametrize(("told", "rate"), [({}, df2.RATE), ({"lr": 0.5}, 0.5)])
def test_df2_has_a_rate_of_its_own_unless_one_is_given(
    newsvendor, demand, tiny, monkeypatch, told, rate
):
    rates = []
    real = torch.optim.Adam
    monkeypatch.setattr(torch.optim, "Adam", lambda p, lr, **rest: rates.append(lr) or real(p, lr))
    x, y = demand(20)
    tiny(newsvendor(), {"epochs": 1, **told}, outcomes=Anchored(epochs=1)).fit(x, y)
    assert rates == [rate, rate]


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
    one = tiny(newsvendor(), outcomes=Absolute(), members=1).fit(x, y)
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


# ---- the choice between Anchored and Absolute


def test_the_first_form_stays_unless_a_later_one_is_cheaper_by_a_standard_error():
    base = torch.zeros(100)
    noise = torch.randn(100, generator=torch.Generator().manual_seed(0))
    noise = (noise - noise.mean()) / noise.std()  # a difference of standard error 0.1
    assert df2._clearly_best([base, base]) == 0
    assert df2._clearly_best([base, noise + 1]) == 0
    assert df2._clearly_best([base, noise - 0.09]) == 0
    assert df2._clearly_best([base, noise - 0.11]) == 1
    assert df2._clearly_best([base, noise - 0.11, noise - 0.11 + 1e-3]) == 1
    assert df2._clearly_best([base, noise - 0.2, noise - 0.3]) == 2


def test_one_row_is_never_clear():
    assert df2._clearly_best([torch.ones(1), torch.zeros(1)]) == 0


@pytest.mark.parametrize(("penalty", "form"), [(100.0, Absolute()), (0.0, Anchored())])
def test_outcomes_none_takes_absolute_where_anchored_is_clearly_worse(
    newsvendor, demand, tiny, monkeypatch, penalty, form
):
    def cost(task, model, data, solver):
        anchored = isinstance(model.values, AnchoredValues)
        return data.y[:, 0] * 0 + penalty * anchored

    monkeypatch.setattr(df2, "decision_costs", cost)
    x, y = demand(40)
    model = tiny(newsvendor(), {"epochs": 1}, outcomes=None, members=2).fit(x, y)
    assert model.outcomes_ == form
    kind = Values if form == Absolute() else AnchoredValues
    assert all(isinstance(member.values, kind) for member in model.model_.members)
    assert len(model.model_.members) == len(model.history_) == 2


def test_the_choice_is_made_on_the_validation_part(newsvendor, demand, tiny, monkeypatch):
    seen = []
    real = df2.decision_costs
    monkeypatch.setattr(
        df2, "decision_costs", lambda t, m, data, s: seen.append(data) or real(t, m, data, s)
    )
    x, y = demand(60)
    tiny(newsvendor(), {"epochs": 1}, outcomes=None).fit(x[:50], y[:50], val=(x[50:], y[50:]))
    assert len(seen) == 2
    assert all(torch.equal(data.y, y[50:]) for data in seen)


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
    separable = newsvendor(2)
    assert isinstance(separable, SeparableTask)
    x, y = demand(40, dim=2)
    whole = tiny(separable, outcomes=Absolute(), by_coordinate=False).fit(x, y)
    parts = tiny(separable, outcomes=Absolute(), by_coordinate=True).fit(x, y)
    assert whole.history_[0].losses != parts.history_[0].losses
