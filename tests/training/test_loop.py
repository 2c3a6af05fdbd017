import warnings
from itertools import pairwise
from math import cos, pi

import pytest
import torch
from torch import nn

from costscape.data import Dataset
from costscape.training import Fit, Training, fit_all

QUIET = {"progress": False}


class Weight(nn.Module):
    """One number, and every value it had when a loss was asked for."""

    def __init__(self, w=0.0):
        super().__init__()
        self.w = nn.Parameter(torch.tensor(w))
        self.seen = []

    def falling(self, batch, rng):
        """Of slope 1, so that Adam moves by -lr exactly."""
        self.seen.append(self.w.item())
        return self.w


def rows(n=8, seed=0):
    rng = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 3, generator=rng)
    return Dataset(x, x.sum(1, keepdim=True) + torch.randn(n, 1, generator=rng))


def net(seed=0):
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Dropout(0.4), nn.Linear(5, 1))


def noisy_loss(model):
    """Draws from both streams: dropout's, and the generator of the sampled actions."""
    return lambda batch, rng: (
        (model(batch.x) - batch.y + 0.1 * torch.randn(len(batch), 1, generator=rng))
        .square()
        .mean()
    )


def fit(model, data=None, *, seed=0, score=None, loss=None, **training):
    given = {"ema": training.pop("ema", 0.9), "recipe": training.pop("recipe", "")}
    training = Training(**{"epochs": 6, "batch_size": 4, "patience": 20, **QUIET, **training})
    loss = loss or noisy_loss(model)
    data = data or rows()
    return fit_all([Fit(model, loss, seed, score, **given)], data, training)[0]


def same(a, b):
    return all(torch.equal(v, b.state_dict()[k]) for k, v in a.state_dict().items())


def scripted(scores, start=float("inf")):
    """A score that reads the script, and each epoch's weights; without a start when resumed."""
    script, weights = iter(scores), []
    due = start is not None

    def score(now):
        nonlocal due
        if due:
            due = False
            return start
        weights.append([p.detach().clone() for p in now.parameters()])
        return next(script)

    return score, weights


class Killed(Exception):
    pass


def dying(loss, steps, error=Killed):
    """The loss, until it has been asked ``steps`` times."""
    left = [steps]

    def until(batch, rng):
        left[0] -= 1
        if left[0] < 0:
            raise error
        return loss(batch, rng)

    return until


# ---- settings


@pytest.mark.parametrize("name", ["epochs", "batch_size", "patience", "smooth", "score_every"])
def test_a_count_below_one_is_refused(name):
    with pytest.raises(
        ValueError, match=f"Training needs {name} to be a whole number of at least 1.*but got 0"
    ):
        Training(**{name: 0})


@pytest.mark.parametrize("lr", [0.0, -1.0, float("nan")])
def test_a_rate_that_is_not_positive_is_refused(lr):
    with pytest.raises(ValueError, match="Training needs lr to be a number above 0"):
        Training(lr=lr)


def test_device_none_is_where_torch_can_run_and_a_name_is_taken_as_given():
    assert Training().where().type == ("cuda" if torch.cuda.is_available() else "cpu")
    assert Training(device="meta").where().type == "meta"


# ---- epochs that are not given


