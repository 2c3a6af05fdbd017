"""Encoders: x -> q(x), a vector of ``out_features`` numbers.

An encoder is any nn.Module with an ``out_features`` attribute and ``forward(x) -> (B, out)``; x
arrives standardised. A method takes a builder, such as ``partial(MLP, 24)``, so that each fit
starts from fresh weights. Where the encoder has no ``out_features``, ``encoder_for`` measures it.
"""

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from math import prod

import torch
from jaxtyping import Float
from torch import Tensor, nn

Builder = Callable[[], nn.Module]
LINEAR_RATE = 1e-2  # of Flat: with less a linear map is far from its optimum after 1,000 steps


class MLP(nn.Module):
    """Flattens x and applies hidden layers of ReLU units; the last layer is the code.

    Args:
        in_features: int. Numbers in one row of x, the product of its axes.
        hidden: int, default 128. Units in each hidden layer, and the length of the code.
        layers: int, default 1. Number of hidden layers.
        dropout: float, default 0. Probability of dropping a unit, after each hidden layer, while
            training only.
        noise: float, default 0. Standard deviation of normal noise added to x, which is
            standardised, while training only.

    The paper uses one hidden layer of 128 units.

    >>> import costscape as cs
    >>> import torch
    >>> cs.MLP(in_features=6, hidden=32, layers=2)(torch.zeros(5, 6)).shape
    torch.Size([5, 32])
    """

    def __init__(
        self,
        in_features: int,
        hidden: int = 128,
        layers: int = 1,
        dropout: float = 0.0,
        noise: float = 0.0,
    ) -> None:
        super().__init__()
        widths = [in_features] + layers * [hidden]
        parts: list[nn.Module] = [_Noise(noise), nn.Flatten()]
        for i, o in pairwise(widths):
            parts += [nn.Linear(i, o), nn.ReLU(), nn.Dropout(dropout)]
        self.net = nn.Sequential(*parts)
        self.out_features = hidden

    def forward(self, x: Float[Tensor, "B ..."]) -> Float[Tensor, "B out"]:
        code: Tensor = self.net(x)
        return code


class LSTM(nn.Module):
    """Reads x (B, T, channels), or (B, T) as one channel; the last hidden state is the code.

    Args:
        channels: int, default 1. Numbers at each time step of x.
        hidden: int, default 128. Units in each layer, and the length of the code.
        layers: int, default 2. Number of LSTM layers.
        dropout: float, default 0. Probability of dropping a unit, between the layers and on the
            code, while training only.
        noise: float, default 0. Standard deviation of normal noise added to x, which is
            standardised, while training only.

    The paper uses 2 layers of 256 units for wind and 2 layers of 128 for inventory.

    >>> import costscape as cs
    >>> import torch
    >>> cs.LSTM(channels=3, hidden=16)(torch.zeros(5, 24, 3)).shape
    torch.Size([5, 16])
    """

    def __init__(
        self,
        channels: int = 1,
        hidden: int = 128,
        layers: int = 2,
        dropout: float = 0.0,
        noise: float = 0.0,
    ) -> None:
        super().__init__()
        self.noise = _Noise(noise)
        between = dropout if layers > 1 else 0.0
        self.lstm = nn.LSTM(channels, hidden, layers, batch_first=True, dropout=between)
        self.drop = nn.Dropout(dropout)
        self.out_features = hidden

    def forward(self, x: Float[Tensor, "B ..."]) -> Float[Tensor, "B out"]:
        _, (h, _) = self.lstm(self.noise(x if x.ndim == 3 else x.unsqueeze(-1)))
        code: Tensor = self.drop(h[-1])
        return code


class Flat(nn.Module):
    """x itself, flattened: what a method puts on top of it is then linear in x.

    Without weights and without settings, so the class is its own builder: TwoStage(task,
    Mixture(3), encoder=Flat) is a mixture whose means, log deviations and weights are linear in x.
    It trains in the time of its last layer alone, best at a rate of 1e-2.

    >>> encoder_for(Flat, (4, 3)).out_features
    12
    """

    def forward(self, x: Float[Tensor, "B ..."]) -> Float[Tensor, "B out"]:
        return x.flatten(1)


class _Noise(nn.Module):
    def __init__(self, scale: float) -> None:
        super().__init__()
        self.scale = scale

    def forward(self, x: Tensor) -> Tensor:
        if self.training and self.scale > 0:
            return x + self.scale * torch.randn_like(x)
        return x


def by_shape(shape: tuple[int, ...]) -> Builder:
    """Rows get an MLP with two hidden layers, sequences (T, channels) an LSTM.

    The LSTM has dropout 0.3 and a little noise. Two layers for rows, as the zoo supports
    (benchmarks/zoo).
    """
    if len(shape) == 2:
        return partial(LSTM, shape[1], dropout=0.3, noise=0.05)
    return partial(MLP, prod(shape), layers=2)


def encoder_for(builder: Builder | None, shape: tuple[int, ...]) -> nn.Module:
    """A fresh encoder for rows x of this shape; None takes that of ``by_shape``.

    An encoder without ``out_features`` gets it from its answer to a row of zeros.
    """
    encoder = (builder or by_shape(shape))()
    if not hasattr(encoder, "out_features"):
        with torch.no_grad():
            code = encoder.eval()(torch.zeros(1, *shape))
        encoder.train().out_features = code.shape[1]
    return encoder
