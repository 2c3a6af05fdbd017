from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from unittest.mock import Mock

import pytest
import torch

import costscape as cs
from costscape.training.cuda import capture_probe as recording
from costscape.training.cuda.graph import WATCHED, Captured

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")


@dataclass(eq=False)
class Sum:
    """The sum of the rows and a little noise; counts its steps and adds up its shares."""

    rng: torch.Generator
    waits: bool = False

    def __post_init__(self):
        self.steps = torch.zeros((), device=self.rng.device)
        self.shares = torch.zeros((), device=self.rng.device)

    def gradient(self, rows):
        noise = 0.01 * torch.rand((), device=self.rng.device, generator=self.rng)
        if self.waits:
            float(noise)  # the CPU waits for a number
        return rows.sum() + noise

    def move(self, share):
        self.steps += 1
        self.shares += share


def sums(n, device="cuda", waits=()):
    return [Sum(torch.Generator(device).manual_seed(i), i in waits) for i in range(n)]


def rows_of(i, n, size=2, device="cuda"):
    return torch.full((n, size), i, device=device) + 10 * torch.arange(n, device=device)[:, None]


def one_by_one(updates, rows, shares):
    """The same without a graph."""
    losses = []
    for update, own, share in zip(updates, rows, shares, strict=True):
        losses.append(update.gradient(own))
        update.move(share)
    return torch.stack(losses)


def noise_in(step, updates, count=8, size=2, device="cuda"):
    """What is left of the losses after the rows, one row for each step; shares are checked."""
    left, n = [], len(updates)
    before = [float(update.shares) for update in updates]
    for i in range(count):
        losses = step(updates, rows_of(i, n, size, device), [100.0 * i + k for k in range(n)])
        exact = [float(size * (i + 10 * k)) for k in range(n)]
        left.append(losses.double().cpu() - torch.tensor(exact, dtype=torch.float64))
    told = [100.0 * count * (count - 1) / 2 + count * k for k in range(n)]
    assert [float(update.shares) for update in updates] == pytest.approx(
        [a + b for a, b in zip(before, told, strict=True)]
    )
    return torch.stack(left)


def fit(record, loss_waits=False, **settings):
    def cost(y, a):
        if loss_waits:
            float(a.sum())  # the CPU waits for a number
        return (3 * (y - a).relu() + (a - y).relu()).sum(-1)

    rng = torch.Generator().manual_seed(0)
    x = torch.rand(300, 12, 1, generator=rng)
    y = x[:, :2, 0] + 0.1 * torch.randn(300, 2, generator=rng)
    training = cs.Training(epochs=4, record=record, device="cuda", progress=False)
    task = cs.Task(cost, cs.Box(0.0, 2.0, dim=2))
    encoder = partial(cs.LSTM, 1)  # without dropout, whose draws differ between the two
    settings = {"outcomes": cs.Absolute(), "folds": 1, "encoder": encoder, **settings}
    return cs.DF2(task, training=training, **settings).fit(x, y)


@needs_gpu
def test_a_recorded_fit_is_the_plain_one_up_to_rounding():
    fast, plain = (fit(record).history_[0] for record in (True, False))
    assert fast.losses == pytest.approx(plain.losses, rel=1e-3)
    assert fast.scores == pytest.approx(plain.scores, rel=1e-2)


@needs_gpu
@pytest.mark.parametrize("folds", [1, 3])
def test_a_step_that_waits_for_a_number_is_launched_as_ever(folds):
    fast, plain = (fit(record, True, folds=folds).history_ for record in (True, False))
    for one, other in zip(fast, plain, strict=True):
        assert one.losses == pytest.approx(other.losses, rel=1e-3)


@needs_gpu
@pytest.mark.parametrize("n", [1, 3])
def test_every_replay_draws_anew_and_sees_its_own_batch(n):
    step, updates = Captured(), sums(n)
    noise = noise_in(step, updates)
    assert step.sizes[2].graph is not None
    assert ((noise > -1e-3) & (noise < 0.011)).all()
    assert len({round(v, 5) for v in noise.flatten().tolist()}) > 6 * n
    assert [int(update.steps) for update in updates] == [8] * n


@needs_gpu
@pytest.mark.parametrize("n", [1, 3])
def test_what_is_drawn_is_the_same_recorded_or_not(n):
    recorded, plain = noise_in(Captured(), sums(n)), noise_in(one_by_one, sums(n))
    assert torch.allclose(recorded, plain, atol=2e-4)


@needs_gpu
def test_where_one_of_three_waits_none_is_recorded_and_none_steps_twice():
    step, updates = Captured(), sums(3, waits=(1,))
    noise = noise_in(step, updates)
    assert step.sizes[2].graph is None
    assert [int(update.steps) for update in updates] == [8, 8, 8]
    assert torch.allclose(noise, noise_in(one_by_one, sums(3)), atol=2e-4)


@needs_gpu
def test_each_batch_size_has_a_recording_of_its_own():
    step, updates = Captured(), sums(2)
    recorded = [noise_in(step, updates, 4, size) for size in (2, 1, 2, 1)]
    assert all(step.sizes[size].graph is not None for size in (2, 1))
    assert step.sizes[1].seen == 1
    assert [int(update.steps) for update in updates] == [16, 16]
    again = sums(2)
    plain = [noise_in(one_by_one, again, 4, size) for size in (2, 1, 2, 1)]
    assert torch.allclose(torch.stack(recorded), torch.stack(plain), atol=2e-4)


@needs_gpu
def test_a_smaller_batch_that_waits_does_not_stop_the_others_replay():
    class Fussy(Sum):
        def gradient(self, rows):
            self.waits = len(rows) == 1
            return super().gradient(rows)

    step, updates = Captured(), [Fussy(update.rng) for update in sums(2)]
    recorded = [noise_in(step, updates, 4, size) for size in (2, 1, 2)]
    assert step.sizes[2].graph is not None
    assert step.sizes[1].graph is None
    again = sums(2)
    plain = [noise_in(one_by_one, again, 4, size) for size in (2, 1, 2)]
    assert torch.allclose(torch.stack(recorded), torch.stack(plain), atol=2e-4)


@needs_gpu
def test_with_fewer_updates_the_rest_is_recorded_anew_and_goes_on():
    step, updates = Captured(), sums(3)
    noise_in(step, updates, count=WATCHED + 2)
    first = step.sizes[2].graph
    left = [updates[0], updates[2]]
    noise = noise_in(step, left, count=4)
    assert step.sizes[2].graph is not first
    assert ((noise > -1e-3) & (noise < 0.011)).all()
    assert [int(update.steps) for update in updates] == [WATCHED + 6, WATCHED + 2, WATCHED + 6]


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU has real graphs")
def test_after_a_recording_the_current_stream_waits_for_that_which_recorded(monkeypatch):
    said = []

    class Stream:
        def wait_stream(self, other):
            said.append(("waits for", other))

    @contextmanager
    def graph(made, stream, **settings):
        said.append(("records on", stream))
        yield
        said.append("recorded")

    monkeypatch.setattr(recording, "side_stream", lambda device: "side")
    monkeypatch.setattr(torch.cuda, "graph", graph)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: Stream())
    made = Mock(spec=torch.cuda.CUDAGraph)  # builds differ in how one is made
    with recording.recorded(made, torch.device("cuda")):
        said.append("work")
    assert said == [("records on", "side"), "work", "recorded", ("waits for", "side")]
