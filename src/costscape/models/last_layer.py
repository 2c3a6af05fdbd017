"""The layer from the code of x to the numbers of a forecast: linear, or the encoder's own.

Where all numbers of y are of one kind, such as the values of d like resources, an encoder may
bring one layer that serves each of them: its ``forecast_layer(size, k)``.
"""

from typing import Protocol, runtime_checkable

from torch import nn


@runtime_checkable
class OwnLastLayer(Protocol):
    """An encoder that builds the last layer of a forecast."""

    def forecast_layer(self, size: int, k: int) -> nn.Module:
        """Return a module: codes (B, out_features) -> (B, k * size), k numbers for each of y.

        Its ``bias`` has k rows, flat: of ``size`` numbers, or of fewer that serve all of y. Means
        of a mixture start from them.
        """


def last_layer(encoder: nn.Module, size: int, k: int = 1) -> nn.Module:
    """Return the encoder's own last layer, or a linear one.

    Args:
        encoder: a module with ``out_features``.
        size: int. Numbers of an outcome.
        k: int, default 1. Numbers of the forecast for each of them.
    """
    if isinstance(encoder, OwnLastLayer):
        return encoder.forecast_layer(size, k)
    return nn.Linear(int(encoder.out_features), k * size)  # type: ignore[arg-type]
