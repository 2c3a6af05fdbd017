"""Steps over stacked LSTMs against the steps of each network by itself."""

from dataclasses import replace

import pytest
import torch
from torch import nn

import costscape as cs
from costscape.data import Dataset
from costscape.training.cuda import together
from costscape.training.cuda.graph import Captured, one_by_one, side_by_side
from costscape.training.cuda.together import Together, Unable, stacked_gradients
from costscape.training.fit_state import Underway
from costscape.training.loop import Fit, Training, _in_step, fit_networks

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")


class Reader(nn.Module):
    """What an LSTM says at the end, and some of x itself."""

    def __init__(self, dropout=0.0, noise=0.0, hidden=4):
        super().__init__()
        self.encoder = cs.LSTM(2, hidden, 2, dropout, noise)
        self.out = nn.Linear(hidden, 1)

    def forward(self, x):
        return self.out(self.encoder(x)) + x[:, 0, :1]


def rows(n=10, device="cpu", dtype=torch.float64):
    rng = torch.Generator().manual_seed(0)
    x = torch.randn(n, 5, 2, generator=rng)
    return Dataset(x, x.sum((1, 2))[:, None]).to(device, dtype)


def noisy(model):
    def loss(batch, rng):
        found = model(batch.x)  # the LSTM is asked before anything is drawn
        noise = torch.randn(batch.y.shape, generator=rng, device=rng.device, dtype=batch.y.dtype)
        return (found - batch.y + 0.1 * noise).square().mean()

    return loss


def fits(n=3, device="cpu", dtype=torch.float64, ema=0.9, **settings):
    made = []
    for i in range(n):
        with torch.random.fork_rng([]):
            torch.manual_seed(i)
            model = Reader(**settings).to(device, dtype)
        made.append(Fit(model, noisy(model), 7 * i, None, ema, recipe=str(i), name=f"net-{i}"))
    return made


def steps_of(made, data, train=True):
    steps = [Underway(fit, fit.loss, data, 1e-3, 0.0, False).step for fit in made]
    for step in steps:
        step.model.train(train)
    return steps


def batches(n, size=4):
    rng = torch.Generator().manual_seed(5)
    return torch.stack([torch.randperm(10, generator=rng)[:size] for _ in range(n)])


def gradients(steps):
    return [p.grad for step in steps for p in step.model.parameters()]


@pytest.mark.parametrize("n", [1, 2, 5])
def test_losses_and_gradients_are_those_of_each_by_itself(n):
    one, other = (steps_of(fits(n), rows()) for _ in range(2))
    for _ in range(2):  # gradients are made anew, not added to the last
        found, wanted = (
            way(s, batches(n)) for way, s in ((stacked_gradients, one), (side_by_side, other))
        )
        assert torch.allclose(found, wanted, rtol=1e-12)
        for a, b in zip(gradients(one), gradients(other), strict=True):
            assert torch.allclose(a, b, rtol=1e-10, atol=1e-14)
    assert all(
        torch.equal(a.rng.get_state(), b.rng.get_state()) for a, b in zip(one, other, strict=True)
    )


def test_a_fit_over_stacked_lstms_is_the_fit_of_each(monkeypatch):
    def stacked(updates, rows, shares):
        losses = stacked_gradients(updates, rows)
        for update, share in zip(updates, shares, strict=True):
            update.move(share)
        return losses

    training = Training(epochs=4, batch_size=4, progress=False)
    plain, made = fits(), fits()
    wanted = _in_step(plain, rows(), training)
    monkeypatch.setattr("costscape.training.loop.one_by_one", stacked)
    for one, other in zip(_in_step(made, rows(), training), wanted, strict=True):
        assert one.losses == pytest.approx(other.losses, rel=1e-9)
    for a, b in zip(plain, made, strict=True):
        for v, w in zip(a.model.parameters(), b.model.parameters(), strict=True):
            assert torch.allclose(v, w, rtol=1e-7, atol=1e-10)


def test_the_same_seed_draws_the_same_dropout_and_noise():
    found = []
    for _ in range(2):
        torch.manual_seed(0)
        found.append(stacked_gradients(steps_of(fits(dropout=0.4, noise=0.1), rows()), batches(3)))
    assert torch.equal(*found)
    still = stacked_gradients(steps_of(fits(dropout=0.4, noise=0.1), rows(), False), batches(3))
    assert not torch.allclose(found[0], still)


def test_the_lstm_itself_answers_again_after_the_step():
    steps = steps_of(fits(1), rows())
    lstm = steps[0].model.encoder.lstm
    stacked_gradients(steps, batches(1))
    assert "forward" not in vars(lstm)
    out, (h, _) = lstm(rows().x)
    assert torch.equal(out[:, -1], h[-1])


class Twice(Reader):
    def forward(self, x):
        return super().forward(x) + super().forward(x)


class Never(Reader):
    def forward(self, x):
        return self.out(x[:, :2].flatten(1))


class Hours(Reader):
    def forward(self, x):
        return self.out(self.encoder.lstm(x)[0].mean(1))


class FirstLayer(Reader):
    def forward(self, x):
        return self.out(self.encoder.lstm(x)[1][0][0])


class Cell(Reader):
    def forward(self, x):
        return self.out(torch.tanh(self.encoder.lstm(x)[1][1])[-1])


