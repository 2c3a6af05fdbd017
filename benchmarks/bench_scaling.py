"""How does a fit's time grow with rows, points, actions and dimensions, its memory with the batch?

One epoch of DF2 with shared outcomes; each size doubled three times from a common start, the
others kept; the slope of log seconds over log size by least squares. Memory is the process's peak
beyond its start while a step with outcomes of their own for each x is computed, its evaluations
split into pieces. One thread.

python benchmarks/bench_scaling.py [--plot]
"""

import argparse
import math
from pathlib import Path

import torch
from common import at_most, least, show

from costscape import DF2, Absolute, Anchored, Training
from costscape.data import Dataset
from costscape.experiments.memory import peak, watch
from costscape.tasks import inventory

START = {"rows": 2048, "points": 500, "actions": 100, "dimensions": 8}
DOUBLINGS = 4
PLOT = Path(__file__).parents[1] / "out" / "scaling.png"


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
        members=1,
        choose_epoch=False,
        training=training,
    )
    val = (x[:8], y[:8])
    return least(lambda: method.fit(x, y, val=val), 2)


def grown(name):
    """[(size, seconds)], one size doubled at a time."""
    sizes = [START[name] * 2**i for i in range(DOUBLINGS)]
    return [(size, epoch(**{**START, name: size})) for size in sizes]


def slope(pairs):
    logs = [(math.log(size), math.log(seconds)) for size, seconds in pairs]
    mean_x, mean_y = (sum(v) / len(logs) for v in zip(*logs, strict=True))
    above = sum((x - mean_x) * (y - mean_y) for x, y in logs)
    return above / sum((x - mean_x) ** 2 for x, _ in logs)


def step_memory(batch):
    rng = torch.Generator().manual_seed(0)
    data = Dataset(torch.rand(1024, 4, generator=rng), torch.rand(1024, 8, generator=rng))
    method = DF2(inventory(8), points=500, actions=32, outcomes=Anchored())
    model, _ = method._network(data, method.outcomes)
    watch()
    before = peak(on_gpu=False)
    method.loss(method.task, model, data[:batch], rng).backward()
    return (peak(on_gpu=False) - before) / 2**20


def measure(curves=None):
    torch.set_num_threads(1)
    results = []
    for name in START:
        pairs = grown(name)
        if curves is not None:
            curves[name] = pairs
        results.append(at_most(f"fit time over {name}", slope(pairs), 1.1, "in log-log"))
    small, large = step_memory(128), step_memory(1024)
    note = f" ({small:.0f} and {large:.0f} MiB)"
    name = "peak memory of a step, batch 1,024 against 128"
    results.append(at_most(name, large / small, 2.0, "times", note))
    return results


def plot(curves, path=PLOT):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4.5), layout="constrained")
    axes = figure.subplots()
    for name, pairs in curves.items():
        base = pairs[0]
        axes.loglog(
            *zip(*[(s / base[0], t / base[1]) for s, t in pairs], strict=True), "o-", label=name
        )
    axes.loglog([1, 2 ** (DOUBLINGS - 1)], [1, 2 ** (DOUBLINGS - 1)], "k:", label="slope 1")
    axes.set_xlabel("size, times its start")
    axes.set_ylabel("time of an epoch, times its start")
    axes.legend()
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path)
    return path


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plot", action="store_true", help="draw out/scaling.png")
    options = parser.parse_args()
    curves = {}
    print(show(measure(curves)))
    if options.plot:
        print(plot(curves))
