"""Networks fitted together equal those fitted separately, each with its own best epoch."""

from dataclasses import replace

import pytest
import torch
from torch import nn

import costscape as cs
from costscape.data import Dataset
from costscape.training import Fit, Training, fit_all
from costscape.training.loop import _captured, _in_step

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
SEEDS = (0, 7, 3)


def rows(n=10, device="cpu", dtype=torch.float32):
    rng = torch.Generator().manual_seed(0)
    x = torch.randn(n, 3, generator=rng)
    y = x.sum(1, keepdim=True) + torch.randn(n, 1, generator=rng)
    return Dataset(x, y).to(device, dtype)


def net(seed, dropout=0.0, device="cpu", width=5, dtype=torch.float32):
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        layers = [nn.Linear(3, width), nn.ReLU(), nn.Linear(width, 1)]
    return nn.Sequential(*layers[:2], nn.Dropout(dropout), layers[2]).to(device, dtype)


def noisy(model):
    """Draws from the generator of sampled actions; dropout, if any, from torch's own."""

    def loss(batch, rng):
        noise = torch.randn(batch.y.shape, generator=rng, device=rng.device, dtype=batch.y.dtype)
        return (model(batch.x) - batch.y + 0.1 * noise).square().mean()

    return loss


def script(scores, resumed=False):
    """Scores of the epochs; that of the start, which only a new fit asks for, is the worst."""
    left = iter(scores if resumed else [float("inf"), *scores])
    return lambda model: next(left)


def fits(scores=None, ema=0.9, **settings):
    """Three networks of different widths, seeds and, if scripted, scores."""
    made = []
    for i, seed in enumerate(SEEDS):
        model = net(seed, width=5 + i, **settings)
        score = script(scores[i]) if scores else None
        made.append(Fit(model, noisy(model), seed, score, ema, recipe=str(i), name=f"net-{i}"))
    return made


def told(**settings):
    return Training(**{"epochs": 6, "batch_size": 4, "progress": False, **settings})


def each_alone(made, data, training):
    return [fit_all([fit], data, training)[0] for fit in made]


def same(made, others):
    for a, b in zip(made, others, strict=True):
        for v, w in zip(a.model.state_dict().values(), b.model.state_dict().values(), strict=True):
            if not torch.equal(v, w):
                return False
    return True


# the first stops after epoch 2, the second after 4, the third goes to the end
SCORES = ([1, 5, 5], [5, 4, 1, 5, 5], [6, 5, 4, 3, 2, 1])
STOPS = {"smooth": 1, "patience": 2}


# ---- one after the other


def test_on_a_cpu_they_are_fitted_one_after_the_other():
    order, made = [], fits(dropout=0.4)

    def noted(fit):
        return replace(fit, loss=lambda b, rng: order.append(fit.name) or fit.loss(b, rng))

    together = fit_all([noted(fit) for fit in made], rows(), told())
    assert order == sorted(order)
    alone = fits(dropout=0.4)
    assert together == each_alone(alone, rows(), told())
    assert same(made, alone)


def test_each_fitted_alone_has_a_checkpoint_of_its_name(tmp_path):
    training = told(checkpoint=tmp_path / "c")
    made, again = fits(), fits()
    fit_all(made, rows(), training)
    assert {p.name for p in tmp_path.iterdir()} == {"c.net-0", "c.net-1", "c.net-2"}
    taken = [replace(f, loss=lambda batch, rng: 1 / 0) for f in again]
    fit_all(taken, rows(), training)
    assert same(made, taken)


def test_a_single_network_keeps_the_checkpoint_where_it_was_named(tmp_path):
    fit_all(fits()[:1], rows(), told(checkpoint=tmp_path / "c"))
    assert [p.name for p in tmp_path.iterdir()] == ["c"]


def test_a_checkpoint_of_other_rows_is_refused(tmp_path):
    training = told(checkpoint=tmp_path / "c")
    first, second = fits()[0], fits()[0]
    fit_all([replace(first, rows=torch.arange(8))], rows(), training)
    with pytest.raises(ValueError, match="belongs to a fit with other data"):
        fit_all([replace(second, rows=torch.arange(1, 9))], rows(), training)


def test_steps_are_captured_on_a_gpu_only():
    assert _captured(fits(), told()) is None


def test_no_networks_need_no_fit():
    assert fit_all([], rows(), told()) == []


def test_checkpoints_of_the_same_name_are_refused(tmp_path):
    twice = [replace(fit, name="a") for fit in fits()]
    with pytest.raises(ValueError, match=r"names of their own, but got \['a', 'a', 'a'\]"):
        fit_all(twice, rows(), told(checkpoint=tmp_path / "c"))


# ---- in step


