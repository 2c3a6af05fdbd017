"""How much faster is a training step than the paper's letter, own actions for each pair?

The paper's synthetic setting: batch 64, J = 100 actions, S = 1000 points, two decision variables,
an MLP of 128. The slow side draws actions for each pair and pays with the cost as anyone would
write it in torch: f on (B, J, S, d) numbers at once. A second one is the library with
share_actions=False, which splits them into pieces that stay small. Both are timed on a few steps.
Processor seconds of one thread, the least of several.

python benchmarks/bench_step.py
"""

import torch
from common import at_least, least, reported, show

from costscape import DF2
from costscape.bench import PROBLEMS
from costscape.data import Dataset
from costscape.methods.df2.slopes import Objective

BATCH, ACTIONS = 64, 100


def plainly(y, a):
    """The cost of synthetic-convex."""
    short, spare = (y - a).relu(), (a - y).relu()
    return (5 * short + 20 * spare + 0.5 * short**2 + 0.2 * spare**2).sum(-1)


def eager_loss(objectives, model, batch, rng):
    """The paper's Eq. 3 and 4, written out."""
    task = objectives[0].task
    a = task.feasible.sample(len(batch) * ACTIONS, rng).unflatten(0, (len(batch), ACTIONS))
    s = model(batch.x)
    g = torch.einsum("bs,bjs->bj", s.weights, plainly(s.values[:, None], a[:, :, None]))
    return (g - plainly(batch.y[:, None], a)).square().mean()


def step_of(problem, batch, shared=True, loss=None):
    task = problem.task
    method = DF2.as_in_paper(task, actions=ACTIONS, share_actions=shared)
    torch.manual_seed(0)
    model = method._network(problem.data.train, method.outcomes)
    adam = torch.optim.Adam(model.parameters(), fused=loss is None)  # fused as in a fit
    rng = torch.Generator().manual_seed(0)
    loss = loss or method.loss

    def step():
        adam.zero_grad()
        value = loss([Objective(task, torch.tensor(1.0))], model, batch, rng)
        value.backward()
        adam.step()
        return value.item()

    return step


def results():
    torch.set_num_threads(1)
    problem = PROBLEMS["synthetic-convex"](0)
    train = problem.data.train
    batch = Dataset(train.x[:BATCH], train.y[:BATCH])
    steps = [
        step_of(problem, batch),
        step_of(problem, batch, loss=eager_loss),
        step_of(problem, batch, shared=False),
    ]
    repeats = (60, 1, 1)
    # by turns, so that a busy moment does not fall on one of them alone
    turns = [[least(*pair) for pair in zip(steps, repeats, strict=True)] for _ in range(3)]
    shared, eager, own = (min(taken) for taken in zip(*turns, strict=True))
    words = f"{{:.0f}} and {1e3 * shared:.2f} ms".format
    return [
        at_least(
            "training step, against own actions for each pair in eager torch",
            eager / shared,
            150,
            note=words(1e3 * eager),
        ),
        reported(
            "training step, against own actions split by the library",
            own / shared,
            note=words(1e3 * own),
        ),
    ]


if __name__ == "__main__":
    print(show(results()))
