"""From an encoder to the parts of a mixture: weights, means and log deviations.

A ``LinearHead`` is linear in the encoder's code, so it has k x size x width weights for each of
means and deviations. An encoder whose outcomes have a structure, such as days on a graph, may
bring a head of its own for mixtures that would be too large: its ``mixture_head(labels)``.
"""

from math import prod
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from costscape.models.scaling import zero_
from costscape.task import Refusal

Parts = tuple[Tensor, Tensor, Tensor]
MOST = 10**9  # weights of the last layer, 16 GB with their gradients and averages


@runtime_checkable
class OwnHead(Protocol):
    """An encoder that builds the head of a large mixture."""

    def mixture_head(self, labels: Tensor) -> nn.Module:
        """Return a module (encoder, x) -> logits (B, k), means and log deviations (B, k, ...).

        ``labels`` (k, *y_shape) are outcomes near which the means may start.
        """


class LinearHead(nn.Module):
    """Logits, means and log deviations linear in the code; means start at the labels.

    Args:
        width: int. Numbers of a code.
        labels: (k, *y_shape). One outcome for each component.
    """

    def __init__(self, width: int, labels: Float[Tensor, "k ..."]) -> None:
        super().__init__()
        self.shape = labels.shape
        size = prod(self.shape[1:])
        k = len(labels)
        self.logits = nn.Linear(width, k)
        self.location = nn.Linear(width, k * size)
        self.log_scale = nn.Linear(width, k * size)
        zero_(self.log_scale)
        if k > 1:  # components start apart
            with torch.no_grad():
                self.location.bias.copy_(labels.flatten())

    def forward(self, encoder: nn.Module, x: Float[Tensor, "B ..."]) -> Parts:
        code = encoder(x)
        # gradients add up in the reverse of this order, and kept rows depend on it in rounding
        logits = self.logits(code)
        log_s, m = (
            layer(code).unflatten(-1, self.shape) for layer in (self.log_scale, self.location)
        )
        return logits, m, log_s


def mixture_head(encoder: nn.Module, labels: Float[Tensor, "k ..."]) -> nn.Module:
    """Return the linear head, or that of the encoder where the linear one is too large."""
    width, k, size = int(encoder.out_features), len(labels), prod(labels.shape[1:])  # type: ignore[arg-type]
    weights = 2 * k * size * width
    if weights <= MOST:
        return LinearHead(width, labels)
    if isinstance(encoder, OwnHead):
        return encoder.mixture_head(labels)
    raise Refusal(
        f"A mixture of {k} components for outcomes of {size} numbers has {weights:.1e} weights in "
        f"its last layer, and at most {MOST:.0e} are sensible. Take fewer components."
    )
