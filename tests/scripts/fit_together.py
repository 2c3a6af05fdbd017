"""Small fits, the same alone and under torchrun: fit_together.py FOLDER CASE...

Each process writes what it got to FOLDER/result-RANK.pt.
"""

import sys
from functools import partial
from pathlib import Path

import torch
from torch import nn

import costscape as cs
from costscape import distributed
from costscape.data import Dataset
from costscape.models import MLP, Absolute, Anchored
from costscape.training.loop import fit_network

ROWS = 40  # three batches of 13 and one of a single row, which leaves a second process without


def pairs(n=ROWS, dtype=torch.float64):
    rng = torch.Generator().manual_seed(0)
    x = torch.randn(n, 3, generator=rng, dtype=torch.float64)
    noise = torch.randn(n, 2, generator=rng, dtype=torch.float64)
    y = 1.5 + x[:, :2] * torch.tensor([0.4, 1.0]) + 0.3 * noise
    return x.to(dtype), y.to(dtype)


def task(dtype=torch.float64):
    def terms(y, a):
        return 4 * (y - a).clamp(min=0) + (a - y).clamp(min=0) + 0.1 * (a - y) ** 2

    made = cs.SeparableTask(terms, cs.Box(0.0, 3.0, dim=2), convex=True)
    return made.double() if dtype == torch.float64 else made


def training(folder=None, **changes):
    path = None if folder is None else folder / f"checkpoint-{distributed.rank()}"
    given = {"epochs": 5, "batch_size": 13, "smooth": 2, "patience": 5, "lr": 5e-3, **changes}
    return cs.Training(checkpoint=path, progress=False, device="cpu", **given)


def fit(method, dtype=torch.float64):
    x, y = pairs(dtype=dtype)
    x_val, y_val = (part + 0.05 for part in pairs(dtype=dtype))
    model = method.fit(x, y, val=(x_val[:20], y_val[:20]))
    histories = model.history_ if isinstance(model.history_, list) else [model.history_]
    return {
        "losses": [history.losses for history in histories],
        "scores": [history.scores for history in histories],
        "best": [history.best_epoch for history in histories],
        "weights": model.model_.state_dict(),
        "decisions": model.decide(x_val),
    }


def df2(dtype=torch.float64, encoder=None, how=None, **changes):
    settings = {"outcomes": Anchored(), "points": 20, "actions": 6, "folds": 1}
    encoder = encoder or partial(MLP, 3, 16)
    how = how or training()
    return fit(
        cs.DF2(task(dtype), encoder=encoder, training=how, **{**settings, **changes}), dtype
    )


class Dies(nn.Module):
    """Raises in a process other than the first when it has been asked ``steps`` times."""

    def __init__(self, steps):
        super().__init__()
        self.left, self.out_features = steps, 16
        self.net = MLP(3, 16, dropout=0.4, noise=0.1)

    def forward(self, x):
        self.left -= self.training
        if self.left < 0 and not distributed.is_first():
            raise RuntimeError("this process dies")
        return self.net(x)

    def __repr__(self):
        return "Dies"  # the checkpoint's mark must not tell one that dies from one that lives


def row_draws(folder):
    """A loss of one's own that draws for each row it sees; the stream after each step."""
    x, y = pairs()
    states = []
    with torch.random.fork_rng([]):
        torch.manual_seed(distributed.rank())  # the first process's weights count
        model = nn.Linear(3, 2).double()

    def loss(batch, rng):
        states.append(rng.get_state())
        noise = torch.randn(len(batch), 2, generator=rng, dtype=torch.float64)
        return (model(batch.x) - batch.y + 0.1 * noise).square().mean()

    fit_network(model, loss, Dataset(x, y), training(), seed=0)
    return {"weights": model.state_dict(), "states": torch.stack(states)}


def unequal_rows(folder):
    x, y = pairs(ROWS - distributed.rank())
    model = nn.Linear(3, 2).double()
    try:
        fit_network(model, lambda b, rng: model(b.x).mean(), Dataset(x, y), training(), seed=0)
    except ValueError as error:
        return {"error": str(error)}
    return {"error": None}


CASES = {
    "anchored": lambda folder: df2(),
    "absolute": lambda folder: df2(outcomes=Absolute()),
    "single-precision": lambda folder: df2(torch.float32),
    "own-actions": lambda folder: df2(share_actions=False),
    "frozen-decay": lambda folder: df2(how=training(weight_decay=0.1)),
    "mixture": lambda folder: fit(
        cs.TwoStage(
            task(), cs.Mixture(3), encoder=partial(MLP, 3, 16), training=training(), draws=20
        )
    ),
    "plain": lambda folder: fit(
        cs.PlainNetwork(task(), encoder=partial(MLP, 3, 16), training=training())
    ),
    "dying": lambda folder: df2(encoder=partial(Dies, 10), how=training(folder)),
    "living": lambda folder: df2(encoder=partial(Dies, 10**6), how=training(folder)),
    "row-draws": row_draws,
    "unequal-rows": unequal_rows,
}


def main(folder, names):
    results = {name: CASES[name](folder) for name in names}
    distributed.barrier()
    torch.save(results, folder / f"result-{distributed.rank()}.pt")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