@pytest.mark.parametrize("ema", [0.9, None])
@pytest.mark.parametrize("batch_size", [4, 5, 64])  # with a rest, without, one batch
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_in_step_they_end_bit_equal_to_those_fitted_alone(ema, batch_size, dtype):
    made, alone = fits(ema=ema, dtype=dtype), fits(ema=ema, dtype=dtype)
    data, training = rows(dtype=dtype), told(batch_size=batch_size)
    assert _in_step(made, data, training) == each_alone(alone, data, training)
    assert same(made, alone)


def with_rows(made, every):
    return [replace(fit, rows=own) for fit, own in zip(made, every, strict=True)]


def test_in_step_on_rows_of_their_own_they_are_those_fitted_alone_on_these_rows():
    data = rows(12)
    every = [torch.arange(10), torch.arange(2, 12), torch.arange(12)[torch.arange(12) % 6 != 3]]
    made, alone = fits(), fits()
    found = _in_step(with_rows(made, every), data, told())
    for fit, own, history in zip(alone, every, found, strict=True):
        part = Dataset(data.x[own], data.y[own])
        assert each_alone([fit], part, told()) == [history]
    assert same(made, alone)


def test_rows_of_their_own_are_kept_where_they_are_fitted_one_after_the_other():
    data = rows(12)
    every = [torch.arange(10), torch.arange(3), torch.arange(4, 12)]  # as many or not
    made, alone = fits(), fits()
    found = fit_all(with_rows(made, every), data, told())
    for fit, own, history in zip(alone, every, found, strict=True):
        part = Dataset(data.x[own], data.y[own])
        assert each_alone([fit], part, told()) == [history]
    assert same(made, alone)


def test_in_step_each_takes_its_turn():
    order = []

    def noted(fit):
        return replace(fit, loss=lambda b, rng: order.append(fit.name) or fit.loss(b, rng))

    _in_step([noted(fit) for fit in fits()], rows(), told(epochs=2))
    assert order == ["net-0", "net-1", "net-2"] * 6


def test_a_network_that_stops_early_is_left_at_its_best_while_the_others_go_on():
    made, alone = fits(SCORES), fits(SCORES)
    found = _in_step(made, rows(), told(**STOPS))
    assert [len(history.losses) for history in found] == [3, 5, 6]
    assert [history.best_epoch for history in found] == [0, 2, 5]
    assert found == each_alone(alone, rows(), told(**STOPS))
    assert same(made, alone)
    assert not any(fit.model.training for fit in made)


def test_one_without_a_score_goes_to_the_end_beside_one_with():
    made, alone = ([replace(fits()[0], score=script([1, 5, 5])), fits()[1]] for _ in range(2))
    found = _in_step(made, rows(), told(**STOPS))
    assert [len(history.losses) for history in found] == [3, 6]
    assert found == each_alone(alone, rows(), told(**STOPS))


def test_a_loss_that_is_not_finite_ends_them_all_in_words():
    made = fits()
    made[1] = replace(made[1], loss=lambda batch, rng: made[1].model(batch.x).sum() * float("nan"))
    with pytest.raises(RuntimeError, match="loss became nan in epoch 0"):
        _in_step(made, rows(), told())


def test_in_step_the_global_stream_is_neither_read_nor_moved():
    a, b = fits(dropout=0.4), fits(dropout=0.4)
    torch.manual_seed(1)
    before = torch.get_rng_state()
    _in_step(a, rows(), told())
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(2)
    _in_step(b, rows(), told())
    assert same(a, b)


# ---- the checkpoint of a group


class Killed(Exception):
    pass


def dying(made, steps):
    """The fits, until their losses have been asked ``steps`` times in all."""
    left = [steps]

    def mortal(fit):
        def loss(batch, rng):
            left[0] -= 1
            if left[0] < 0:
                raise Killed
            return fit.loss(batch, rng)

        return replace(fit, loss=loss)

    return [mortal(fit) for fit in made]


# nine steps an epoch for all three, six after the first has stopped, three for the last
@pytest.mark.parametrize("steps", [4, 9, 13, 28, 33, 40])
def test_a_broken_and_resumed_group_ends_bit_equal_to_an_unbroken_one(tmp_path, steps):
    whole, broken, resumed = (fits(SCORES, dropout=0.4) for _ in range(3))
    first = _in_step(whole, rows(), told(**STOPS))
    path = tmp_path / "group"
    with pytest.raises(Killed):
        _in_step(dying(broken, steps), rows(), told(checkpoint=path, **STOPS))
    done = torch.load(path)["epoch"] + 1 if path.exists() else 0
    for i, scores in enumerate(SCORES):
        resumed[i] = replace(resumed[i], score=script(scores[done:], done > 0))
    second = _in_step(resumed, rows(), told(checkpoint=path, **STOPS))
    assert second == first
    assert same(whole, resumed)


