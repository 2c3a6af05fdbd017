"""The one training loop: batches, moving average, early stopping, checkpoints, resume."""

import warnings
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field, replace
from math import ceil, cos, pi
from pathlib import Path
from random import Random

import torch
from torch import Generator, Tensor, nn

from costscape import distributed
from costscape.captured import Captured, Update
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
    mean of the last ``smooth`` epochs' since a single one is noisy; where deciding is costly, it
    is read only every ``score_every`` epochs and stands until then. ``checkpoint`` names a
    file written after every epoch; a fit that finds it goes on from there and ends with the same
    bits as an unbroken one. ``device`` None takes a GPU where there is one. ``compile`` runs the
    loss through torch.compile, which pays on long fits, and goes on without if that fails.
    ``record`` replays a step on a GPU as one CUDA graph, where the loss allows it.
    Under torchrun ``batch_size`` is that of all processes together.
    """

    epochs: int = 60
    batch_size: int = 64
    lr: float | None = None
    weight_decay: float = 0.0
    decay: bool = True
    patience: int = 20
    smooth: int = 5
    score_every: int = 1
    checkpoint: Path | str | None = None
    device: str | None = None
    compile: bool = False
    record: bool = True
    progress: bool = True

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "patience", "smooth", "score_every"):
            if getattr(self, name) < 1:
                raise ValueError(
                    f"Training needs {name} of at least 1, but got {getattr(self, name)}."
                )
        if self.lr is not None and not self.lr > 0:
            raise ValueError(f"Training needs a positive lr, but got {self.lr}.")

    def where(self) -> torch.device:
        named = torch.device(self.device or ("cuda" if torch.cuda.is_available() else "cpu"))
        return distributed.own_device(named)


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

    Under torchrun each process computes the loss on its rows of every batch, and all take the
    same steps. The first one's score counts, and it alone writes the checkpoint.
    """
    distributed.check_same_rows(data.x, data.y)
    distributed.copy_first([*model.parameters(), *model.buffers()])
    device = next(model.parameters()).device
    lr = training.lr or RATE
    rate: float | Tensor = lr
    fast = device.type == "cuda" and distributed.size() == 1
    fast = fast and training.record and not training.compile
    if fast:
        rate = torch.tensor(lr, device=device)  # a recorded step reads it anew
    optimiser = torch.optim.Adam(
        model.parameters(),
        lr=rate,
        weight_decay=training.weight_decay,
        capturable=fast,
        fused=True,
    )
    shuffle, draw = Generator().manual_seed(seed), Generator(device).manual_seed(seed)
    average = _twin(model) if ema else model
    history, first = History(), 0
    best = copy_of(average)
    step = _compiled(loss) if training.compile else loss
    settings = replace(
        training, checkpoint=None, device=None, compile=False, record=True, progress=False
    )
    if not training.decay:
        settings = replace(settings, epochs=1)  # a longer fit at a constant rate begins the same
    leads = distributed.is_first()
    path = training.checkpoint if leads else None
    update: Update = _Update(step, draw, model, average, optimiser, follows=ema is not None)
    if fast:
        update = Captured(update, training.batch_size, draw)
    keeper = Checkpoint(path, repr((settings, seed, ema, recipe)), data, model)
    ready = min(training.smooth, training.epochs) - 1  # no epoch before it can be kept
    devices = [device] if device.type == "cuda" else []
    with (
        torch.random.fork_rng(devices),
        progress(title, training.epochs, training.progress and leads) as show,
    ):
        torch.manual_seed(seed)  # dropout and input noise draw from here, inside the fork
        if saved := distributed.state_of_first(keeper.load()):
            model.load_state_dict(saved["model"])
            average.load_state_dict(saved["average"])
            optimiser.load_state_dict(saved["optimiser"])
            _set_rate(optimiser, rate)
            shuffle.set_state(saved["shuffle"])
            draw.set_state(saved["draw"])
            _set_rng(device, saved["rng"])
            history, first, best = History(**saved["history"]), saved["epoch"] + 1, saved["best"]
        for epoch in range(first, training.epochs):
            if score and epoch - max(history.best_epoch, ready) > training.patience:
                break
            if training.decay:
                now = lr * (1 + cos(pi * epoch / training.epochs)) / 2
                rate = rate.fill_(now) if isinstance(rate, Tensor) else now
                _set_rate(optimiser, rate)
            if not leads:
                torch.manual_seed(_own_seed(seed, epoch))
            model.train()
            total = torch.zeros((), device=device)
            for i, batch in enumerate(data.batches(training.batch_size, shuffle)):
                # a young average follows faster, or a short fit would stay at its start
                age = epoch * ceil(len(data) / training.batch_size) + i
                share = 1 - min(ema, (1 + age) / (10 + age)) if ema else 0.0
                total += update(batch, share) * len(batch)
            history.losses.append(_finite(total.item() / len(data), epoch))
            distributed.copy_first([*model.buffers(), *average.buffers()])
            average.eval()
            turn = score is None or _reads(epoch, training)
            if score is not None:
                history.scores.append(history.scores[-1] if not turn else _read(score, average))
            if turn and history.improved(epoch, training.epochs, training.smooth):
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


@dataclass
class _Update:
    """One step of the optimiser; then the average follows by a share of the way."""

    loss: Loss
    rng: Generator
    model: nn.Module
    average: nn.Module
    optimiser: torch.optim.Optimizer
    follows: bool

    def __call__(self, batch: Dataset, share: float | Tensor) -> Tensor:
        self.optimiser.zero_grad(set_to_none=True)
        value = _backward(self.loss, batch, self.rng, self.model)
        self.optimiser.step()
        if self.follows:
            _follow(self.average, self.model, share)
        return value


def _backward(loss: Loss, batch: Dataset, rng: Generator, model: nn.Module) -> Tensor:
    """The loss on the batch, its gradient left in the model; each process takes its own rows."""
    if distributed.size() == 1:
        value = loss(batch, rng)
        value.backward()
        return value.detach()
    with distributed.share(len(batch)) as share:
        value = loss(batch[share.own], rng)
        if share.weight > 0:
            (share.weight * value).backward()
            value = share.weight * value.detach()
        else:
            value = torch.zeros_like(value)
    distributed.add_up_gradients(list(model.parameters()), value)
    if not share.even:
        distributed.copy_generator(rng)  # a loss may have drawn more where it saw more rows
    return value


def _own_seed(seed: int, epoch: int) -> int:
    """Of the dropout and noise of a process other than the first, whose stream alone is kept."""
    return Random(f"{seed} {epoch} {distributed.rank()}").getrandbits(63)


def _reads(epoch: int, training: Training) -> bool:
    """Whether the validation score is read after this epoch; after the first and last it is."""
    last = epoch == training.epochs - 1
    return epoch == 0 or last or (epoch + 1) % training.score_every == 0


@torch.no_grad()
def _read(score: Score, average: nn.Module) -> float:
    return distributed.number_of_first(float(score(average)))


def _twin(model: nn.Module) -> nn.Module:
    """A copy; cuDNN wants the weights of an LSTM in one piece, which copying breaks."""
    twin = deepcopy(model)
    for part in twin.modules():
        if isinstance(part, nn.RNNBase):
            part.flatten_parameters()
    return twin


def _set_rate(optimiser: torch.optim.Optimizer, rate: float | Tensor) -> None:
    for group in optimiser.param_groups:
        group["lr"] = rate


@torch.no_grad()
def _follow(average: nn.Module, model: nn.Module, share: float | Tensor) -> None:
    for slow, fast in zip(average.parameters(), model.parameters(), strict=True):
        slow.lerp_(fast, share)
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
