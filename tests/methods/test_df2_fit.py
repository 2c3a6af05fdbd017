"""Whole fits: what is learned, on which sets, in which precision, and from where they go on."""

from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

from costscape import (
    DF2,
    MLP,
    Absolute,
    Anchored,
    Auto,
    Box,
    Budget,
    Constant,
    Costs,
    Finite,
    LocationScale,
    MirrorDescent,
    Polytope,
    ProjectedAdam,
    SeparableTask,
    Simplex,
    Task,
    Training,
    WindowLevels,
    evaluate,
    load,
)

# ---- what is learned


@pytest.mark.parametrize(
    "form", [Absolute(), Anchored(), LocationScale()], ids=["absolute", "anchored", "location"]
)
def test_df2_learns_the_quantile_and_beats_the_best_constant(newsvendor, demand, form):
    # y = 1 + x_0 + u, so the best stock is 1.75 + x_0, whatever x_1
    task = newsvendor()
    x, y = demand(800)
    told = Training(epochs=25, lr=5e-3, patience=25, progress=False)
    model = DF2(task, outcomes=form, points=60, folds=1, ema=0.98, training=told).fit(x, y)
    new, then = demand(400, seed=1)
    a = model.decide(new)
    assert float((a - 1.75 - new[:, :1]).abs().mean()) < 0.12
    best = float(task.cost(then, 1.75 + new[:, :1]).mean())
    constant = evaluate(Constant(task).fit(x, y), new, then).cost
    assert evaluate(model, new, then).cost < best + 0.25 * (constant - best)


def test_a_location_and_a_scale_are_learned_where_x_moves_and_spreads_y(newsvendor):
    # y = 1 + x_0 + (0.2 + x_1) u, so the best stock is 1 + x_0 + 0.75 (0.2 + x_1)
    task = newsvendor()

    def made(n, seed):
        rng = torch.Generator().manual_seed(seed)
        x = torch.rand(n, 2, generator=rng)
        return x, 1 + x[:, :1] + (0.2 + x[:, 1:]) * torch.rand(n, 1, generator=rng)

    (x, y), (new, then) = made(600, 0), made(400, 1)
    best = 1 + new[:, :1] + 0.75 * (0.2 + new[:, 1:])
    told = Training(epochs=20, lr=5e-3, patience=20, progress=False)
    common = {"outcomes": LocationScale(), "points": 60, "folds": 1, "ema": 0.98}
    model = DF2(task, training=told, **common).fit(x, y)
    least = float(task.cost(then, best).mean())
    constant = evaluate(Constant(task).fit(x, y), new, then).cost
    assert evaluate(model, new, then).cost < least + 0.1 * (constant - least)
    assert float((model.decide(new) - best).abs().mean()) < 0.07
    # r(x) grows with x_1 as the truth does: 0.3 and 1.1 wide at the ends
    ends = torch.tensor([[0.5, 0.1], [0.5, 0.9]])
    narrow, wide = model.scenarios(ends).values[..., 0].std(1).tolist()
    assert 2.2 < wide / narrow < 5.0


def test_df2_learns_the_papers_way_too(newsvendor, demand):
    x, y = demand(600)
    told = Training(epochs=25, lr=5e-3, patience=25, progress=False)
    model = DF2.as_in_paper(newsvendor(), points=60, actions=20, training=told).fit(x, y)
    new, _ = demand(200, seed=1)
    assert float((model.decide(new) - 1.75 - new[:, :1]).abs().mean()) < 0.12


# ---- sets


def joint(y, a):
    """Not a sum over coordinates: the total is priced too. Convex in a."""
    return (y - a).square().sum(-1) + 0.5 * (a.sum(-1) - 1).square()


SETS = {
    "box": lambda: Box(0.0, 2.0, dim=3),
    "budget": lambda: Budget(total=2.0, dim=3),
    "simplex": lambda: Simplex(dim=3),
    "polytope": lambda: Polytope(
        A=[[1.0, 1.0, 1.0]], b=[1.5], G=[[-1, 0, 0], [0, -1, 0], [0, 0, -1]], h=[0, 0, 0]
    ),
    "finite": lambda: Finite([[0.0, 0.0, 0.0], [1.0, 0.5, 0.0], [1.0, 1.0, 1.0], [2.0, 2.0, 2.0]]),
}