@pytest.mark.parametrize("batch", [1, 64, 100])
@pytest.mark.parametrize("rows", [1, 63, 640, 641, 7_000, 16_000, 10**6])
def test_epochs_that_are_not_given_make_about_a_thousand_steps(rows, batch):
    training = Training(batch_size=batch).for_rows(rows)
    steps = -(-rows // batch)
    assert 8 <= training.epochs <= 100
    if training.epochs < 100:
        assert steps * training.epochs >= 1000
    if training.epochs > 8:
        assert steps * (training.epochs - 1) < 1000
    assert training.patience is None


def test_what_is_given_stays():
    given = Training(epochs=3, patience=9, lr=0.5)
    assert given.for_rows(10**6) == given
    assert Training(patience=7).for_rows(64_000) == Training(epochs=8, patience=7)


def test_a_fit_resolves_the_epochs_from_its_own_rows(monkeypatch):
    monkeypatch.setattr("costscape.training.settings.STEPS", 20)
    model = Weight()
    history = fit(model, rows(8), loss=model.falling, epochs=None, ema=None, batch_size=4)
    assert len(history.losses) == 10  # of two steps each


# ---- a warning where more epochs would help


def run_of(scores):
    model = Weight()
    return lambda: fit(
        model, loss=model.falling, score=scripted(scores)[0], ema=None, epochs=len(scores)
    )


def test_a_score_that_falls_to_the_last_epoch_is_warned_of():
    # in the last fifth, four epochs of twenty, the score falls by 4 of 19
    with pytest.warns(UserWarning, match=r"last of 20 epochs.* 21% .*Training\(epochs=40\)"):
        run_of([20.0 - e for e in range(20)])()


QUIET_ENDS = {
    "best before the last": [20.0 - e for e in range(19)] + [5.0],
    "hardly falling": [100.0] * 15 + [1.4, 1.3, 1.2, 1.1, 1.0],
    "level": [1.0] * 20,
    "too short to tell": [19.0 - e for e in range(19)],
}


@pytest.mark.parametrize("scores", QUIET_ENDS.values(), ids=QUIET_ENDS)
def test_a_fit_that_has_settled_is_not_warned_of(scores):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run_of(scores)()


def test_without_a_score_there_is_no_warning():
    model = Weight()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit(model, loss=model.falling, ema=None, epochs=20)


# ---- the loop


def test_the_rate_falls_along_a_cosine():
    model = Weight()
    fit(model, loss=model.falling, ema=None, batch_size=8, epochs=7, lr=0.1)
    seen = [*model.seen, model.w.item()]
    moved = [a - b for a, b in pairwise(seen)]
    assert moved == pytest.approx([0.1 * (1 + cos(pi * e / 7)) / 2 for e in range(7)], abs=1e-6)


def test_the_rate_is_three_thousandths_where_none_is_given():
    model = Weight()
    fit(model, loss=model.falling, ema=None, batch_size=8, epochs=1)
    assert model.w.item() == pytest.approx(-3e-3, abs=1e-8)


def test_without_decay_the_rate_stays():
    model = Weight()
    fit(model, loss=model.falling, ema=None, batch_size=8, epochs=5, lr=0.1, decay=False)
    assert [*model.seen, model.w.item()] == pytest.approx([-0.1 * e for e in range(6)], abs=1e-6)


def test_the_moving_average_is_that_computed_by_hand():
    # young, it follows with (1 + age) / (10 + age), which passes 0.3 in the fourth step
    model = Weight(1.0)
    score, averages = scripted([0.0] * 4)
    fit(model, loss=model.falling, score=score, ema=0.3, batch_size=4, epochs=4, lr=0.1)
    average, by_hand = model.seen[0], []
    for age, now in enumerate(model.seen[1:]):
        decay = min(0.3, (1 + age) / (10 + age))
        average = decay * average + (1 - decay) * now
        by_hand.append(average)
    ends = by_hand[1::2]  # two steps an epoch
    assert [got.item() for (got,) in averages[: len(ends)]] == pytest.approx(ends, abs=1e-6)
    assert len(ends) == 3


def test_the_moving_average_takes_buffers_as_they_are():
    model = nn.Sequential(nn.Linear(3, 1), nn.BatchNorm1d(1))
    pairs = []

    def score(average):
        pairs.append((average[1].running_mean.clone(), model[1].running_mean.clone()))
        return 0.0

    fit(model, ema=0.9, score=score, loss=lambda batch, rng: model(batch.x).square().mean())
    assert all(torch.equal(ours, theirs) for ours, theirs in pairs)
    assert not torch.equal(pairs[1][0], torch.zeros(1))


def test_every_pair_is_seen_once_an_epoch_and_the_loss_is_its_mean():
    data, seen = rows(10), []
    model = Weight()

    def loss(batch, rng):
        seen.append(batch.x)
        return batch.y.mean() + 0 * model.w

    history = fit(model, data, loss=loss, ema=None, epochs=2, batch_size=4)
    assert [len(x) for x in seen] == [4, 4, 2, 4, 4, 2]
    for epoch in (torch.cat(seen[:3]), torch.cat(seen[3:])):
        assert torch.equal(epoch.sort(0).values, data.x.sort(0).values)
    assert history.losses == pytest.approx([data.y.mean().item()] * 2, abs=1e-6)


def test_without_a_score_the_last_epoch_is_kept():
    model = Weight()
    history = fit(model, loss=model.falling, ema=None, batch_size=8, lr=0.1, decay=False)
    assert model.w.item() == pytest.approx(-0.6, abs=1e-6)
    assert (history.best_epoch, history.scores) == (5, [])


@pytest.mark.parametrize(
    ("smooth", "scores", "best"),
    [
        (1, [5, 1, 4, 4, 4, 9], 1),
        (3, [5, 1, 4, 4, 4, 9], 3),  # means of three: 10/3, 3, 4, 17/3
        (3, [0, 9, 9, 2, 2, 2], 5),  # the 0 alone is a fluke
        (9, [5, 4, 3, 2, 1, 0], 5),  # longer than the fit: all of it
        (1, [2, 2, 2, 2, 2, 2], 0),  # of equals the first; the start is worse
    ],
)
def test_the_best_smoothed_epoch_is_kept(smooth, scores, best):
    model = Weight()
    score, weights = scripted(scores)
    history = fit(model, loss=model.falling, score=score, ema=None, smooth=smooth, lr=0.1)
    assert history.best_epoch == best
    assert history.scores == scores
    assert model.w.item() == weights[best][0].item()
    assert len({w[0].item() for w in weights}) == 6


@pytest.mark.parametrize("epochs", [6, 7])
def test_a_costly_score_is_read_now_and_then_and_stands_until_then(epochs):
    score, weights = scripted([9.0, 5.0, 3.0, 4.0, 2.0][: 2 + epochs // 2])
    model = net()
    history = fit(model, score=score, score_every=2, smooth=1, epochs=epochs)
    # after the first, the 2nd, 4th and 6th epoch, and after the last
    want = {6: [9.0, 5.0, 5.0, 3.0, 3.0, 4.0], 7: [9.0, 5.0, 5.0, 3.0, 3.0, 4.0, 2.0]}
    assert history.scores == want[epochs]
    assert history.best_epoch == {6: 3, 7: 6}[epochs]
    kept = weights[{6: 2, 7: 4}[epochs]]
    assert all(torch.equal(p, q) for p, q in zip(model.parameters(), kept, strict=True))


def test_a_fit_stops_after_patience_epochs_without_a_better_score():
    model = Weight()
    score, weights = scripted([3, 2, 5, 5, 5, 1])
    history = fit(model, loss=model.falling, score=score, ema=None, smooth=1, patience=2)
    assert history.scores == [3, 2, 5, 5]
    assert model.w.item() == weights[1][0].item()


def test_without_patience_a_fit_goes_to_its_end():
    model = Weight()
    score, weights = scripted([3, 2, 5, 5, 5, 1])
    history = fit(model, loss=model.falling, score=score, ema=None, smooth=1, patience=None)
    assert history.scores == [3, 2, 5, 5, 5, 1]
    assert model.w.item() == weights[5][0].item()


@pytest.mark.parametrize("ema", [None, 0.9])
def test_a_start_that_no_epoch_betters_is_kept(ema):
    scores, told = [5, 3, 4, 6], {"ema": ema, "epochs": 4, "smooth": 1}
    kept, passed = Weight(2.0), Weight(2.0)
    history = fit(kept, loss=kept.falling, score=scripted(scores, 3)[0], **told)
    assert (history.best_epoch, history.best, kept.w.item()) == (-1, 3, 2.0)
    assert history.scores == scores
    history = fit(passed, loss=passed.falling, score=scripted(scores, 3.1)[0], **told)
    assert (history.best_epoch, history.best) == (1, 3)
    assert passed.w.item() < 2


class Bowl(Weight):
    """Its loss is w squared, and so is its score: a step of Adam much longer than w misses it."""

    def loss(self, batch, rng):
        self.seen.append(self.w.item())
        return self.w.square()

    def score(self, now):
        return now.w.item() ** 2


LONG_STEPS = {
    "ema": None,
    "lr": 10.0,
    "decay": False,
    "batch_size": 8,
    "patience": 2,
    "epochs": 12,
}


@pytest.mark.parametrize("patience", [2, None])
@pytest.mark.parametrize("steps", [1, 2])  # an epoch: the rise is after or inside the first
def test_steps_too_long_for_any_epoch_to_better_the_start_become_a_tenth(steps, patience):
    model = Bowl(0.2)
    told = {**LONG_STEPS, "batch_size": 8 // steps, "patience": patience}
    history = fit(model, loss=model.loss, score=model.score, **told)
    # two epochs after the first, a fifth of 12 without patience, then from the start again
    starts = [i for i, w in enumerate(model.seen) if w == pytest.approx(0.2)]
    assert starts[:2] == [0, 3 * steps]
    first_steps = [abs(model.seen[i + 1] - 0.2) for i in starts[:2]]
    assert first_steps == pytest.approx([10, 1], rel=1e-4)
    assert history.best_epoch >= 3
    assert abs(model.w.item()) < 0.2


def test_without_a_rise_of_the_loss_a_start_that_is_best_ends_the_fit():
    model = Weight(2.0)
    score, _ = scripted([5] * 12, 3)
    history = fit(model, loss=model.falling, score=score, **LONG_STEPS)
    assert len(history.losses) == 3


@pytest.mark.parametrize("steps", [2, 4, 8])  # before and after steps become a tenth
def test_a_fit_that_began_again_is_resumed_to_the_same_bits(tmp_path, steps):
    whole, broken, resumed = (Bowl(0.2) for _ in range(3))
    first = fit(whole, loss=whole.loss, score=whole.score, **LONG_STEPS)
    told = {**LONG_STEPS, "checkpoint": tmp_path / "fit.ckpt"}
    with pytest.raises(Killed):
        fit(broken, loss=dying(broken.loss, steps), score=broken.score, **told)
    second = fit(resumed, loss=resumed.loss, score=resumed.score, **told)
    assert second == first
    assert same(whole, resumed)


@pytest.mark.parametrize("patience", [1, 2, 3])
def test_patience_shorter_than_smooth_still_keeps_a_trained_epoch(patience):
    model = Weight()
    score, weights = scripted([6, 5, 4, 3, 2, 1])
    history = fit(model, loss=model.falling, score=score, ema=None, smooth=5, patience=patience)
    assert history.best_epoch == 5
    assert model.w.item() == weights[5][0].item() != 0


def test_the_model_is_left_ready_to_answer():
    model = net()
    fit(model)
    assert not model.training


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_loss_that_is_not_finite_is_refused_in_words(bad):
    model = Weight()
    with pytest.raises(RuntimeError, match=rf"loss became {bad} in epoch 0\. Lower the learning"):
        fit(model, loss=lambda b, rng: model.w * 0 + bad)


# ---- randomness


def test_same_seed_same_bits_other_seed_other_bits():
    a, b, c = net(), net(), net()
    losses = [fit(m, seed=s).losses for m, s in ((a, 3), (b, 3), (c, 4))]
    assert same(a, b)
    assert losses[0] == losses[1]
    assert not same(a, c)


def test_the_global_stream_is_neither_read_nor_moved():
    a, b = net(), net()
    torch.manual_seed(1)
    before = torch.get_rng_state()
    fit(a)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(2)
    fit(b)
    assert same(a, b)


# ---- checkpoints


@pytest.mark.parametrize("steps", [2, 3, 7, 11])  # two steps an epoch: between and inside epochs
@pytest.mark.parametrize("error", [Killed, KeyboardInterrupt])
def test_a_broken_and_resumed_fit_ends_bit_equal_to_an_unbroken_one(tmp_path, steps, error):
    scores = [3.0, 2.0, 4.0, 1.0, 1.5, 1.2]
    whole, broken, resumed = net(0), net(0), net(99)
    first = fit(whole, score=scripted(scores)[0], smooth=2)
    path = tmp_path / "fit.ckpt"
    with pytest.raises(error):
        fit(broken, score=scripted(scores)[0], smooth=2, checkpoint=path,
            loss=dying(noisy_loss(broken), steps, error))  # fmt: skip
    second = fit(resumed, score=scripted(scores[steps // 2 :], None)[0], smooth=2, checkpoint=path)
    assert second == first
    assert same(whole, resumed)
    assert not list(tmp_path.glob("*.part"))


def test_a_finished_fit_is_taken_from_its_checkpoint(tmp_path):
    a, b = net(0), net(1)
    fit(a, checkpoint=tmp_path / "c")
    fit(b, checkpoint=tmp_path / "c", loss=dying(noisy_loss(b), 0))
    assert same(a, b)


def test_a_fit_that_stopped_early_does_not_go_on_when_taken_up_again(tmp_path):
    scores = [1.0, 2.0, 3.0]
    a, b = net(0), net(1)
    told = {"smooth": 1, "patience": 2, "checkpoint": tmp_path / "c"}
    fit(a, score=scripted(scores)[0], **told)
    fit(b, score=scripted([], None)[0], **told)
    assert same(a, b)


def test_at_a_constant_rate_a_finished_fit_can_be_made_longer(tmp_path):
    whole, grown = net(0), net(0)
    fit(whole, epochs=6, decay=False)
    fit(grown, epochs=4, decay=False, checkpoint=tmp_path / "c")
    fit(grown, epochs=6, decay=False, checkpoint=str(tmp_path / "c"))
    assert same(whole, grown)


@pytest.mark.parametrize(
    "other",
    [
        {"seed": 1},
        {"data": rows(seed=1)},
        {"lr": 0.1},
        {"epochs": 7},
        {"ema": 0.8},
        {"recipe": "another"},
        {"batch_size": 3},
        {"weight_decay": 0.1},
    ],
    ids=lambda other: next(iter(other)),
)
def test_the_checkpoint_of_another_fit_is_refused(tmp_path, other):
    fit(net(), checkpoint=tmp_path / "c")
    with pytest.raises(
        ValueError, match="belongs to a fit with other data, cost, settings or seed"
    ):
        fit(net(), **{"checkpoint": tmp_path / "c", **other})


def test_the_checkpoint_of_another_network_is_refused(tmp_path):
    fit(net(), checkpoint=tmp_path / "c")
    with pytest.raises(ValueError, match="belongs to a fit with other"):
        fit(nn.Linear(3, 1), checkpoint=tmp_path / "c")


# ---- torch.compile


def refuse(loss, **options):
    raise RuntimeError("no compiler here")


def break_when_called(loss, **options):
    def compiled(batch, rng):
        torch.randn(3, generator=rng)  # what it drew before it broke must not count
        raise RuntimeError("no compiler here")

    return compiled


@pytest.mark.parametrize("broken", [refuse, break_when_called])
def test_a_loss_that_cannot_be_compiled_runs_as_it_is_with_one_warning(monkeypatch, broken):
    eager, fallen = net(), net()
    fit(eager)
    monkeypatch.setattr(torch, "compile", broken)
    with pytest.warns(UserWarning, match="torch.compile failed, .*no compiler here") as told:
        fit(fallen, compile=True)
    assert len(told) == 1
    assert same(eager, fallen)


def test_a_loss_that_can_be_compiled_is(monkeypatch):
    calls = []

    def fake(loss, **options):
        return lambda batch, rng: calls.append(1) or loss(batch, rng)

    monkeypatch.setattr(torch, "compile", fake)
    eager, compiled = net(), net()
    fit(eager)
    fit(compiled, compile=True)
    assert len(calls) == 12
    assert same(eager, compiled)


def test_an_error_of_the_loss_itself_is_not_taken_for_one_of_the_compiler(monkeypatch):
    monkeypatch.setattr(torch, "compile", lambda loss, **options: loss)
    with pytest.raises(Killed):
        fit(net(), compile=True, loss=dying(None, 0))