def test_a_finished_group_is_taken_from_its_file(tmp_path):
    training = told(checkpoint=tmp_path / "group")
    made, again = fits(), fits()
    found = _in_step(made, rows(), training)
    assert _in_step(dying(again, 0), rows(), training) == found
    assert same(made, again)


@pytest.mark.parametrize("other", [{"seed": 9}, {"ema": 0.8}, {"recipe": "x"}], ids=str)
def test_the_file_of_another_group_is_refused(tmp_path, other):
    training = told(checkpoint=tmp_path / "group")
    _in_step(fits(), rows(), training)
    made = fits()
    made[2] = replace(made[2], **other)
    with pytest.raises(
        ValueError, match="belongs to a fit with other data, cost, settings or seed"
    ):
        _in_step(made, rows(), training)


# ---- on a GPU


def on_gpu(dropout=0.0, scores=None, n=330, **settings):
    made = fits(scores, dropout=dropout, device="cuda")
    return made, fit_all(made, rows(n, "cuda"), told(batch_size=32, **settings))


@needs_gpu
@pytest.mark.parametrize("n", [320, 330])  # without a rest, and with
def test_trained_together_on_a_gpu_they_have_the_losses_of_those_trained_alone(n):
    _, found = on_gpu(n=n)
    alone = each_alone(fits(device="cuda"), rows(n, "cuda"), told(batch_size=32))
    for one, other in zip(found, alone, strict=True):
        assert one.losses == pytest.approx(other.losses, rel=1e-5)
    plain = fits(device="cuda")
    slow = fit_all(plain, rows(n, "cuda"), told(batch_size=32, record=False))
    for one, other in zip(found, slow, strict=True):
        assert one.losses == pytest.approx(other.losses, rel=1e-3)


@needs_gpu
def test_the_first_replay_draws_its_own_numbers_though_the_recording_is_late(monkeypatch):
    begin = torch.cuda.CUDAGraph.capture_begin

    def late(self, *args, **settings):
        torch.cuda._sleep(10**9)  # half a second on the stream that records
        return begin(self, *args, **settings)

    monkeypatch.setattr(torch.cuda.CUDAGraph, "capture_begin", late)
    _, found = on_gpu(epochs=1)
    monkeypatch.undo()
    for one, other in zip(found, on_gpu(epochs=1)[1], strict=True):
        assert one.losses == other.losses


@needs_gpu
def test_same_seeds_on_a_gpu_same_bits_with_dropout_and_early_stops():
    (a, first), (b, second) = (on_gpu(dropout=0.4, scores=SCORES, **STOPS) for _ in range(2))
    assert first == second
    assert same(a, b)
    assert [len(history.losses) for history in first] == [3, 5, 6]


@needs_gpu
@pytest.mark.parametrize("epochs", [1, 3])
def test_a_group_resumed_on_a_gpu_ends_with_the_same_bits(tmp_path, epochs):
    whole, first = on_gpu(dropout=0.4, decay=False)
    on_gpu(dropout=0.4, decay=False, epochs=epochs, checkpoint=tmp_path / "c")
    assert [p.name for p in tmp_path.iterdir()] == ["c.net-0-and-2-more"]
    resumed, second = on_gpu(dropout=0.4, decay=False, checkpoint=tmp_path / "c")
    assert second == first
    assert same(whole, resumed)


@needs_gpu
def test_the_memory_of_a_recording_is_free_after_the_fit():
    on_gpu()  # libraries keep what they set up in the first
    before = torch.cuda.memory_allocated()
    on_gpu()
    assert torch.cuda.memory_allocated() - before < 1 << 16


@needs_gpu
def test_folds_of_df2_fitted_together_are_those_fitted_one_after_the_other():
    def cost(y, a):
        return (3 * (y - a).relu() + (a - y).relu()).sum(-1)

    rng = torch.Generator().manual_seed(0)
    x = torch.rand(300, 2, generator=rng)
    y = x + 0.1 * torch.randn(300, 2, generator=rng)
    task = cs.Task(cost, cs.Box(0.0, 2.0, dim=2))

    def fit(record, outcomes):
        training = told(epochs=4, batch_size=32, record=record, device="cuda")
        method = cs.DF2(task, outcomes=outcomes, folds=3, points=50, training=training)
        return method.fit(x, y).history_

    for outcomes in (cs.Absolute(), cs.Anchored()):
        fast, plain = (fit(record, outcomes) for record in (True, False))
        for one, other in zip(fast, plain, strict=True):
            assert one.losses == pytest.approx(other.losses, rel=1e-2)