@pytest.mark.parametrize("kind", SETS)
@pytest.mark.parametrize(
    "form",
    [Absolute(), Anchored(), LocationScale()],
    ids=["absolute", "anchored", "location"],
)
def test_on_every_set_decisions_are_feasible_and_their_costs_as_told(tiny, demand, kind, form):
    task = Task(joint, SETS[kind]())
    x, y = demand(50, dim=3)
    solver = ProjectedAdam(steps=20) if kind != "finite" else Auto()
    model = tiny(task, outcomes=form, points=8, actions=4, solver=solver).fit(x, y)
    a = model.decide(x[:6])
    assert a.shape == (6, 3)
    assert task.feasible.contains(a).all()
    s = model.scenarios(x[:6])
    told = model.expected_cost(x[:6], a)
    for b in range(6):
        by_hand = (s.weights[b] * joint(s.values[b if len(s.values) > 1 else 0], a[b])).sum()
        assert told[b].item() == pytest.approx(by_hand.item(), rel=1e-5)


@pytest.mark.parametrize(
    ("kind", "solver"),
    [
        ("box", Auto()),
        ("finite", Auto()),
        ("simplex", Auto()),
        ("budget", Auto()),
        ("polytope", Auto()),
        ("simplex", MirrorDescent(steps=200)),
        ("budget", MirrorDescent(steps=200)),
    ],
)
def test_no_sampled_action_is_cheaper_than_the_decision(tiny, demand, kind, solver):
    task = Task(joint, SETS[kind]())
    x, y = demand(40, dim=3)
    told = {"epochs": 1}
    model = tiny(task, told, outcomes=Absolute(), points=8, actions=4, solver=solver).fit(x, y)
    tried = task.feasible.sample(1000, torch.Generator().manual_seed(0))
    least = model.expected_cost(x[:5], tried[None]).min(1).values
    assert (model.expected_cost(x[:5], model.decide(x[:5])) <= least + 1e-5).all()


def test_outcomes_need_not_have_the_shape_of_actions(tiny, demand):
    # y is a matrix of 2 x 3 numbers; two actions pay for its rows' sums
    task = Task(lambda y, a: (y.sum(-1) - a).square().sum(-1), Box(0.0, 9.0, dim=2), y_dims=2)
    x, y = demand(40, dim=6)
    model = tiny(task, outcomes=Anchored(), actions=4, solver=ProjectedAdam(steps=20))
    model.fit(x, y.reshape(-1, 2, 3))
    assert model.scenarios(x[:4]).values.shape == (4, 16, 2, 3)
    assert model.decide(x[:4]).shape == (4, 2)


# ---- precision


@pytest.mark.parametrize(
    "form",
    [
        Absolute(),
        LocationScale(),
        WindowLevels(Anchored()),
        WindowLevels(LocationScale()),
    ],
    ids=["absolute", "location", "levels of anchored", "levels of location"],
)
def test_a_double_task_is_fitted_in_double_precision(newsvendor, demand, tiny, tmp_path, form):
    task = newsvendor().double()
    x, y = (v.double().numpy() for v in demand(60))
    model = tiny(task, outcomes=form).fit(1 + x, y)
    assert {v.dtype for v in model.model_.state_dict().values()} == {torch.float64}
    s = model.scenarios(1 + x)
    assert s.values.dtype == s.weights.dtype == torch.float64
    assert float((s.weights.sum(1) - 1).abs().max()) < 1e-14
    a = model.decide(1 + x)
    assert a.dtype == np.float64
    g = model.expected_cost(1 + x, a)
    by_hand = (s.weights * task.cost(s.values, torch.from_numpy(a)[:, None])).sum(1)
    assert np.allclose(g, by_hand.numpy(), rtol=1e-13)
    model.save(tmp_path / "m")
    assert np.array_equal(load(tmp_path / "m", task).decide(1 + x), a)


def test_single_and_double_precision_agree_to_rounding(newsvendor, demand, tiny):
    x, y = demand(60)
    one = tiny(newsvendor(), {"epochs": 1}, outcomes=Absolute()).fit(x, y)
    two = tiny(newsvendor().double(), {"epochs": 1}, outcomes=Absolute()).fit(x, y)
    assert two.decide(x).dtype == torch.float64  # the finer of x and the task
    assert torch.allclose(one.scenarios(x).weights.double(), two.scenarios(x).weights, atol=0.02)


# ---- randomness


def test_same_seed_same_bits_other_seed_other_bits(newsvendor, demand, tiny):
    x, y = demand(50)

    def weights(seed):
        return tiny(newsvendor(), outcomes=None, folds=2, seed=seed).fit(x, y).scenarios(x)

    a, b, c = weights(0), weights(0), weights(1)
    assert torch.equal(a.weights, b.weights)
    assert torch.equal(a.values, b.values)
    assert a.weights.shape != c.weights.shape or not torch.equal(a.weights, c.weights)


