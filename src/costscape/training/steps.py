"""One step of one fit: the gradient of the loss, Adam, and the average that follows."""

import warnings
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Generator, Tensor, nn

from costscape import distributed
from costscape.data import Dataset

Loss = Callable[[Dataset, Generator], Tensor]


@dataclass(eq=False)
class Step:
    """One step of the optimiser on some rows; then the average follows by a share of the way."""

    loss: Loss
    data: Dataset
    rng: Generator
    model: nn.Module
    average: nn.Module
    optimiser: torch.optim.Optimizer
    follows: bool

    def batch(self, rows: Int[Tensor, "B"]) -> Dataset:
        return Dataset(self.data.x[rows], self.data.y[rows])

    def gradient(self, rows: Int[Tensor, "B"]) -> Tensor:
        """The loss; its gradient is left in the model."""
        return self.gradient_on(self.batch(rows))

    def gradient_on(self, batch: Dataset) -> Tensor:
        self.optimiser.zero_grad(set_to_none=True)
        return _backward(self.loss, batch, self.rng, self.model)

    def move(self, share: float | Tensor) -> None:
        self.optimiser.step()
        if self.follows:
            _follow(self.average, self.model, share)


def twin(model: nn.Module) -> nn.Module:
    """A copy; cuDNN wants the weights of an LSTM in one piece, which copying breaks."""
    twin = deepcopy(model)
    for part in twin.modules():
        if isinstance(part, nn.RNNBase):
            part.flatten_parameters()
    return twin


def compiled(loss: Loss) -> Loss:
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


def get_rng(device: torch.device) -> Tensor:
    return torch.cuda.get_rng_state(device) if device.type == "cuda" else torch.get_rng_state()


def set_rng(device: torch.device, state: Tensor) -> None:
    if device.type == "cuda":
        torch.cuda.set_rng_state(state, device)
    else:
        torch.set_rng_state(state)


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


@torch.no_grad()
def _follow(average: nn.Module, model: nn.Module, share: float | Tensor) -> None:
    slow: list[Tensor] = list(average.parameters())
    fast: list[Tensor] = list(model.parameters())
    held, new = list(average.buffers()), list(model.buffers())
    if isinstance(share, Tensor):  # a number on the GPU: a kernel for many tensors at once
        way = torch._foreach_sub(fast, slow)
        torch._foreach_mul_(way, share.to(fast[0].dtype))
        torch._foreach_add_(slow, list(way))
        if held:
            torch._foreach_copy_(held, new)
        return
    for one, other in zip(slow, fast, strict=True):
        one.lerp_(other, share)
    for one, other in zip(held, new, strict=True):
        one.copy_(other)
