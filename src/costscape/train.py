"""The one training loop: batches, moving average, early stopping, checkpoints, resume."""

import warnings
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field, replace
from math import ceil, cos, pi
from pathlib import Path

import torch
from torch import Generator, Tensor, nn

from costscape.checkpoint import Checkpoint
from costscape.data import Dataset
from costscape.progress import progress

Loss = Callable[[Dataset, Generator], Tensor]
Score = Callable[[nn.Module], float]
RATE = 1e-3  # of Adam, where neither the user nor the method says otherwise; the paper's


@dataclass(frozen=True)
class Training:
    """How a network is fitted: Adam over shuffled batches.

    ``lr`` None leaves the rate to the method. With ``decay`` it falls to 0 along a cosine over the
    epochs. Early stopping waits ``patience`` epochs for a better validation score, which is the
    mean of the last ``smooth`` epochs' since a single one is noisy. ``checkpoint`` names a
    file written after every epoch; a fit that finds it goes on from there and ends with the same
    bits as an unbroken one. ``device`` None takes a GPU where there is one. ``compile`` runs the
    loss through torch.compile, which pays on long fits, and goes on without if that fails.
    """

    epochs: int = 60
    batch_size: int = 64
    lr: float | None = None
    weight_decay: float = 0.0
    decay: bool = True
    patience: int = 20
    smooth: int = 5
    checkpoint: Path | str | None = None
    device: str | None = None
    compile: bool = False
    progress: bool = True

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "patience", "smooth"):
            if getattr(self, name) < 1:
                raise ValueError(
                    f"Training needs {name} of at least 1, but got {getattr(self, name)}."
                )
        if self.lr is not None and not self.lr > 0:
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

    def improved(self, epoch: int, epochs: int, smooth: int) -> bool:
        """Whether this epoch is the one to keep; without scores the latest always is."""
        if not self.scores:
            self.best_epoch = epoch
            return True
        last = self.scores[-smooth:]
        value = sum(last) / len(last)
        if value < self.best and len(last) == min(smooth, epochs):
            self.best, self.best_epoch = value, epoch
            return True
        return False


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
    lr = training.lr or RATE
    optimiser = torch.optim.Adam(model.parameters(), lr=lr, weight_decay=training.weight_decay)
    shuffle, draw = Generator().manual_seed(seed), Generator(device).manual_seed(seed)
    average = deepcopy(model) if ema else model
    history, first = History(), 0
    best = copy_of(average)
    step = _compiled(loss) if training.compile else loss
    settings = replace(training, checkpoint=None, device=None, compile=False, progress=False)
    if not training.decay:
        settings = replace(settings, epochs=1)  # a longer fit at a constant rate begins the same
    keeper = Checkpoint(training.checkpoint, repr((settings, seed, ema, recipe)), data, model)
    ready = min(training.smooth, training.epochs) - 1  # no epoch before it can be kept
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
            if score and epoch - max(history.best_epoch, ready) > training.patience:
                break
            if training.decay:
                for group in optimiser.param_groups:
                    group["lr"] = lr * (1 + cos(pi * epoch / training.epochs)) / 2
            model.train()
            total = torch.zeros((), device=device)
            for i, batch in enumerate(data.batches(training.batch_size, shuffle)):
                value = step(batch, draw)
                optimiser.zero_grad(set_to_none=True)
                value.backward()
                optimiser.step()
                total += value.detach() * len(batch)
                if ema:
                    # a young average follows faster, or a short fit would stay at its start
                    age = epoch * ceil(len(data) / training.batch_size) + i
                    _follow(average, model, min(ema, (1 + age) / (10 + age)))
            history.losses.append(_finite(total.item() / len(data), epoch))
            average.eval()
            if score is not None:
                with torch.no_grad():
                    history.scores.append(score(average))
            if history.improved(epoch, training.epochs, training.smooth):
                best.update(copy_of(average))
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
            show(
                epoch + 1, note + (f"  validation cost {history.scores[-1]:.5g}" if score else "")
            )
    model.load_state_dict(best)
    model.eval()
    return history


def check_ema(owner: str, ema: float | None) -> None:
    if ema is not None and not 0 < ema < 1:
        raise ValueError(
            f"{owner} needs ema between 0 and 1, or None for no averaging, but got {ema}."
        )


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


def copy_of(model: nn.Module) -> dict[str, Tensor]:
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
    fast: Loss | None = None

    def step(batch: Dataset, rng: Generator) -> Tensor:
        nonlocal fast
        state = rng.get_state()
        try:
            fast = fast or torch.compile(loss, dynamic=True)
            return fast(batch, rng)
        except Exception as error:
            if fast is loss:
                raise
            warnings.warn(f"torch.compile failed, going on without it: {error}", stacklevel=2)
            fast = loss
            rng.set_state(state)
            return loss(batch, rng)

    return step
