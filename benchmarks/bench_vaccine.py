"""How long do the simulations of the vaccine problem take, and how much memory?

The paper's size: 47 regions, S = 100 points, J = 100 actions, batch 32, one week; and a wave of
eight. Made-up people and trips; times and memory do not depend on them.

A DF2 training step: f(y_s, a_j) for all s and j, its gradient in w and y, and the labels' costs.
The encoder is left out (a softmax of free numbers stands for it). Own actions for each pair
simulate 32 times as many courses: timed on --own pairs and scaled to 32, as they are proportional
to it.

Each is a process of its own, the least of --times runs: seconds of its work, which with one thread
are what one idle core would take and two at least not more, and the peak, of the process less what
it held before on a CPU, of the allocator on CUDA. Goals are for two cores; one has to meet them.

python benchmarks/bench_vaccine.py [--device cuda] [--threads 1] [--own 1] [--times 2]
"""

import argparse
import multiprocessing
import resource
import time
from typing import NamedTuple

import torch
from common import at_most, reported, show

from costscape.problems.vaccine_doses.allocation import vaccine, vaccine_wave
from costscape.problems.vaccine_doses.epidemic import Epidemic
from costscape.problems.vaccine_doses.seirv import trip_shares
from costscape.scenarios import ExpectedCost, Scenarios

BATCH, REGIONS = 32, 47


def made_up(weeks, device):
    rng = torch.Generator().manual_seed(0)
    shares = torch.rand(4, REGIONS, generator=rng) * torch.tensor([[1], [0.01], [0.01], [0.1]])
    population = 10 ** (5.7 + torch.rand(REGIONS, generator=rng))
    beta = 0.1 + 0.1 * torch.rand(REGIONS, generator=rng)
    epidemic = Epidemic(population, shares / shares.sum(0), beta)
    return (vaccine(epidemic) if weeks == 1 else vaccine_wave(epidemic, weeks=weeks)).to(device)


def trips(*batch, rng):
    od = torch.rand(*batch, 7, REGIONS, REGIONS, device=rng.device, generator=rng)
    return trip_shares(od + 20 * REGIONS * torch.eye(REGIONS, device=rng.device))


def step(task, args, rng, own):
    batch, rows = (args.own, args.own) if own else (BATCH, 1)
    w = torch.randn(batch, args.points, generator=rng, device=rng.device).requires_grad_()
    v = trips(1, args.points, rng=rng).requires_grad_()
    y = trips(batch, rng=rng)
    a = task.feasible.sample(rows * args.actions, rng).unflatten(0, (rows, args.actions))

    def once():
        with torch.no_grad():
            paid = task.cost(y.unsqueeze(1), a)
        g = ExpectedCost(task, Scenarios(w.softmax(-1), v))(a)
        (g - paid).square().mean().backward()

    return once


class Taken(NamedTuple):
    """Seconds on the clock, of all processors' work (on CUDA the clock's), and the peak in GiB."""

    wall: float
    work: float
    peak: float


def measured(line, args):
    make, weeks, own = line
    torch.set_num_threads(args.threads)
    rng = torch.Generator(args.device).manual_seed(0)
    once = make(made_up(weeks, args.device), args, rng, own)
    cuda = args.device.startswith("cuda")
    if cuda:
        torch.cuda.reset_peak_memory_stats()
    before = _peak(cuda)
    wall, work = [], []
    for _ in range(args.times):
        begin, worked = time.perf_counter(), time.process_time()
        once()
        if cuda:
            torch.cuda.synchronize()
        wall.append(time.perf_counter() - begin)
        work.append(time.process_time() - worked)
    return Taken(
        min(wall), min(wall if cuda else work), (_peak(cuda) - (0 if cuda else before)) / 2**30
    )


def _peak(cuda):
    if cuda:
        return torch.cuda.max_memory_allocated()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def in_fresh_process(line, args):
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(measured, (line, args))


def results(args=None):
    args = args or options([])
    week, wave, own = (
        in_fresh_process(line, args)
        for line in ((step, 1, False), (step, 8, False), (step, 1, True))
    )
    whole = BATCH / args.own
    words = "{0.wall:.2f} s on the clock".format
    scaled = f"{whole * own.work:.0f} s, from {args.own} of {BATCH} pairs"
    return [
        at_most("vaccine training step, one week", week.work, 2, "s", words(week)),
        at_most("vaccine training step, one week: memory", week.peak, 4, "GiB"),
        at_most("vaccine training step, wave of eight weeks", wave.work, 10, "s", words(wave)),
        at_most("vaccine training step, wave of eight weeks: memory", wave.peak, 4, "GiB"),
        reported(
            "vaccine step, against own actions for each pair",
            whole * own.work / week.work,
            note=scaled,
        ),
    ]


def options(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--own", type=int, default=1, help="pairs timed with own actions")
    parser.add_argument("--points", type=int, default=100)
    parser.add_argument("--actions", type=int, default=100)
    parser.add_argument("--times", type=int, default=2)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    print(show(results(options())))
