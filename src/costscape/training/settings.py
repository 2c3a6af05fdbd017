"""The settings of a training run."""

from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path

import torch

RATE = 1e-3  # of Adam, where neither the user nor the method sets it; the paper's
STEPS = 1000  # of Adam in a fit whose number of epochs is not given (benchmarks/zoo)
EPOCHS = (8, 100)  # the fewest and the most epochs of such a fit
PATIENCE = 5  # early stopping waits for this part of the epochs, where it is not given


@dataclass(frozen=True)
class Training:
    """How a network is fitted: Adam over shuffled batches.

    Args:
        epochs: int, default None. Passes over the training rows. None takes as many as give about
            1,000 steps, from 8 to 100, so that one schedule serves a few hundred rows and many
            thousands.
        batch_size: int, default 64. Rows in a step.
        lr: float, default None. Learning rate of Adam; None leaves it to the method.
        weight_decay: float, default 0. Weight decay of Adam.
        decay: bool, default True. The rate falls to 0 along a cosine over the epochs.
        patience: int, default None. Epochs that early stopping waits for a better validation
            score; None waits for a fifth of all.
        smooth: int, default 1. Epochs over which the validation score is averaged before epochs
            are compared. The first ``smooth - 1`` epochs are never chosen.
        score_every: int, default 1. Epochs from one validation score to the next; more than 1
            saves time where deciding is costly.
        checkpoint: path, default None. A file written after every epoch. A fit that finds it
            continues from there and ends with the same bits as an uninterrupted one.
        device: str, default None. Such as "cpu" or "cuda:1"; None takes a GPU where there is one.
        compile: bool, default False. Run the loss through torch.compile, which pays off on long
            fits. Where that fails, the fit continues without it.
        record: bool, default True. On a GPU, capture a step as a CUDA graph and replay it, where
            the loss allows it. Networks that are fitted together then share one graph and one
            stream of dropout.
        progress: bool, default True. Show a progress bar on stderr.

    >>> import costscape as cs
    >>> import torch
    >>> task = cs.SeparableTask(lambda y, a: (y - a).abs(), cs.Box(0.0, 9.0, dim=1), convex=True)
    >>> x, y = torch.rand(50, 2), 3 + torch.rand(50, 1)
    >>> training = cs.Training(epochs=2, lr=1e-2, device="cpu", progress=False)
    >>> cs.TwoStage(task, cs.Point(), training=training).fit(x, y).decide(x[:4]).shape
    torch.Size([4, 1])
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
        """The same settings with epochs and patience set for this number of training rows.

        >>> Training().for_rows(300).epochs, Training().for_rows(40_000).epochs
        (100, 8)
        """
        least, most = EPOCHS
        steps = ceil(rows / self.batch_size)
        epochs = self.epochs or min(max(ceil(STEPS / steps), least), most)
        return replace(self, epochs=epochs, patience=self.patience or max(1, epochs // PATIENCE))

    def where(self) -> torch.device:
        """The device of the fit."""
        return torch.device(self.device or ("cuda" if torch.cuda.is_available() else "cpu"))


def check_ema(owner: str, ema: float | None) -> None:
    """Raise a ValueError in the name of ``owner`` unless 0 < ema < 1 or ema is None."""
    if ema is not None and not 0 < ema < 1:
        raise ValueError(
            f"{owner} needs ema between 0 and 1, or None for no averaging, but got {ema}."
        )
