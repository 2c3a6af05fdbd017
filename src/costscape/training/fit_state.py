"""A network under way: all that a fit of it changes from epoch to epoch."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Generator, Tensor, nn

from costscape import distributed
from costscape.data import Dataset
from costscape.training.steps import Loss, Step, twin

Score = Callable[[nn.Module], float]


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


@dataclass(frozen=True, eq=False)
class Fit:
    """A network, and what it is fitted to; see ``fit_network``.

    ``name`` tells its checkpoint from those of the networks it is fitted with; ``rows`` are those
    of the data that it learns from, None for all.
    """

    model: nn.Module
    loss: Loss
    seed: int
    score: Score | None = None
    ema: float | None = None
    title: str = "fit"
    recipe: str = ""
    name: str = ""
    rows: Tensor | None = None

    def count(self, data: Dataset) -> int:
        """How many pairs it learns from."""
        return len(data) if self.rows is None else len(self.rows)

    def own(self, data: Dataset) -> Dataset:
        rows = self.rows
        return data if rows is None else Dataset(data.x[rows], data.y[rows])


@dataclass(frozen=True, eq=False)
class _Drawn:
    """Rows in an order, and the state that the generator had before."""

    order: Tensor
    before: Tensor


class Underway:
    """``fast``: the steps will be recorded, so that the rate must be a number on the GPU."""

    def __init__(
        self, fit: Fit, loss: Loss, data: Dataset, lr: float, weight_decay: float, fast: bool
    ) -> None:
        self.fit, self.lr, model = fit, lr, fit.model
        distributed.copy_first([*model.parameters(), *model.buffers()])
        device = next(model.parameters()).device
        self.rate: float | Tensor = torch.tensor(lr, device=device) if fast else lr
        self.optimiser = torch.optim.Adam(
            model.parameters(),
            lr=self.rate,
            weight_decay=weight_decay,
            capturable=fast,
            fused=True,
        )
        self.shuffle = Generator().manual_seed(fit.seed)
        self.ahead: _Drawn | None = None
        self.draw = Generator(device).manual_seed(fit.seed)
        self.average = twin(model) if fit.ema else model
        self.history = History()
        self.best = copy_of(self.average)
        self.step = Step(
            loss, data, self.draw, model, self.average, self.optimiser, fit.ema is not None
        )

    def set_rate(self, part: float) -> None:
        now = self.lr * part
        self.rate = self.rate.fill_(now) if isinstance(self.rate, Tensor) else now
        self._tell_rate()

    def order(self, data: Dataset) -> Tensor:
        """All rows that it learns from, shuffled anew."""
        self.look_ahead(data)
        assert self.ahead is not None
        order, self.ahead = self.ahead.order, None
        return order

    def look_ahead(self, data: Dataset) -> None:
        """Shuffle for the next epoch, while a GPU still works at this one."""
        if self.ahead is None:
            before, rows = self.shuffle.get_state(), self.fit.rows
            order = torch.randperm(self.fit.count(data), generator=self.shuffle)
            if data.x.is_cuda:
                order = order.pin_memory().to(data.x.device, non_blocking=True)
            self.ahead = _Drawn(order if rows is None else rows[order], before)

    def share(self, age: int) -> float:
        """By which the average follows; a young one faster, or a short fit would stay at its
        start."""
        return 1 - min(self.fit.ema, (1 + age) / (10 + age)) if self.fit.ema else 0.0

    def read(self) -> float:
        """The score as it is now."""
        assert self.fit.score is not None
        with torch.no_grad():
            return distributed.number_of_first(float(self.fit.score(self.average)))

    def keep(self) -> None:
        if self.fit.score is not None:  # without one it is always the latest
            self.best.update(copy_of(self.average))

    def end(self) -> History:
        """Leave the model at its best epoch."""
        self.optimiser.zero_grad(set_to_none=True)  # they may lie in the memory of a recording
        scored = self.fit.score is not None
        self.fit.model.load_state_dict(self.best if scored else self.average.state_dict())
        self.fit.model.eval()
        return self.history

    def state(self) -> dict[str, Any]:
        return {
            "model": self.fit.model.state_dict(),
            "average": self.average.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "shuffle": self.ahead.before if self.ahead else self.shuffle.get_state(),
            "draw": self.draw.get_state(),
            "history": vars(self.history),
            "best": self.best,
        }

    def load(self, saved: dict[str, Any]) -> None:
        self.fit.model.load_state_dict(saved["model"])
        self.average.load_state_dict(saved["average"])
        self.optimiser.load_state_dict(saved["optimiser"])
        self._tell_rate()
        self.shuffle.set_state(saved["shuffle"])
        self.ahead = None
        self.draw.set_state(saved["draw"])
        self.history, self.best = History(**saved["history"]), saved["best"]

    def _tell_rate(self) -> None:
        for group in self.optimiser.param_groups:
            group["lr"] = self.rate


def copy_of(model: nn.Module) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in model.state_dict().items()}
