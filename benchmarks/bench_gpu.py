"""How long does an epoch on wind take on a GPU, and how long do four folds over one fit?

The paper's size: LSTM of 2 x 256, S = 500 points, J = 100 actions, batches of 64, the paper's
recipe, which chooses no epoch and so decides nothing on the way. The windows are those of the
paper's file where COSTSCAPE_DATA has it, and random numbers of the same shape elsewhere. An epoch
is the difference of two fits by the number of their epochs, so that starting up and recording the
step do not count; four folds over one are whole fits. The vaccine problem's training step is
that of bench_vaccine.py, with the kernels of seirv_kernels and by torch's operations. Seconds on
the clock, the least of two, the GPU waited for.

python benchmarks/bench_gpu.py
"""

from dataclasses import dataclass, replace
from functools import partial
from unittest.mock import patch

import bench_vaccine
import torch
from common import at_most, least, once, reported, show
from rates import clock

from costscape import DF2, LSTM, CrossFit, Training
from costscape.data import Dataset
from costscape.problems import wind, wind_bidding
from costscape.problems.files.sources import find
from costscape.problems.vaccine_doses import seirv_fused

HISTORY, HORIZON = 24, 12
RECORDED = 2  # epochs after which the steps of whole and of last batches are recorded


@dataclass(frozen=True)
class Size:
    """The paper's; a test takes smaller ones."""

    hidden: int = 256
    points: int = 500
    actions: int = 100
    batch: int = 64
    windows: int = 6021  # of the paper's file, for training
    epochs: int = 10
    folds: int = 4
    simulated: int = 100  # points and actions of the vaccine problem


def device_for(size):
    """A GPU; without one only a size smaller than the paper's is measured."""
    if torch.cuda.is_available():
        return "cuda"
    if size == Size():
        raise SystemExit("This needs a GPU, and torch sees none. On a CPU run with --cpu.")
    return "cpu"


def windows_of(size):
    if size == Size() and find("wind") is not None:
        train = wind().splits.train
        return Dataset(train.x, train.y), "the paper's file"
    rng = torch.Generator().manual_seed(0)
    x = torch.rand(size.windows, HISTORY, 1, generator=rng)
    return Dataset(x, torch.rand(size.windows, HORIZON, generator=rng)), "random numbers"


def method_of(size, device, **training):
    return DF2.as_in_paper(
        wind_bidding(),
        points=size.points,
        actions=size.actions,
        encoder=partial(LSTM, hidden=size.hidden),
        training=Training(batch_size=size.batch, progress=False, device=device, **training),
    )


def fit(method, train, epochs):
    shortened = method.changed(training=replace(method.trains(), epochs=epochs))
    return shortened.fit(train.x, train.y, val=(train.x[:8], train.y[:8]))


def epoch_seconds(method, train, epochs, now):
    short = least(partial(fit, method, train, RECORDED), 2, now)
    long = min(once(partial(fit, method, train, RECORDED + epochs), now)[0] for _ in range(2))
    return (long - short) / epochs


def epochs(size, device):
    train, source = windows_of(size)
    now = clock(device)
    recorded = epoch_seconds(method_of(size, device), train, size.epochs, now)
    plain = epoch_seconds(method_of(size, device, record=False), train, 3, now)
    steps = -(-len(train) // size.batch)
    note = f"{len(train):,} windows, {source}; {1e3 * recorded / steps:.2f} ms a step"
    return [
        at_most("wind epoch at the paper's size, one GPU", recorded, 0.10, "s", note),
        reported("the same without recording the step", plain, "s"),
    ]


def together(size, device):
    train, _ = windows_of(size)
    now = clock(device)
    one = replace(method_of(size, device), seed=1)
    several = CrossFit(one, folds=size.folds)
    both = [one, several]
    for method in both:
        fit(method, train, 1)
    alone, all_of = (
        min(once(partial(fit, method, train, 2 * size.epochs), now)[0] for _ in range(2))
        for method in both
    )
    name = f"{size.folds} folds over one network, a wind fit of {2 * size.epochs} epochs"
    return [reported(name, all_of / alone, "times", f"{all_of:.2f} and {alone:.2f} s")]


def simulating(size, device):
    few = str(size.simulated)
    sizes = ["--points", few, "--actions", few, "--times", "3"]
    args = bench_vaccine.options(["--device", device, *sizes])
    found = []
    for name, weeks in (("one week", 1), ("wave of eight weeks", 8)):
        line = (bench_vaccine.step, weeks, False)
        taken = bench_vaccine.measured(line, args)
        with patch.object(seirv_fused, "serves", return_value=False):
            plain = bench_vaccine.measured(line, args)
        step = f"vaccine training step, {name}, one GPU"
        notes = (f"{taken.peak:.2g} GiB", f"{plain.wall:.2g} s and {plain.peak:.2g} GiB without")
        found.append(reported(step, taken.wall, "s", notes[0]))
        found.append(reported(f"{step}, by kernels", plain.wall / taken.wall, "times", notes[1]))
    return found


def results(size=None):
    size = size or Size()
    device = device_for(size)
    return [*epochs(size, device), *together(size, device), *simulating(size, device)]


if __name__ == "__main__":
    print(show(results()))
