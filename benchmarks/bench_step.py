"""How much faster is a training step than the paper's letter, own actions for each pair?

The paper's synthetic setting: batch 64, J = 100 actions, S = 1000 points, two decision variables,
an MLP of 128. The slow side draws actions for each pair and pays with the cost as anyone would
write it in torch; it is timed on a few steps. One thread, the least of several repeats, ratios in
one process.

python benchmarks/bench_step.py
"""

import torch
from common import at_least, least, show

from costscape import DF2, Task
from costscape.data import Dataset
from costscape.experiments import PROBLEMS

BATCH = 64


def plainly(y, a):
    """The cost of synthetic-convex."""
    short, spare = (y - a).relu(), (a - y).relu()
    return (5 * short + 20 * spare + 0.5 * short**2 + 0.2 * spare**2).sum(-1)


def step_of(problem, batch, shared):
    task = problem.task if shared else Task(plainly, problem.task.feasible)
    method = DF2.as_in_paper(task, share_actions=shared)
    torch.manual_seed(0)
    model, _ = method._network(problem.data.train, method.outcomes)
    adam = torch.optim.Adam(model.parameters(), fused=shared)  # fused as in a fit
    rng = torch.Generator().manual_seed(0)

    def step():
        adam.zero_grad()
        method.loss(task, model, batch, rng).backward()
        adam.step()

    return step


def measure():
    torch.set_num_threads(1)
    problem = PROBLEMS["synthetic-convex"](0)
    train = problem.data.train
    batch = Dataset(train.x[:BATCH], train.y[:BATCH])
    fast, slow = (step_of(problem, batch, shared) for shared in (True, False))
    shared, own = least(fast, 50), least(slow, 3)
    note = f" ({1e3 * own:.0f} and {1e3 * shared:.2f} ms)"
    return [
        at_least("training step, against own actions for each pair", own / shared, 150, note=note)
    ]


if __name__ == "__main__":
    print(show(measure()))
