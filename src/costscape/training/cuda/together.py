"""Gradients of several networks at once, their LSTMs computed as one recurrence.

Each network's loss is begun twice. The first time it is left where its LSTM is asked, and what the
LSTM would read is noted. Then one recurrence computes all LSTMs (``stacked``), the losses are
carried out with each LSTM answering from it, and what they want of the answers goes back through
it. The weights stay those of each network.

What is drawn before an LSTM is asked, such as noise on its input, is drawn in both, and the first
draw counts.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NoReturn

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from costscape.data import Dataset
from costscape.training.cuda.capture_probe import Draws
from costscape.training.cuda.graph import branches, side_by_side
from costscape.training.cuda.stacked_lstm import alike, fast, last_codes, stack
from costscape.training.steps import Step

WIDE = 256  # hidden units from which on a single LSTM is quicker so than cuDNN's, on an H200


class Together:
    """The gradients of some steps, over stacked LSTMs; side by side where that cannot be.

    It cannot where a loss asks its LSTM more than once, or for more than the last layer's last
    state, or draws from its own generator before; the first step tells.
    """

    def __init__(self, models: Sequence[nn.Module]) -> None:
        lstms = [_lstms(model) for model in models]
        one_each = all(len(own) == 1 for own in lstms)
        pays = len(models) > 1 or (one_each and lstms[0][0].hidden_size >= WIDE)
        self.stacks = pays and one_each and alike([own[0] for own in lstms]) and fast(lstms[0][0])

    def __call__(self, steps: Sequence[Step], rows: Int[Tensor, "n B"]) -> Float[Tensor, "n"]:
        if self.stacks:
            before = Draws(rows.device, [step.rng for step in steps])
            try:
                return stacked_gradients(steps, rows)
            except Unable:
                self.stacks = False
                before.restore()
        return side_by_side(steps, rows)


class Unable(Exception):
    """A loss that uses its LSTM in another way than an encoder does."""


def stacked_gradients(steps: Sequence[Step], rows: Int[Tensor, "n B"]) -> Float[Tensor, "n"]:
    """The losses; the gradients are left in the models, each of which holds one LSTM."""
    lstms = [_lstms(step.model)[0] for step in steps]
    device = rows.device
    asking = [partial(_heard, *each) for each in zip(steps, lstms, rows, strict=True)]
    heard = branches(asking, device)
    codes = last_codes(lstms, [x for _, x in heard])
    leaves = [code.detach().requires_grad_() for code in codes.unbind()]
    batches = [batch for batch, _ in heard]
    given = zip(steps, lstms, batches, leaves, strict=True)
    losses = branches([partial(_answered, *each) for each in given], device)
    slopes = [torch.zeros_like(leaf) if leaf.grad is None else leaf.grad for leaf in leaves]
    codes.backward(stack(slopes))
    return stack(losses)


class _Asked(Exception):
    """The LSTM was asked: its input."""

    def __init__(self, x: Tensor) -> None:
        self.x = x


class _Only:
    """Stands for the states of an LSTM, of which only the last layer's is at hand."""

    def __init__(self, code: Tensor | None = None) -> None:
        self._code = code

    def __getitem__(self, i: Any) -> Tensor:
        if self._code is None or not isinstance(i, int) or i != -1:
            raise Unable
        return self._code

    def __getattr__(self, name: str) -> NoReturn:
        raise Unable

    def __iter__(self) -> NoReturn:
        raise Unable

    @classmethod
    def __torch_function__(cls, *_: Any, **__: Any) -> NoReturn:
        raise Unable


def _heard(step: Step, lstm: nn.LSTM, rows: Tensor) -> tuple[Dataset, Tensor]:
    """The batch of this step, and what the LSTM reads of it, (B, T, channels)."""

    def ask(x: Tensor, hx: object = None) -> NoReturn:
        raise _Asked(x) if hx is None else Unable

    before, batch = Draws(rows.device, [step.rng]), step.batch(rows)
    try:
        with _instead(lstm, ask):
            step.loss(batch, step.rng)
    except _Asked as asked:
        x = asked.x
    else:
        raise Unable  # a loss without its LSTM
    if x.requires_grad or x.ndim != 3 or not lstm.batch_first or before.moved():
        raise Unable
    return batch, x


def _answered(step: Step, lstm: nn.LSTM, batch: Dataset, code: Tensor) -> Tensor:
    """The loss, its gradient left in ``code`` and in what is not the LSTM."""
    left = [code]

    def answer(x: Tensor, hx: object = None) -> Any:
        if not left or hx is not None:
            raise Unable
        return _Only(), (_Only(left.pop()), _Only())

    with _instead(lstm, answer):
        return step.gradient_on(batch)


@contextmanager
def _instead(lstm: nn.LSTM, forward: Any) -> Iterator[None]:
    """The LSTM's forward for a while; an attribute of the object hides that of its class."""
    lstm.__dict__["forward"] = forward
    try:
        yield
    finally:
        del lstm.__dict__["forward"]


def _lstms(model: nn.Module) -> list[nn.LSTM]:
    return [part for part in model.modules() if isinstance(part, nn.LSTM)]
