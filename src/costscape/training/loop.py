"""The one training loop: batches, moving average, early stopping, checkpoints, resume."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import ceil, cos, pi
from pathlib import Path
from random import Random

import torch
from torch import nn

from costscape import distributed
from costscape.data import Dataset
from costscape.training.checkpoint import Checkpoint
from costscape.training.cuda.graph import Captured, one_by_one
from costscape.training.cuda.together import Together
from costscape.training.fit_state import Fit, History, Score, Underway, copy_of
from costscape.training.progress import progress
from costscape.training.steps import Loss, compiled, get_rng, set_rng

__all__ = [
    "RATE",
    "Fit",
    "History",
    "Loss",
    "Score",
    "Training",
    "check_ema",
    "copy_of",
    "fit_network",
    "fit_networks",
]

RATE = 1e-3  # of Adam, where neither the user nor the method says otherwise; the paper's
STEPS = 1000  # of Adam in a fit whose number of epochs is not given (benchmarks/zoo)
EPOCHS = (8, 100)  # the fewest and the most of such a fit
LONG, FALLING = (
    4,
    0.1,
)  # a warning needs so many epochs in the last fifth, and such a part of the fall
PATIENCE = 5  # early stopping waits for this part of the epochs, where it is not given


@dataclass(frozen=True)
class Training:
    """How a network is fitted: Adam over shuffled batches.

    Arguments:
        epochs: passes over the training rows. None takes as many as give about 1,000 steps, from
            8 to 100, so that one schedule serves a few hundred rows and many thousands.
        batch_size: rows in a step; under torchrun those of all processes together.
        lr: the rate; None leaves it to the method.
        weight_decay: of Adam.
        decay: the rate falls to 0 along a cosine over the epochs.
        patience: epochs that early stopping waits for a better validation score; None waits for a
            fifth of all.
        smooth: epochs whose mean score counts as that of the last of them.
        score_every: epochs from one reading of the validation score to the next, where deciding
            is costly.
        checkpoint: a file written after every epoch. A fit that finds it continues from there and
            ends with the same bits as an uninterrupted one.
        device: None takes a GPU where there is one.
        compile: run the loss through torch.compile, which pays off on long fits; where that fails,
            the fit continues without.
        record: replay a step on a GPU as one CUDA graph, where the loss allows it. Networks that
            are fitted together then share the graph, and their LSTMs are computed as one
            (``Together``). Such an LSTM draws other dropout and noise from the same seed.
        progress: show a progress bar on stderr.
    """

    epochs: int | None = None
    batch_size: int = 64
    lr: float | None = None
    weight_decay: float = 0.0
    decay: bool = True
    patience: int | None = None
    smooth: int = 1
    score_every: int = 1
    checkpoint: Path | str | None = None
    device: str | None = None
    compile: bool = False
    record: bool = True
    progress: bool = True

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "patience", "smooth", "score_every"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"Training needs {name} of at least 1, but got {value}.")
        if self.lr is not None and not self.lr > 0:
            raise ValueError(f"Training needs a positive lr, but got {self.lr}.")

    def for_rows(self, rows: int) -> "Training":
        """The same with the epochs and the patience that None stands for on so many rows.

        >>> Training().for_rows(300).epochs, Training().for_rows(40_000).epochs
        (100, 8)
        """
        least, most = EPOCHS
        steps = ceil(rows / self.batch_size)
        epochs = self.epochs or min(max(ceil(STEPS / steps), least), most)
        return replace(self, epochs=epochs, patience=self.patience or max(1, epochs // PATIENCE))

    def where(self) -> torch.device:
        named = torch.device(self.device or ("cuda" if torch.cuda.is_available() else "cpu"))
        return distributed.own_device(named)


def fit_network(
    model: nn.Module,
    loss: Loss,
    data: Dataset,
    training: Training,
    *,
    seed: int,
    score: Score | None = None,
    ema: float | None = None,
    title: str = "fit",
    recipe: str = "",
) -> History:
    """Minimise ``loss`` over ``data``; leave the model at its best epoch, or at the last.

    ``score(model)``, less is better, is read after every epoch; without it the last epoch is
    kept. With ``ema`` the score and the answer are those of the moving average of the weights.
    ``recipe`` describes what is fitted, so that a checkpoint of another fit is refused. A warning
    says when the last epoch was the best: more epochs may then do better.

    Under torchrun each process computes the loss on its rows of every batch, and all take the
    same steps. The first one's score counts, and it alone writes the checkpoint.
    """
    fit = Fit(model, loss, seed, score, ema, title, recipe)
    return _in_step([fit], data, training)[0]


def fit_networks(
    fits: Sequence[Fit],
    data: Dataset,
    training: Training,
    alone: Callable[..., History] = fit_network,
) -> list[History]:
    """Fit several networks to the same data, each with its own batches, actions and best epoch.

    Where steps are recorded, on a GPU, and all learn from as many rows, they advance together:
    LSTMs of one shape are computed as one, and the rest of their steps overlaps. They then share
    one stream of dropout, seeded by the first, and one checkpoint. Elsewhere ``alone`` fits one
    after the other, each with a checkpoint of its own name.
    """
    names = [fit.name for fit in fits]
    if training.checkpoint is not None and len(set(names)) < len(names):
        raise ValueError(
            f"Networks fitted with a checkpoint need names of their own, but got {names}. Pass "
            f"another name to each Fit."
        )
    even = len({fit.count(data) for fit in fits}) == 1
    if len(fits) > 1 and even and all(_records(fit.model, training) for fit in fits):
        group = f"{names[0]}-and-{len(fits) - 1}-more"
        return _in_step(fits, data, _with_file(training, group))
    return [
        alone(
            fit.model,
            fit.loss,
            fit.own(data),
            _with_file(training, fit.name),
            seed=fit.seed,
            score=fit.score,
            ema=fit.ema,
            title=fit.title,
            recipe=fit.recipe,
        )
        for fit in fits
    ]


def check_ema(owner: str, ema: float | None) -> None:
    if ema is not None and not 0 < ema < 1:
        raise ValueError(
            f"{owner} needs ema between 0 and 1, or None for no averaging, but got {ema}."
        )


def _in_step(fits: Sequence[Fit], data: Dataset, training: Training) -> list[History]:
    """All fits together, epoch by epoch and step by step, until the last has stopped."""
    distributed.check_same_rows(data.x, data.y)
    count = fits[0].count(data)
    training = training.for_rows(count)
    assert training.epochs is not None
    fast = all(_records(fit.model, training) for fit in fits)
    runs = [_start(fit, data, training, fast) for fit in fits]
    device = next(fits[0].model.parameters()).device
    advance = Captured(Together([fit.model for fit in fits])) if fast else one_by_one
    leads = distributed.is_first()
    keeper = _keeper(fits, data, training)
    epochs, first = training.epochs, 0
    steps = ceil(count / training.batch_size)
    with (
        torch.random.fork_rng([device] if device.type == "cuda" else []),
        progress(_title(fits), epochs, training.progress and leads) as show,
    ):
        torch.manual_seed(fits[0].seed)  # dropout and input noise draw from here, in the fork
        if saved := distributed.state_of_first(keeper.load()):
            for run, state in zip(runs, saved.get("fits", [saved]), strict=True):
                run.load(state)
            set_rng(device, saved["rng"])
            first = saved["epoch"] + 1
        for epoch in range(first, epochs):
            going = [run for run in runs if not _is_over(run, epoch, training)]
            if not going:
                break
            if not leads:
                torch.manual_seed(_own_seed(fits[0].seed, epoch))
            for run in going:
                run.fit.model.train()
                if training.decay:
                    run.set_rate((1 + cos(pi * epoch / epochs)) / 2)
            updates = [run.step for run in going]
            orders = torch.stack([run.order(data) for run in going])
            total = torch.zeros(len(going), device=device)
            batches = orders.split(training.batch_size, 1)
            for age, rows in enumerate(batches, epoch * steps):
                losses = advance(updates, rows, [r.share(age) for r in going])
                total.add_(losses, alpha=rows.shape[1])
            for run in going:
                run.look_ahead(data)
            for run, loss in zip(going, total.tolist(), strict=True):
                _close(run, epoch, loss / count, training)
            if keeper.path is not None:
                states = [run.state() for run in runs]
                kept = states[0] if len(states) == 1 else {"fits": states}
                keeper.save(rng=get_rng(device), epoch=epoch, **kept)
            show(epoch + 1, _note(going))
    histories = [run.end() for run in runs]
    for history in histories:
        _warn_of_too_few_epochs(history, epochs)
    return histories


def _warn_of_too_few_epochs(history: History, epochs: int) -> None:
    """Warn where the last epoch was the best and the score was still falling clearly."""
    scores, tail = history.scores, epochs // 5
    if tail < LONG or len(scores) < epochs or history.best_epoch < epochs - 1:
        return
    fall, whole = scores[-1 - tail] - scores[-1], max(scores) - scores[-1]
    if fall > FALLING * whole > 0:
        warnings.warn(
            f"The last of {epochs} epochs was the best: in its last fifth the fit still made "
            f"{fall / whole:.0%} of its progress. Train longer: Training(epochs={2 * epochs}).",
            stacklevel=2,
        )


def _start(fit: Fit, data: Dataset, training: Training, fast: bool) -> Underway:
    loss = compiled(fit.loss) if training.compile else fit.loss
    return Underway(fit, loss, data, training.lr or RATE, training.weight_decay, fast)


def _close(run: Underway, epoch: int, loss: float, training: Training) -> None:
    """The end of an epoch: read the score, and keep the weights where they are the best."""
    history, model = run.history, run.fit.model
    history.losses.append(_finite(loss, epoch))
    distributed.copy_first([*model.buffers(), *run.average.buffers()])
    run.average.eval()
    turn = run.fit.score is None or _reads(epoch, training)
    if run.fit.score is not None:
        history.scores.append(run.read() if turn else history.scores[-1])
    assert training.epochs is not None
    if turn and history.improved(epoch, training.epochs, training.smooth):
        run.keep()


def _is_over(run: Underway, epoch: int, training: Training) -> bool:
    assert training.epochs is not None
    assert training.patience is not None
    ready = min(training.smooth, training.epochs) - 1  # no epoch before it can be kept
    waited = epoch - max(run.history.best_epoch, ready)
    return run.fit.score is not None and waited > training.patience


def _records(model: nn.Module, training: Training) -> bool:
    """Whether steps are recorded: on a GPU, by one process, where the user does not object."""
    on_gpu = next(model.parameters()).device.type == "cuda"
    return on_gpu and distributed.size() == 1 and training.record and not training.compile


def _keeper(fits: Sequence[Fit], data: Dataset, training: Training) -> Checkpoint:
    path = training.checkpoint if distributed.is_first() else None
    settings = replace(
        training, checkpoint=None, device=None, compile=False, record=True, progress=False
    )
    if not training.decay:
        settings = replace(settings, epochs=1)  # a longer fit at a constant rate begins the same
    marks = [(settings, fit.seed, fit.ema, fit.recipe) for fit in fits]
    if len(fits) == 1:
        return Checkpoint(path, repr(marks[0]), data, fits[0].model)
    return Checkpoint(path, repr(marks), data, nn.ModuleList([fit.model for fit in fits]))


def _with_file(training: Training, name: str) -> Training:
    path = training.checkpoint
    if path is None or not name:
        return training
    return replace(training, checkpoint=f"{path}.{name}")


def _title(fits: Sequence[Fit]) -> str:
    others = len(fits) - 1
    return fits[0].title + (f" and {others} more" if others else "")


def _note(going: Sequence[Underway]) -> str:
    """The mean loss and the mean score of the networks that still learn."""
    loss = sum(run.history.losses[-1] for run in going) / len(going)
    scores = [run.history.scores[-1] for run in going if run.fit.score is not None]
    note = f"loss {loss:.4g}"
    return note + (f"  validation cost {sum(scores) / len(scores):.5g}" if scores else "")


def _own_seed(seed: int, epoch: int) -> int:
    """Of the dropout and noise of a process other than the first, whose stream alone is kept."""
    return Random(f"{seed} {epoch} {distributed.rank()}").getrandbits(63)


def _reads(epoch: int, training: Training) -> bool:
    """Whether the validation score is read after this epoch; after the first and last it is."""
    assert training.epochs is not None
    last = epoch == training.epochs - 1
    return epoch == 0 or last or (epoch + 1) % training.score_every == 0


def _finite(loss: float, epoch: int) -> float:
    if loss != loss or loss in (float("inf"), -float("inf")):
        raise RuntimeError(
            f"The training loss became {loss} in epoch {epoch}. Lower the learning rate, scale "
            f"the outcomes to about 1, or check that the cost and its slope are finite on the "
            f"whole feasible set."
        )
    return loss
