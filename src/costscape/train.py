"""The one training loop: batches, moving average, early stopping, checkpoints, resume."""

import warnings
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Generator, Tensor, nn

from costscape.checkpoint import Checkpoint
from costscape.data import Dataset
from costscape.progress import progress

Loss = Callable[[Dataset, Generator], Tensor]
Score = Callable[[nn.Module], float]


@dataclass(frozen=True)
class Training:
    """How a network is fitted: Adam over shuffled batches.

    Early stopping waits ``patience`` epochs for a better validation score. ``checkpoint`` names a
    file written after every epoch; a fit that finds it goes on from there and ends with the same
    bits as an unbroken one. ``device`` None takes a GPU where there is one. ``compile`` runs the
    loss through torch.compile, which pays on long fits, and goes on without if that fails.
    """

    epochs: int = 100
    batch_size: int = 64
    lr: float = 1e-3
    weight_decay: float = 0.0
    patience: int = 20
    checkpoint: Path | str | None = None
    device: str | None = None
    compile: bool = False
    progress: bool = True

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "patience"):
            if getattr(self, name) < 1:
                raise ValueError(
                    f"Training needs {name} of at least 1, but got {getattr(self, name)}."
                )
        if not self.lr > 0:
            raise ValueError(f"Training needs a positive lr, but got {self.lr}.")

    def where(self) -> torch.device:
        return torch.device(self.device or ("cuda" if torch.cuda.is_available() else "cpu"))


@dataclass
class History:
    """Per epoch the mean training loss and, where there is one, the validation score."""

    losses: list[float] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    best_epoch: int = -1
    best: float = float("inf")


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
    ``recipe`` says in words what is fitted, so that a checkpoint of another fit is refused.
    """
    device = next(model.parameters()).device
    optimiser = torch.optim.Adam(
        model.parameters(), lr=training.lr, weight_decay=training.weight_decay
    )
    shuffle, draw = Generator().manual_seed(seed), Generator(device).manual_seed(seed)
    average = deepcopy(model) if ema else model
    history, first = History(), 0
    best = _copy(average)
    step = _compiled(loss) if training.compile else loss
    settings = (training.batch_size, training.lr, training.weight_decay, training.patience)
    keeper = Checkpoint(training.checkpoint, repr((settings, seed, ema, recipe)), data, model)
    devices = [device] if device.type == "cuda" else []
    with (
        torch.random.fork_rng(devices),
        progress(title, training.epochs, training.progress) as show,
    ):
        torch.manual_seed(seed)  # dropout and input noise draw from here, inside the fork
        if saved := keeper.load():
            model.load_state_dict(saved["model"])
            average.load_state_dict(saved["average"])
            optimiser.load_state_dict(saved["optimiser"])
            shuffle.set_state(saved["shuffle"])
            draw.set_state(saved["draw"])
            _set_rng(device, saved["rng"])
            history, first, best = History(**saved["history"]), saved["epoch"] + 1, saved["best"]
        for epoch in range(first, training.epochs):
            if score and epoch - history.best_epoch > training.patience:
                break
            model.train()
            total = torch.zeros((), device=device)
            for batch in data.batches(training.batch_size, shuffle):
                value = step(batch, draw)
                optimiser.zero_grad(set_to_none=True)
                value.backward()
                optimiser.step()
                total += value.detach() * len(batch)
                if ema:
                    _follow(average, model, ema)
            history.losses.append(_finite(total.item() / len(data), epoch))
            _judge(average, score, history, epoch, best)
            keeper.save(
                model=model.state_dict(),
                average=average.state_dict(),
                optimiser=optimiser.state_dict(),
                shuffle=shuffle.get_state(),
                draw=draw.get_state(),
                rng=_get_rng(device),
                history=vars(history),
                epoch=epoch,
                best=best,
            )
            note = f"loss {history.losses[-1]:.4g}"
            show(epoch + 1, note + (f"  validation cost {history.best:.5g}" if score else ""))
    model.load_state_dict(best)
    model.eval()
    return history


def _judge(
    average: nn.Module, score: Score | None, history: History, epoch: int, best: dict[str, Tensor]
) -> None:
    """Keep a copy of the weights if this epoch is the best so far, or if nothing judges."""
    average.eval()
    if score is not None:
        with torch.no_grad():
            history.scores.append(score(average))
    value = history.scores[-1] if score else -float(epoch)
    if value < history.best:
        history.best, history.best_epoch = value, epoch
        best.update(_copy(average))
    if score is None:
        history.best = float("inf")


@torch.no_grad()
def _follow(average: nn.Module, model: nn.Module, ema: float) -> None:
    for slow, fast in zip(average.parameters(), model.parameters(), strict=True):
        slow.lerp_(fast, 1 - ema)
    for held, new in zip(average.buffers(), model.buffers(), strict=True):
        held.copy_(new)


def _finite(loss: float, epoch: int) -> float:
    if loss != loss or loss in (float("inf"), -float("inf")):
        raise RuntimeError(
            f"The training loss became {loss} in epoch {epoch}. Lower the learning rate, scale "
            f"the outcomes to about 1, or check that the cost and its slope are finite on the "
            f"whole feasible set."
        )
    return loss


def _copy(model: nn.Module) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in model.state_dict().items()}


def _get_rng(device: torch.device) -> Tensor:
    return torch.cuda.get_rng_state(device) if device.type == "cuda" else torch.get_rng_state()


def _set_rng(device: torch.device, state: Tensor) -> None:
    if device.type == "cuda":
        torch.cuda.set_rng_state(state, device)
    else:
        torch.set_rng_state(state)


def _compiled(loss: Loss) -> Loss:
    """torch.compile(loss), or loss itself from the first call that cannot be compiled."""
    fast: list[Loss] = [torch.compile(loss, dynamic=True)]

    def step(batch: Dataset, rng: Generator) -> Tensor:
        state = rng.get_state()
        try:
            return fast[0](batch, rng)
        except Exception as error:
            if fast[0] is loss:
                raise
            warnings.warn(f"torch.compile failed, going on without it: {error}", stacklevel=2)
            fast[0] = loss
            rng.set_state(state)
            return loss(batch, rng)

    return step
