"""What a network sees of x and y."""

from typing import TypeVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from costscape.models.relative_outcomes import ByLevel, Level

Layer = TypeVar("Layer", bound=nn.Module)
STILL = 1e-6  # of the size of the others: what counts as no change


class Standardise(nn.Module):
    """x -> (x - mean) / sd with the statistics of the training part.

    A sequence (T, channels) is standardised channel by channel, not step by step, so that its
    shape in time stays. A feature that never changes is only centred, to rounding.
    """

    mean: Tensor
    scale: Tensor
    still: Tensor

    def __init__(self, x: Float[Tensor, "n ..."]) -> None:
        super().__init__()
        axes = (0, 1) if x.ndim == 3 else (0,)
        self.register_buffer("mean", x.mean(axes))
        sd = x.std(axes, correction=0)
        rounding = STILL * x.abs().amax(axes)
        still = sd <= rounding
        # the mean of large equal numbers is rounded: their difference from it must stay small
        self.register_buffer("scale", torch.where(still, rounding.clamp(min=1.0), sd))
        self.register_buffer("still", still, persistent=False)

    def forward(self, x: Float[Tensor, "B ..."]) -> Float[Tensor, "B ..."]:
        return (x - self.mean) / self.scale

    def undo(self, z: Tensor) -> Tensor:
        return self.mean + self.scale * z


class Labels(Standardise):
    """The same for outcomes, but one that never changes hardly moves, whatever z is.

    ``spread`` is there a millionth of that of the others, elsewhere the standard deviation.
    """

    def __init__(self, y: Float[Tensor, "n ..."]) -> None:
        super().__init__(y)
        others = self.scale[~self.still]
        typical = others.square().mean().sqrt() if len(others) else self.scale.new_ones(())
        self.register_buffer("spread", torch.where(self.still, STILL * typical, self.scale))
        self.spread: Tensor

    def undo(self, z: Tensor) -> Tensor:
        return self.mean + self.spread * z


class Units(nn.Module):
    """Between the user's units and the network's: divided by a level of x, then standardised.

    ``level`` divides windows and outcomes; None leaves both as they are. ``standardise`` False
    makes the second step the identity. Statistics are those of the training pairs given here.
    """

    def __init__(
        self,
        x: Float[Tensor, "n ..."],
        y: Float[Tensor, "n ..."],
        level: Level | None = None,
        standardise: bool = True,
    ) -> None:
        super().__init__()
        self.level = None
        if level is not None:
            self.level = ByLevel(level, x)
            levels = self.level(x)
            x, y = x / _column(levels, x), y / _column(levels, y)
        self.x_scaler = Standardise(x if standardise else _unit(x))
        self.y_scaler = Labels(y if standardise else _unit(y))

    @property
    def moves(self) -> Tensor:
        """1 for each number of y that changes, 0 for one that was the same in all pairs."""
        # ``still`` is not in a model file, and a number that changes has its deviation as spread
        return (self.y_scaler.spread == self.y_scaler.scale).to(self.y_scaler.mean)

    @property
    def own(self) -> bool:
        """Whether each x has outcomes of its own, whatever the network gives."""
        return self.level is not None

    def inputs(self, x: Float[Tensor, "B ..."]) -> Float[Tensor, "B ..."]:
        """x as the network sees it."""
        z: Tensor = self.x_scaler(x if self.level is None else x / _column(self.level(x), x))
        return z

    def standard(
        self, x: Float[Tensor, "B ..."], y: Float[Tensor, "B ..."]
    ) -> Float[Tensor, "B ..."]:
        """y as the network sees it."""
        z: Tensor = self.y_scaler(y if self.level is None else y / _column(self.level(x), y))
        return z

    def undo(self, x: Float[Tensor, "B ..."], z: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Outcomes z, (B or 1, S, ...) or one of each (B, ...), in the user's units."""
        y = self.y_scaler.undo(z)
        return y if self.level is None else y * _column(self.level(x), y)

    def spread(self, x: Float[Tensor, "B ..."], z: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Standard deviations z (B or 1, S, ...) of the network in the user's units."""
        s = self.y_scaler.spread * z
        return s if self.level is None else s * _column(self.level(x), s)


def zero_(layer: Layer) -> Layer:
    """Set the layer's weights and biases to 0, and return it."""
    for parameter in layer.parameters():
        nn.init.zeros_(parameter)
    return layer


def _column(level: Tensor, like: Tensor) -> Tensor:
    return level.reshape(-1, *(1,) * (like.ndim - 1))


def _unit(like: Tensor) -> Tensor:
    """Two rows of mean 0 and standard deviation 1."""
    one = torch.ones_like(like[:1])
    return torch.cat([-one, one])
