"""How does a fit's time grow with rows, points, actions and dimensions, its memory with the batch?

One epoch of DF2 with shared outcomes; each size doubled three times from a common start, the
others kept; the slope of log seconds over log size by least squares. Processor seconds of one
thread, the least of three fits, all sizes in turn: a slow spell of the machine meets them all.
Memory is the peak of a fresh process beyond its start while a step with outcomes of their own for
each x is computed, its evaluations split into pieces. The curves are drawn to
benchmarks/results/scaling.svg.

python benchmarks/bench_scaling.py
"""

import io
import math
import multiprocessing

import torch
from common import RESULTS, at_most, once, show
from matplotlib import rc_context
from matplotlib.figure import Figure

from costscape import DF2, Absolute, Anchored, Training
from costscape.bench.memory import peak, watch
from costscape.data import Dataset
from costscape.methods.df2.slopes import Objective
from costscape.problems import inventory

START = {"rows": 2048, "points": 250, "actions": 100, "dimensions": 8}
DOUBLINGS = 4
PASSES = 3
SMALL, LARGE = 128, 1024  # batches whose memory is compared
FLAT = 1.25  # times as much memory that still counts as flat
PLOT = RESULTS / "scaling.svg"


def epoch(rows, points, actions, dimensions):
    rng = torch.Generator().manual_seed(0)
    x = torch.rand(rows, 4, generator=rng)
    y = torch.rand(rows, dimensions, generator=rng)
    training = Training(epochs=1, progress=False, device="cpu")
    method = DF2(
        inventory(dimensions),
        points=points,
        actions=actions,
        outcomes=Absolute(),
        folds=1,
        choose_epoch=False,
        training=training,
    )
    return once(lambda: method.fit(x, y, val=(x[:8], y[:8])))[0]


def grown(name):
    """[(size, seconds)], one size doubled at a time."""
    sizes = [START[name] * 2**i for i in range(DOUBLINGS)]
    taken = [[epoch(**{**START, name: size}) for size in sizes] for _ in range(PASSES)]
    return list(zip(sizes, map(min, *taken), strict=True))


def slope(pairs):
    logs = [(math.log(size), math.log(seconds)) for size, seconds in pairs]
    mean_x, mean_y = (sum(v) / len(logs) for v in zip(*logs, strict=True))
    above = sum((x - mean_x) * (y - mean_y) for x, y in logs)
    return above / sum((x - mean_x) ** 2 for x, _ in logs)


def step_memory(batch):
    """MiB."""
    torch.set_num_threads(1)
    rng = torch.Generator().manual_seed(0)
    data = Dataset(torch.rand(LARGE, 4, generator=rng), torch.rand(LARGE, 8, generator=rng))
    method = DF2(inventory(8), points=500, actions=32, outcomes=Anchored())
    torch.manual_seed(0)
    model = method._network(data, method.outcomes)
    objectives = [Objective(method.task, torch.tensor(1.0))]
    method.loss(objectives, model, data[:2], rng).backward()  # what torch loads at first use
    watch()
    before = peak(on_gpu=False)
    method.loss(objectives, model, data[:batch], rng).backward()
    return (peak(on_gpu=False) - before) / 2**20


def memory():
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        small, large = pool.map(step_memory, [SMALL, LARGE], chunksize=1)
    name = f"peak memory of a step, batch {LARGE:,} over {SMALL}"
    return at_most(name, large / small, FLAT, "times", f"{large:.0f} and {small:.0f} MiB")


def drawn(curves):
    """Seconds over those of the start against size over the start's, both in powers of 2."""
    with rc_context({"svg.fonttype": "none"}):
        figure = Figure(figsize=(5, 3.7), layout="constrained")
        axes = figure.subplots()
        for name, pairs in curves.items():
            size, seconds = pairs[0]
            words = f"{name}, from {size:,}: slope {slope(pairs):.2f}"
            axes.loglog(
                [s / size for s, _ in pairs], [t / seconds for _, t in pairs], "o-", label=words
            )
        span = 2 ** (DOUBLINGS - 1)
        axes.loglog([1, span], [1, span], ":", color="gray", label="slope 1")
        axes.set(xlabel="size, times its start", ylabel="seconds of an epoch, times the start's")
        axes.set_title("Seconds of an epoch of DF2 as its sizes grow")
        axes.legend(frameon=False)
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None})
    return out.getvalue()


def results():
    torch.set_num_threads(1)
    epoch(**START)  # the first of all pays for what torch loads late
    curves = {name: grown(name) for name in START}
    PLOT.parent.mkdir(exist_ok=True)
    PLOT.write_text(drawn(curves))
    slopes = [
        at_most(
            f"fit time over {name}, {pairs[0][0]:,} to {pairs[-1][0]:,}",
            slope(pairs),
            1.1,
            "in log-log",
            " ".join(f"{seconds:.2f}" for _, seconds in pairs) + " s",
        )
        for name, pairs in curves.items()
    ]
    return [*slopes, memory()]


if __name__ == "__main__":
    print(show(results()))
