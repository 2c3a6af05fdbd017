"""How much faster is a training step with shared actions than with own actions for each pair?

The paper's synthetic setting: batch 64, J = 100 actions, S = 1000 points, two decision variables,
an MLP of 128. Both sides are the same objective and the same code; the own-actions side is timed
on a few steps. One thread, the least of several repeats, ratios in one process.

python benchmarks/bench_step.py
"""

import time

import torch

from costscape import DF2
from costscape.data import Dataset
from costscape.experiments import PROBLEMS

BATCH = 64


def seconds(model, loss, batch, repeats):
    adam = torch.optim.Adam(model.parameters())
    rng = torch.Generator().manual_seed(0)
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        adam.zero_grad()
        loss(batch, rng).backward()
        adam.step()
        times.append(time.perf_counter() - start)
    return min(times)


def main():
    torch.set_num_threads(1)
    problem = PROBLEMS["synthetic-convex"](0)
    train = problem.data.train
    batch = Dataset(train.x[:BATCH], train.y[:BATCH])
    result = {}
    for shared, repeats in ((True, 50), (False, 3)):
        method = DF2.as_in_paper(problem.task, share_actions=shared)
        torch.manual_seed(0)
        model, _ = method._network(train, method.outcomes)
        result[shared] = seconds(
            model,
            lambda b, rng, m=method, n=model: m.loss(problem.task, n, b, rng),
            batch,
            repeats,
        )
    print(f"own actions for each pair  {1e3 * result[False]:9.1f} ms a step")
    print(f"shared actions             {1e3 * result[True]:9.1f} ms a step")
    ratio = result[False] / result[True]
    print(
        f"ratio                      {ratio:9.0f}   goal 50   {'met' if ratio >= 50 else 'missed'}"
    )


if __name__ == "__main__":
    main()
