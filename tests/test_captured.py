import pytest
import torch

import costscape as cs
from costscape.captured import Captured
from costscape.data import Dataset

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")


def fit(record, loss_waits=False):
    def cost(y, a):
        if loss_waits:
            float(a.sum())  # the CPU waits for a number
        return (3 * (y - a).relu() + (a - y).relu()).sum(-1)

    rng = torch.Generator().manual_seed(0)
    x = torch.rand(300, 12, 1, generator=rng)
    y = x[:, :2, 0] + 0.1 * torch.randn(300, 2, generator=rng)
    training = cs.Training(epochs=4, record=record, device="cuda", progress=False)
    task = cs.Task(cost, cs.Box(0.0, 2.0, dim=2))
    return cs.DF2(task, outcomes=cs.Absolute(), members=1, training=training).fit(x, y)


def test_a_recorded_fit_is_the_plain_one_up_to_rounding():
    fast, plain = (fit(record).history_[0] for record in (True, False))
    assert fast.losses == pytest.approx(plain.losses, rel=1e-3)
    assert fast.scores == pytest.approx(plain.scores, rel=1e-2)


def test_a_step_that_waits_for_a_number_is_launched_as_ever():
    fast, plain = (fit(record, loss_waits=True).history_[0] for record in (True, False))
    assert fast.losses == pytest.approx(plain.losses, rel=1e-3)


def test_every_replay_draws_anew_and_sees_its_own_batch():
    rng = torch.Generator("cuda").manual_seed(0)

    def update(batch, share):
        return batch.x.sum() + share + 0.01 * torch.rand((), device="cuda", generator=rng)

    step = Captured(update, 2, rng)
    seen = []
    for i in range(8):
        x = torch.full((2, 1), float(i), device="cuda")
        seen.append(float(step(Dataset(x, x), 100.0 * i)))
    assert step.graph is not None
    noise = [value - 102.0 * i for i, value in enumerate(seen)]
    assert all(-0.001 <= n <= 0.011 for n in noise)
    assert len({round(n, 5) for n in noise}) > 6