def test_fit_decide_save_and_load_leave_the_global_stream_alone(
    newsvendor, demand, tiny, tmp_path
):
    x, y = demand(50)
    encoder = partial(MLP, 2, hidden=8, dropout=0.5, noise=0.1)
    torch.manual_seed(7)
    before = torch.get_rng_state()
    model = tiny(newsvendor(), outcomes=None, encoder=encoder).fit(x, y)
    assert torch.equal(torch.get_rng_state(), before)
    model.decide(x)
    model.save(tmp_path / "m")
    load(tmp_path / "m", newsvendor())
    assert torch.equal(torch.get_rng_state(), before)


def test_a_second_fit_forgets_the_first(newsvendor, demand, tiny):
    x, y = demand(50)
    model = tiny(newsvendor(), outcomes=Absolute())
    first = model.fit(x, 2 * y).decide(x)
    again = model.fit(x, y).decide(x)
    fresh = tiny(newsvendor(), outcomes=Absolute()).fit(x, y).decide(x)
    assert torch.equal(again, fresh)
    assert not torch.equal(first, again)


def test_a_second_fit_that_is_broken_off_leaves_none(newsvendor, demand, tiny, monkeypatch):
    x, y = demand(50)
    model = tiny(newsvendor(), outcomes=Absolute(), encoder=None).fit(x, y)
    monkeypatch.setattr(DF2, "loss", lambda *args: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        model.fit(torch.cat([x, x], 1), y)
    with pytest.raises(RuntimeError, match="This DF2 has not been fitted"):
        model.decide(x)


def test_a_second_fit_that_is_refused_leaves_the_first(newsvendor, demand, tiny):
    x, y = demand(50)
    model = tiny(newsvendor(), outcomes=Absolute()).fit(x, y)
    a = model.decide(x)
    with pytest.raises(ValueError, match="X and Y need the same number of rows"):
        model.fit(x[1:], y)
    assert torch.equal(model.decide(x), a)


def test_fit_does_not_change_the_users_task_or_data(newsvendor, demand, tiny):
    task, (x, y) = newsvendor(), demand(50)
    kept = x.clone(), y.clone()
    model = tiny(task, outcomes=Anchored()).fit(x, y)
    assert model.task is task
    assert torch.equal(x, kept[0])
    assert torch.equal(y, kept[1])


# ---- going on from a checkpoint


class Fuse:
    """Blows at the n-th forward pass in training."""

    left = None
    error = RuntimeError


class Fused(nn.Module):
    """An encoder with dropout, and a fuse."""

    def __init__(self):
        super().__init__()
        self.net = MLP(2, hidden=8, dropout=0.4, noise=0.1)
        self.out_features = 8

    def forward(self, x):
        if self.training and Fuse.left is not None:
            Fuse.left -= 1
            if Fuse.left < 0:
                raise Fuse.error("blown")
        return self.net(x)


@pytest.fixture
def fit_with(newsvendor, demand, monkeypatch):
    """fit_with(path, blow_after, ...): two folds of 60 rows, 3 epochs."""
    x, y = demand(60)

    def fit(path=None, blow_after=None, error=RuntimeError, task=None, **settings):
        monkeypatch.setattr(Fuse, "left", blow_after)
        monkeypatch.setattr(Fuse, "error", error)
        told = {"epochs": 3, "batch_size": 16, "smooth": 2, "lr": 0.01, "patience": 3}
        told = Training(progress=False, checkpoint=path, **told, **settings.pop("training", {}))
        small = {"encoder": Fused, "points": 8, "folds": 2, "outcomes": Anchored()}
        data = settings.pop("x", x), settings.pop("y", y)
        val = settings.pop("val", None)
        model = DF2(task or newsvendor(), **{**small, "training": told, **settings})
        return model.fit(*data, val=val)

    return fit


def equal(one, other):
    a, b = one.model_.state_dict(), other.model_.state_dict()
    return all(torch.equal(a[k], b[k]) for k in a)


# two folds: each learns from 30 rows, two steps an epoch, and 3 epochs make 6 steps
@pytest.mark.parametrize(
    ("steps", "error"),
    [
        (0, RuntimeError),
        (2, KeyboardInterrupt),  # between epochs of the first fold
        (3, RuntimeError),  # within an epoch
        (6, KeyboardInterrupt),  # between the folds
        (11, RuntimeError),
    ],
)
def test_a_broken_and_resumed_fit_of_df2_ends_bit_equal_to_an_unbroken_one(
    fit_with, demand, tmp_path, steps, error
):
    x, _ = demand(60)
    whole = fit_with()
    with pytest.raises(error, match="blown"):
        fit_with(tmp_path / "fit", steps, error)
    resumed = fit_with(tmp_path / "fit")
    assert resumed.history_ == whole.history_
    assert equal(whole, resumed)
    assert torch.equal(whole.decide(x), resumed.decide(x))


def test_a_broken_blend_of_all_forms_goes_on_where_it_was(fit_with, demand, tmp_path):
    x, _ = demand(60)
    whole = fit_with(outcomes=None)
    assert len(whole.held_out_) == 3
    for steps in (4, 17, 31):  # in the first fold, at its end and in the second
        path = tmp_path / f"fit-{steps}"
        with pytest.raises(KeyboardInterrupt, match="blown"):
            fit_with(path, steps, KeyboardInterrupt, outcomes=None)
        resumed = fit_with(path, outcomes=None)
        assert resumed.weights_ == whole.weights_
        assert resumed.held_out_ == whole.held_out_
        assert equal(whole, resumed)
        assert torch.equal(whole.decide(x), resumed.decide(x))


def test_a_single_fit_goes_on_where_it_was_broken(fit_with, tmp_path):
    whole = fit_with(folds=1)
    with pytest.raises(RuntimeError, match="blown"):
        fit_with(tmp_path / "fit", 5, folds=1)
    resumed = fit_with(tmp_path / "fit", folds=1)
    assert resumed.history_ == whole.history_
    assert equal(whole, resumed)
    assert [p.name for p in tmp_path.iterdir()] == ["fit"]
    assert equal(whole, fit_with(tmp_path / "fit", blow_after=0, folds=1))


def test_a_finished_fit_is_taken_from_its_files_one_for_each_network(fit_with, tmp_path):
    whole = fit_with(tmp_path / "fit")
    assert {p.name for p in tmp_path.iterdir()} == {"fit.0-0", "fit.0-1"}
    assert equal(whole, fit_with(str(tmp_path / "fit"), blow_after=0))


def other_cost(y, a):
    return 4 * (y - a).clamp(min=0) + (a - y).clamp(min=0)


@pytest.mark.parametrize(
    "other",
    [
        {"task": SeparableTask(other_cost, Box(0.0, 4.0, dim=1), convex=True)},
        {"task": SeparableTask(lambda y, a: (y - a) ** 2, Box(0.0, 4.0, dim=1), convex=True)},
        {"target": Costs()},
        {"standardise": False},
        {"learn_values": False},
        {"ema": 0.9},
        {"actions": 5},
        {"share_actions": False},
        {"solver": ProjectedAdam(steps=3)},
        {"choose_epoch": False},
        {"encoder": partial(MLP, 2, hidden=8)},
        {"outcome_share": 0.0},
        {"seed": 1},
        {"x": torch.rand(60, 2)},
        {"val": (torch.rand(9, 2), torch.rand(9, 1))},
        {"training": {"weight_decay": 0.1}},
    ],
    ids=lambda other: next(iter(other)),
)
def test_the_checkpoint_of_another_fit_is_refused(fit_with, tmp_path, other):
    fit_with(tmp_path / "fit", folds=1)
    with pytest.raises(
        ValueError, match="belongs to a fit with other data, cost, settings or seed"
    ):
        fit_with(tmp_path / "fit", folds=1, **other)


def test_the_dropout_of_the_encoder_is_part_of_the_fit(fit_with, tmp_path):
    fit_with(tmp_path / "fit", encoder=partial(MLP, 2, dropout=0.1))
    with pytest.raises(ValueError, match="belongs to a fit with other"):
        fit_with(tmp_path / "fit", encoder=partial(MLP, 2, dropout=0.2))


def test_code_made_anew_is_the_same_code(fit_with, newsvendor, tmp_path):
    # as in another process, where functions live elsewhere in memory
    def fit(blow_after=None):
        form = WindowLevels(Anchored(), level=lambda x: x.abs().sum(1))
        return fit_with(tmp_path / "fit", blow_after, task=newsvendor(), outcomes=form)

    with pytest.raises(RuntimeError, match="blown"):
        fit(blow_after=9)
    fit()


def test_a_corrupt_checkpoint_is_refused(fit_with, tmp_path):
    fit_with(tmp_path / "fit")
    (tmp_path / "fit.0-1").write_bytes(b"nonsense")
    with pytest.raises(ValueError, match=r"fit\.0-1 cannot be read .*Delete it"):
        fit_with(tmp_path / "fit")
