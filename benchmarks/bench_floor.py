"""How near are the training steps and a decision to what one core could do?

What a core does at best is measured: a large product of matrices in single precision, and a large
copy. Operations and bytes are counted as if everything were fused and every number fetched once;
the floor is the longer of the two times, and the share is the floor over what is taken.

    synthetic step   3 x 2 B S (H + J) + 20 J S d + 12 P      operations; 4 x 9 P bytes
    wind step        that of bench_roofline.py
    vaccine step     3 x 2 n S J c K^2                        n = 56 slopes of c = 3 groups a week
    1,000 decisions  2 B S d 1025                             g on the grid; 4 B d 1025 bytes

3 x is forward and twice that backward; P are the parameters, each read twice, with its gradient
and Adam's two moments; f and its slope take some 20 operations. Processor seconds of one thread.

python benchmarks/bench_floor.py
"""

from functools import partial

import bench_decide
import bench_step
import bench_vaccine
import bench_wind
import torch
from bench_gpu import Size
from bench_roofline import counted
from common import least, reported, show
from rates import copy_rate, product_rate

from costscape.bench import PROBLEMS
from costscape.data import Dataset
from costscape.problems import synthetic_convex, synthetic_nonconvex, wind_farm

GRID = 1025


def synthetic_step():
    """Operations, bytes, seconds."""
    B, S, J, H, d = bench_step.BATCH, 1000, 100, 128, 2
    problem = PROBLEMS["synthetic-convex"](0)
    train = problem.data.train
    P = H * (train.x.shape[1] + 1) + S * (H + d)
    step = bench_step.step_of(problem, Dataset(train.x[:B], train.y[:B]))
    return 6 * B * S * (H + J) + 20 * J * S * d + 12 * P, 36 * P, least(step, 100)


def wind_step():
    count = counted(Size())
    step = bench_wind.df2_step(wind_farm().train)
    return count.lstm + count.others, count.bytes, least(step, 5)


def vaccine_step():
    args = bench_vaccine.options(["--device", "cpu"])
    taken = bench_vaccine.measured((bench_vaccine.step, 1, False), args).work
    S, J, K, slopes, groups = args.points, args.actions, bench_vaccine.REGIONS, 7 * 2 * 4, 3
    return 6 * slopes * S * J * groups * K**2, 2 * 4 * S * 7 * K**2, taken


def decisions():
    rng = torch.Generator().manual_seed(0)
    B, S, d = bench_decide.INSTANCES, bench_decide.POINTS, 2
    taken = sum(
        least(partial(bench_decide.solve, bench_decide.instances(task, rng)), 15)
        for task in (synthetic_convex(), synthetic_nonconvex())
    )
    return 2 * B * S * d * GRID, 4 * B * d * GRID, taken


WORK = {
    "synthetic training step": synthetic_step,
    "wind training step": wind_step,
    "vaccine training step, one week": vaccine_step,
    "decide 1,000, separable cost": decisions,
}


def results():
    torch.set_num_threads(1)
    flops, moved = product_rate(1024, times=4), copy_rate(2**25, times=4)
    found = [
        reported("one core: product of large matrices", flops / 1e9, "GFlop/s"),
        reported("one core: large copy, read and written", moved / 1e9, "GB/s"),
    ]
    for name, work in WORK.items():
        operations, held, taken = work()
        compute, memory = operations / flops, held / moved
        note = (
            f"{operations / 1e9:.3g} GFlop {1e3 * compute:.3g} ms, {held / 1e6:.3g} MB "
            f"{1e3 * memory:.3g} ms; taken {1e3 * taken:.3g} ms"
        )
        share = 100 * max(compute, memory) / taken
        found.append(reported(f"{name}: share, floor over taken", share, "%", note))
    return found


if __name__ == "__main__":
    print(show(results()))
