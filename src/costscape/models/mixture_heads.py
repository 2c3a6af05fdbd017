"""From an encoder to the parts of a mixture: weights, means and log deviations.

A ``LinearHead`` has the last layers of ``last_layer`` for means and deviations. They are mostly
linear in the encoder's code, with k x size x width weights each. An encoder whose outcomes have a
structure, such as days on a graph, may bring a head of its own for mixtures that would be too
large: its ``mixture_head(labels)``.
"""

from math import prod
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from costscape.models.last_layer import last_layer
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
        encoder: a module with ``out_features``.
        labels: (k, *y_shape). One outcome for each component.
    """

    def __init__(self, encoder: nn.Module, labels: Float[Tensor, "k ..."]) -> None:
        super().__init__()
        self.shape = labels.shape
        size = prod(self.shape[1:])
        k = len(labels)
        self.logits = nn.Linear(int(encoder.out_features), k)  # type: ignore[arg-type]
        self.location = last_layer(encoder, size, k)
        self.log_scale = zero_(last_layer(encoder, size, k))
        if k > 1:  # components start apart
            bias: Tensor = self.location.bias.view(k, -1)  # type: ignore[operator]
            with torch.no_grad():
                bias.copy_(labels.flatten(1)[:, : bias.shape[1]])

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
        return LinearHead(encoder, labels)
    if isinstance(encoder, OwnHead):
        return encoder.mixture_head(labels)
    raise Refusal(
        f"A mixture of {k} components for outcomes of {size} numbers has {weights:.1e} weights in "
        f"its last layer, and at most {MOST:.0e} are sensible. Take fewer components."
    )
