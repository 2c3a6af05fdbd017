"""Forecasts of all resources by one and the same line, w x_i + b."""

import torch
from jaxtyping import Float
from torch import Tensor, nn


class OneLine(nn.Module):
    """x itself; the last layer of a forecast is then one line for all resources.

    The class of the task "linear model" of Shah et al. (2022): a forecast of two parameters. Its
    own last layer starts at 0, so that no resource is ranked first by chance.

    >>> encoder = OneLine()
    >>> layer = encoder.forecast_layer(size=3, k=2)
    >>> sum(parameter.numel() for parameter in layer.parameters())
    4
    >>> layer(encoder(torch.zeros(5, 3))).shape
    torch.Size([5, 6])
    """

    def forward(self, x: Float[Tensor, "B d"]) -> Float[Tensor, "B d"]:
        return x.flatten(1)

    def forecast_layer(self, size: int, k: int) -> nn.Module:
        """Return k lines, each from the number of a resource to one of its forecast."""
        return _Lines(k)


class _Lines(nn.Module):
    """Codes (B, d) -> (B, k d): weight_c x_i + bias_c, resources side by side for each c."""

    def __init__(self, k: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(k))
        self.bias = nn.Parameter(torch.zeros(k))

    def forward(self, x: Float[Tensor, "B d"]) -> Float[Tensor, "B kd"]:
        lines = self.weight[:, None] * x.unsqueeze(1) + self.bias[:, None]
        return lines.flatten(1)