class Embedded(Reader):
    def forward(self, x):
        return super().forward(x * self.out.bias)


class Unpacked(Reader):
    def forward(self, x):
        _, (h, _) = self.encoder.lstm(x)
        _, last = h
        return self.out(last)


@pytest.mark.parametrize(
    "kind", [Twice, Never, Hours, FirstLayer, Cell, Embedded, Unpacked], ids=lambda k: k.__name__
)
def test_a_network_that_uses_its_lstm_otherwise_is_stepped_as_ever(kind):
    def made():
        torch.manual_seed(0)
        model = kind().double()
        return steps_of([Fit(model, noisy(model), 3)], rows())

    with pytest.raises(Unable):
        stacked_gradients(made(), batches(1))
    some, others = made(), made()
    together = Together([step.model for step in some])
    together.stacks = True
    assert torch.equal(together(some, batches(1)), side_by_side(others, batches(1)))
    assert not together.stacks
    for a, b in zip(gradients(some), gradients(others), strict=True):
        assert (a is None and b is None) or torch.equal(a, b)


def test_a_loss_that_draws_before_it_asks_the_lstm_is_stepped_as_ever():
    def made():
        torch.manual_seed(0)
        model = Reader().double()

        def loss(batch, rng):
            noise = torch.randn((), generator=rng, dtype=torch.float64)
            return (model(batch.x) - batch.y + noise).square().mean()

        return steps_of([Fit(model, loss, 3)], rows())

    some, others = made(), made()
    together = Together([step.model for step in some])
    together.stacks = True
    assert torch.equal(together(some, batches(1)), side_by_side(others, batches(1)))
    assert not together.stacks


def test_an_error_of_the_loss_is_told_and_the_lstm_left_whole():
    made = fits(1)
    steps = steps_of([replace(made[0], loss=lambda batch, rng: 1 / 0)], rows())
    with pytest.raises(ZeroDivisionError):
        stacked_gradients(steps, batches(1))
    assert "forward" not in vars(made[0].model.encoder.lstm)


def test_networks_without_an_lstm_or_on_a_cpu_are_not_stacked():
    assert not Together([nn.Linear(1, 1)]).stacks
    assert not Together([Reader(), Reader()]).stacks


# ---- on a GPU


@pytest.fixture
def exact(monkeypatch):
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)


@needs_gpu
@pytest.mark.parametrize(("n", "hidden"), [(1, 256), (5, 32)])
def test_recorded_steps_over_stacked_lstms_are_those_one_by_one(n, hidden, exact):
    data = rows(30, "cuda", torch.float32)
    settings = {"device": "cuda", "dtype": torch.float32, "hidden": hidden, "ema": None}
    some, others = (
        [Underway(f, f.loss, data, 1e-3, 0.0, True).step for f in fits(n, **settings)]
        for _ in range(2)
    )
    together = Together([step.model for step in some])
    assert together.stacks
    step = Captured(together)
    rng = torch.Generator().manual_seed(0)
    for size in (8, 8, 8, 8, 3, 8, 3, 3, 8):
        own = torch.stack([torch.randperm(30, generator=rng)[:size] for _ in range(n)]).cuda()
        found = step(some, own, [0.0] * n).clone()
        assert torch.allclose(found, one_by_one(others, own, [0.0] * n), rtol=1e-3)
    assert together.stacks
    assert all(step.sizes[size].graph is not None for size in (8, 3))


@needs_gpu
def test_five_networks_fitted_together_are_those_fitted_one_by_one(exact):
    data, training = (
        rows(70, "cuda", torch.float32),
        Training(epochs=5, batch_size=16, progress=False),
    )
    settings = {"n": 5, "device": "cuda", "dtype": torch.float32, "hidden": 32}
    found = fit_networks(fits(**settings), data, training)
    wanted = fit_networks(fits(**settings), data, replace(training, record=False))
    for one, other in zip(found, wanted, strict=True):
        assert one.losses == pytest.approx(other.losses, rel=1e-3)


@needs_gpu
def test_a_stacked_fit_resumed_on_a_gpu_ends_with_the_same_bits(tmp_path):
    def fitted(**settings):
        made = fits(3, "cuda", torch.float32, hidden=32, dropout=0.4, noise=0.1)
        training = Training(batch_size=16, progress=False, decay=False, **settings)
        return made, fit_networks(made, rows(70, "cuda", torch.float32), training)

    whole, first = fitted(epochs=5)
    fitted(epochs=2, checkpoint=tmp_path / "c")
    resumed, second = fitted(epochs=5, checkpoint=tmp_path / "c")
    assert second == first
    for a, b in zip(whole, resumed, strict=True):
        for v, w in zip(a.model.parameters(), b.model.parameters(), strict=True):
            assert torch.equal(v, w)


def test_a_single_small_lstm_is_left_to_cudnn(monkeypatch):
    monkeypatch.setattr(together, "fast", lambda lstm: True)
    small, wide = Reader(hidden=128), Reader(hidden=256)
    assert not Together([small]).stacks
    assert Together([wide]).stacks
    assert Together([small, Reader(hidden=128)]).stacks
    assert not Together([small, wide]).stacks  # of different sizes
    assert not Together([nn.Linear(2, 1), nn.Linear(2, 1)]).stacks
