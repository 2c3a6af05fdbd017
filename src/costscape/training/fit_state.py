"""A fit: the network, its loss and score, and the state that changes from step to step."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from math import cos, isfinite, pi
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Generator, Tensor, nn

from costscape.data import Dataset
from costscape.training.compiled_loss import Loss, compiled
from costscape.training.settings import RATE, Training

Score = Callable[[nn.Module], float]  # of a network in eval mode; less is better
TRIAL = 5  # a fit that is never better than its start may begin again after this part of it


class Diverged(RuntimeError):
    """The training loss is no longer a number."""


@dataclass
class History:
    """The course of a fit.

    Args:
        losses: mean training loss of each epoch.
        scores: validation score of each epoch; empty without a score.
        best_epoch: the epoch of the final weights, from 0; -1 for those of the start.
        best: the score of that epoch, averaged over ``Training.smooth`` epochs, or of the start.
    """

    losses: list[float] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    best_epoch: int = -1
    best: float = float("inf")

    def improved(self, epoch: int, epochs: int, smooth: int) -> bool:
        """Whether this epoch is the best so far."""
        last = self.scores[-smooth:]
        value = sum(last) / len(last)
        if value < self.best and len(last) == min(smooth, epochs):
            self.best, self.best_epoch = value, epoch
            return True
        return False


@dataclass(frozen=True, eq=False)
class Fit:
    """A network and its training.

    Args:
        model: the network, on the device of the data; its weights change.
        loss: ``loss(batch, rng)``, a number to minimise.
        seed: of the order of rows, of ``rng``, and of dropout.
        score: ``score(model)`` after an epoch, less is better; None takes the last epoch.
        ema: decay of the moving average of the weights, which then is scored and kept; or None.
        title: of the progress bar.
        recipe: describes the fit, so that the checkpoint of another fit is refused.
        name: distinguishes its checkpoint from those of other fits in one ``fit_all``.
        rows: indices (n,) of the rows of the data that it learns from; None for all.
    """

    model: nn.Module
    loss: Loss
    seed: int
    score: Score | None = None
    ema: float | None = None
    title: str = "fit"
    recipe: str = ""
    name: str = ""
    rows: Int[Tensor, "n"] | None = None

    def count(self, data: Dataset) -> int:
        """How many rows it learns from."""
        return len(data) if self.rows is None else len(self.rows)


class FitState:
    """Optimiser, moving average, history, order of rows and best weights of a fit.

    Args:
        fit: what is fitted.
        data: the rows, of which ``fit.rows`` are used.
        training: the settings; epochs of None are set for the number of rows.
        capturable: whether steps are captured as a CUDA graph. The rate is then a tensor.
    """

    def __init__(self, fit: Fit, data: Dataset, training: Training, capturable: bool) -> None:
        self.fit, self.data, model = fit, data, fit.model
        self.training = training = training.for_rows(fit.count(data))
        assert training.epochs is not None
        self.epochs = training.epochs
        self.loss = compiled(fit.loss) if training.compile else fit.loss
        self.device = device = next(model.parameters()).device
        self.lr = training.lr or RATE
        self.rate: float | Tensor = torch.tensor(self.lr, device=device) if capturable else self.lr
        self.optimiser = torch.optim.Adam(
            model.parameters(),
            lr=self.rate,
            weight_decay=training.weight_decay,
            capturable=capturable,
            fused=True,
        )
        self.shuffle = Generator().manual_seed(fit.seed)
        self.rng = Generator(device).manual_seed(fit.seed)
        self.average = twin(model) if fit.ema else model
        self.history = History()
        self.best = copy_of(self.average)
        self.began = 0  # the epoch in which the present rate was first used
        self.loss_at_start = 0.0  # of one batch

    def is_over(self, epoch: int) -> bool:
        """Whether early stopping ends the fit before this epoch."""
        stops = self.training.patience is not None and self._has_waited(epoch)
        return stops and not self._went_too_far()

    def _has_waited(self, epoch: int) -> bool:
        """Whether no epoch was better for the patience; for a fifth of all where none is set."""
        ready = min(self.training.smooth, self.epochs) - 1  # no epoch before it can be kept
        waited = epoch - max(self.history.best_epoch, self.began + ready)
        patience = self.training.patience or max(1, self.epochs // TRIAL)
        return self.fit.score is not None and waited > patience

    def _went_too_far(self) -> bool:
        """Whether the loss has risen and no epoch was better than the start: steps too long."""
        return self.history.best_epoch < 0 and self.history.losses[-1] > self.loss_at_start

    def begin_epoch(self, epoch: int) -> Int[Tensor, "n"]:
        """Set the rate of the epoch, and return the rows in random order.

        Before the first epoch the start is scored: training may lead away from a good one. A fit
        whose steps were too long begins again here, in the epochs that are left.
        """
        if self._has_waited(epoch) and self._went_too_far():
            self._begin_again(epoch)
        if epoch == 0 and self.fit.score is not None:
            with torch.no_grad():
                self.history.best = float(self.fit.score(self.average.eval()))
        self.fit.model.train()
        now = self.lr
        if self.training.decay:
            now *= (1 + cos(pi * epoch / self.epochs)) / 2
        self.rate = self.rate.fill_(now) if isinstance(self.rate, Tensor) else now
        self._set_rate()
        order = torch.randperm(self.fit.count(self.data), generator=self.shuffle)
        order = order.to(self.data.x.device)
        return order if self.fit.rows is None else self.fit.rows[order]

    def gradient(self, rows: Int[Tensor, "B"]) -> Float[Tensor, ""]:
        """The loss on these rows of the data; its gradient is left in the model."""
        self.optimiser.zero_grad(set_to_none=True)
        value = self.loss(Dataset(self.data.x[rows], self.data.y[rows]), self.rng)
        value.backward()
        return value.detach()

    def share(self, step: int) -> float:
        """The weight of the model in the moving average at this step since ``began``, from 0.

        It is larger in the first steps; else the average of a short fit would stay at the start.
        """
        return 1 - min(self.fit.ema, (1 + step) / (10 + step)) if self.fit.ema else 0.0

    def move(self, share: float | Tensor) -> None:
        """A step of Adam along the gradient; then the average follows by ``share``."""
        self.optimiser.step()
        if self.fit.ema is not None:
            follow(self.average, self.fit.model, share)

    def end_epoch(self, epoch: int, loss: float, first: float) -> None:
        """Append the loss and the score, and keep the weights where they are the best so far.

        ``first`` is the loss of the epoch's first batch.
        """
        if not isfinite(loss):
            raise Diverged(
                f"The training loss became {loss} in epoch {epoch}. Lower the learning rate, "
                f"scale the outcomes to about 1, or check that the cost and its slope are finite "
                f"on the whole feasible set."
            )
        history, score = self.history, self.fit.score
        history.losses.append(loss)
        if epoch == self.began:
            self.loss_at_start = first
        self.average.eval()
        if score is None:
            history.best_epoch = epoch
            return
        due = epoch in (0, self.epochs - 1) or (epoch + 1) % self.training.score_every == 0
        with torch.no_grad():
            history.scores.append(float(score(self.average)) if due else history.scores[-1])
        if due and history.improved(epoch, self.epochs, self.training.smooth):
            self.best = copy_of(self.average)

    def finish(self) -> History:
        """Leave the model at its best epoch."""
        self.optimiser.zero_grad(set_to_none=True)  # gradients may be in the memory of a graph
        scored = self.fit.score is not None
        self.fit.model.load_state_dict(self.best if scored else self.average.state_dict())
        self.fit.model.eval()
        return self.history

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        return {
            "model": self.fit.model.state_dict(),
            "average": self.average.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "shuffle": self.shuffle.get_state(),
            "draw": self.rng.get_state(),
            "history": vars(self.history),
            "best": self.best,
            "began": self.began,
            "loss_at_start": self.loss_at_start,
            "lr": self.lr,
        }

    def load(self, saved: dict[str, Any]) -> None:
        """Continue from ``state()`` of an earlier fit."""
        self.fit.model.load_state_dict(saved["model"])
        self.average.load_state_dict(saved["average"])
        self.optimiser.load_state_dict(saved["optimiser"])
        self._set_rate()
        self.shuffle.set_state(saved["shuffle"])
        self.rng.set_state(saved["draw"])
        self.history, self.best = History(**saved["history"]), saved["best"]
        self.began, self.loss_at_start = saved["began"], saved["loss_at_start"]
        self.lr = saved["lr"]

    def _begin_again(self, epoch: int) -> None:
        """From the start, which is the best so far, with a tenth of the rate.

        Tensors stay where they are, since a graph may hold them.
        """
        self.fit.model.load_state_dict(self.best)
        self.average.load_state_dict(self.best)
        for moments in self.optimiser.state.values():
            for moment in moments.values():
                moment.zero_()
        self.began, self.lr = epoch, self.lr / 10

    def _set_rate(self) -> None:
        for group in self.optimiser.param_groups:
            group["lr"] = self.rate


def copy_of(model: nn.Module) -> dict[str, Tensor]:
    """The state of the model, in new tensors."""
    return {name: value.clone() for name, value in model.state_dict().items()}


def twin(model: nn.Module) -> nn.Module:
    """A copy of the model; cuDNN needs the copied weights of an LSTM in one piece."""
    twin = deepcopy(model)
    for part in twin.modules():
        if isinstance(part, nn.RNNBase):
            part.flatten_parameters()
    return twin


@torch.no_grad()
def follow(average: nn.Module, model: nn.Module, share: float | Tensor) -> None:
    """Move the average's weights by ``share`` of the way to the model's; copy the buffers."""
    slow: list[Tensor] = list(average.parameters())
    fast: list[Tensor] = list(model.parameters())
    if isinstance(share, Tensor):  # a number on the GPU: one kernel for many tensors
        step = torch._foreach_sub(fast, slow)
        torch._foreach_mul_(step, share.to(fast[0].dtype))
        torch._foreach_add_(slow, list(step))
    else:
        for one, other in zip(slow, fast, strict=True):
            one.lerp_(other, share)
    for one, other in zip(average.buffers(), model.buffers(), strict=True):
        one.copy_(other)
