"""The moving average of a network's weights."""

from copy import deepcopy

import torch
from torch import Tensor, nn


def copy_of(model: nn.Module) -> dict[str, Tensor]:
    """The state of the model, in new tensors."""
    return {name: value.clone() for name, value in model.state_dict().items()}


def twin(model: nn.Module) -> nn.Module:
    """A copy; cuDNN needs the weights of an LSTM in one piece, which copying breaks."""
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
    held, new = list(average.buffers()), list(model.buffers())
    if isinstance(share, Tensor):  # a number on the GPU: one kernel for many tensors
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
