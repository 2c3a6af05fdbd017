"""How long does a training step of DF2 take on the vaccine problem, and how much memory?

The paper's size: 47 regions, S = 100 points, J = 100 actions, batch 32. Made-up trips; times and
memory do not depend on them. The encoder is left out (a softmax of free numbers stands for it), so
that the simulator is what is timed. Own actions for each pair simulate 32 times as many courses:
they are timed on a batch of ``--own`` pairs and scaled to 32, as they are proportional to it. Peak
memory is that of the process on a CPU, of the allocator on CUDA. The less of two
steps, in one process.

python benchmarks/bench_vaccine.py [--device cuda] [--own 1] [--points 100] [--actions 100]
"""

import argparse
import resource
import time

import torch
from vaccine_state import read_epidemic

from costscape.scenarios import ExpectedCost, Scenarios
from costscape.tasks.seirv import trip_shares
from costscape.tasks.vaccine import vaccine

BATCH = 32


def step(task, w, v, y, a):
    loss = (
        (ExpectedCost(task, Scenarios(w.softmax(-1), v))(a) - priced(task, y, a)).square().mean()
    )
    loss.backward()


@torch.no_grad()
def priced(task, y, a):
    return task.cost(y.unsqueeze(1), a)


def timed(task, batch, rows, args):
    """Seconds of one step with ``rows`` draws of actions, and the peak in GiB."""
    rng = torch.Generator(args.device).manual_seed(0)
    K = task.feasible.dim
    home = {"device": args.device, "generator": rng}
    stay = 20 * K * torch.eye(K, device=args.device)
    w = torch.randn(batch, args.points, **home).requires_grad_()
    v = trip_shares(torch.rand(1, args.points, 7, K, K, **home) + stay).requires_grad_()
    y = trip_shares(torch.rand(batch, 7, K, K, **home) + stay)
    a = task.feasible.sample(rows * args.actions, rng).unflatten(0, (rows, args.actions))
    cuda = args.device.startswith("cuda")
    times = []
    for _ in range(2):
        if cuda:
            torch.cuda.reset_peak_memory_stats()
            torch.cuda.synchronize()
        begin = time.perf_counter()
        step(task, w, v, y, a)
        if cuda:
            torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
    # a process keeps its highest peak: on a CPU the second side shows the higher of both
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return min(times), (torch.cuda.max_memory_allocated() if cuda else peak) / 2**30


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--own", type=int, default=1, help="pairs timed with own actions")
    parser.add_argument("--points", type=int, default=100)
    parser.add_argument("--actions", type=int, default=100)
    args = parser.parse_args()
    task = vaccine(read_epidemic(torch.float32)).to(args.device)
    shared, peak = timed(task, BATCH, 1, args)
    print(
        f"S = {args.points}, J = {args.actions}, batch {BATCH}, {args.device}, "
        f"{torch.get_num_threads()} threads"
    )
    print(f"shared actions             {shared:9.2f} s a step   peak {peak:.2f} GiB")
    own, peak = timed(task, args.own, args.own, args)
    own *= BATCH / args.own
    print(
        f"own actions for each pair  {own:9.2f} s a step   peak {peak:.2f} GiB, "
        f"scaled from {args.own} of {BATCH} pairs"
    )
    print(f"ratio                      {own / shared:9.1f}")


if __name__ == "__main__":
    main()
