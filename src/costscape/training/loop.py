"""The training loop: batches, moving average, early stopping, checkpoints, resume."""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from math import ceil
from statistics import mean

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from costscape.data import Dataset
from costscape.training.checkpoint import Checkpoint, torch_generator
from costscape.training.cuda.graph import Captured
from costscape.training.fit_state import Fit, FitState, History
from costscape.training.progress import progress
from costscape.training.settings import Training

LONG = 4  # epochs in the last fifth of a fit, from which on too few epochs are warned of
FALLING = 0.1  # the part of the score's fall in that fifth, likewise


def fit_all(fits: Sequence[Fit], data: Dataset, training: Training) -> list[History]:
    """Minimise the loss of each fit over the data; leave each model at its best epoch.

    Each network has its own batches, draws and best epoch. On a GPU, where steps are captured as
    a CUDA graph and all fits learn from the same number of rows, the networks advance together,
    step by step; they then share one stream of dropout, seeded by the first, and one checkpoint.
    Elsewhere they are fitted one after the other, each with the checkpoint of its name. A warning
    is given where the last epoch was the best: more epochs may then do better.

    Args:
        fits: the networks; a single one is a list of one, and needs no name.
        data: pairs (x, y), on the device of the networks.
        training: the settings, the same for all.

    Returns the history of each fit, in their order.
    """
    names = [fit.name for fit in fits]
    if training.checkpoint is not None and len(set(names)) < len(names):
        raise ValueError(
            f"Networks fitted with a checkpoint need names of their own, but got {names}. Pass "
            f"another name to each Fit."
        )
    if len(fits) == 1:
        return _in_step(fits, data, training, _captured(fits, training))
    captured = _captured(fits, training)
    if captured and len({fit.count(data) for fit in fits}) == 1:
        group = _with_file(training, f"{names[0]}-and-{len(fits) - 1}-more")
        return _in_step(fits, data, group, captured)
    return [fit_all([fit], data, _with_file(training, fit.name))[0] for fit in fits]


def _captured(fits: Sequence[Fit], training: Training) -> Captured | None:
    """Captures and replays the steps on a GPU; None with ``record=False`` or ``compile=True``."""
    on_gpu = all(next(fit.model.parameters()).is_cuda for fit in fits)
    return Captured() if on_gpu and training.record and not training.compile else None


def one_by_one(
    states: Sequence[FitState], rows: Int[Tensor, "n B"], shares: Sequence[float]
) -> Float[Tensor, "n"]:
    """One step of each fit, in order; the losses."""
    losses = []
    for state, own, share in zip(states, rows, shares, strict=True):
        losses.append(state.gradient(own))
        state.move(share)
    return torch.stack(losses)


def _in_step(
    fits: Sequence[Fit], data: Dataset, training: Training, captured: Captured | None = None
) -> list[History]:
    """All fits together, epoch by epoch and step by step, until the last has stopped."""
    states = [FitState(fit, data, training, captured is not None) for fit in fits]
    advance = captured or one_by_one
    device, count, epochs = states[0].device, fits[0].count(data), states[0].epochs
    steps, first = ceil(count / training.batch_size), 0
    file = _checkpoint(fits, data, states[0].training)
    title = fits[0].title + (f" and {len(fits) - 1} more" if len(fits) > 1 else "")
    with (
        torch.random.fork_rng([device] if device.type == "cuda" else []),
        progress(title, epochs, training.progress) as show,
    ):
        torch.manual_seed(fits[0].seed)  # dropout and input noise draw from here, in the fork
        if file and (saved := file.load()):
            with file.reading():
                for state, saved_fit in zip(states, saved["fits"], strict=True):
                    state.load(saved_fit)
                torch_generator(device).set_state(saved["rng"])
                first = saved["epoch"] + 1
        for epoch in range(first, epochs):
            going = [state for state in states if not state.is_over(epoch)]
            if not going:
                break
            orders = torch.stack([state.begin_epoch(epoch) for state in going])
            total, at_first = torch.zeros(2, len(going), device=device)
            for step, rows in enumerate(orders.split(training.batch_size, 1), epoch * steps):
                shares = [state.share(step - steps * state.began) for state in going]
                losses = advance(going, rows, shares)
                total.add_(losses, alpha=rows.shape[1])
                if step == epoch * steps:
                    at_first.copy_(losses)
            for state, loss, one in zip(going, total.tolist(), at_first.tolist(), strict=True):
                state.end_epoch(epoch, loss / count, one)
            if file:
                saved_fits = [state.state() for state in states]
                file.save(fits=saved_fits, rng=torch_generator(device).get_state(), epoch=epoch)
            show(epoch + 1, _note(going))
    histories = [state.finish() for state in states]
    for history in histories:
        _warn_of_too_few_epochs(history, epochs)
    return histories


def _checkpoint(fits: Sequence[Fit], data: Dataset, training: Training) -> Checkpoint | None:
    if training.checkpoint is None:
        return None
    settings = replace(
        training, checkpoint=None, device=None, compile=False, record=True, progress=False
    )
    if not training.decay:
        settings = replace(settings, epochs=1)  # a longer fit at a constant rate begins the same
    rows = [None if fit.rows is None else fit.rows.tolist() for fit in fits]
    marks = [(settings, fit.seed, fit.ema, fit.recipe) for fit in fits]
    models = nn.ModuleList([fit.model for fit in fits])
    return Checkpoint(training.checkpoint, repr((marks, rows)), data, models)


def _with_file(training: Training, name: str) -> Training:
    path = training.checkpoint
    if path is None or not name:
        return training
    return replace(training, checkpoint=f"{path}.{name}")


def _note(going: Sequence[FitState]) -> str:
    """The mean loss and the mean score of the networks that still train."""
    note = f"loss {mean(state.history.losses[-1] for state in going):.4g}"
    scores = [state.history.scores[-1] for state in going if state.history.scores]
    return note + (f"  validation cost {mean(scores):.5g}" if scores else "")


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
