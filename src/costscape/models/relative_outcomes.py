"""The level of a window x, of which outcomes are multiples."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

Level = Callable[[Tensor], Tensor]  # x (B, ...) -> a positive number for each x (B,)


def mean_level(x: Float[Tensor, "B ..."]) -> Float[Tensor, "B"]:
    """The mean absolute value of each window."""
    return x.flatten(1).abs().mean(1)


class ByLevel(nn.Module):
    """x -> level(x), never under 1 % of the training windows' mean level."""

    def __init__(self, level: Level, x: Float[Tensor, "n ..."]) -> None:
        super().__init__()
        self.level = level
        levels = self._checked(x)
        self.register_buffer("floor", 0.01 * levels.mean().clamp(min=1e-12))
        self.floor: Tensor

    def forward(self, x: Float[Tensor, "B ..."]) -> Float[Tensor, "B"]:
        return self.level(x).maximum(self.floor)

    def _checked(self, x: Tensor) -> Tensor:
        levels = self.level(x)
        if levels.shape != x.shape[:1] or not (levels.isfinite() & (levels >= 0)).all():
            raise ValueError(
                f"WindowLevels needs level(x) to give one non-negative number for each window, "
                f"shape {tuple(x.shape[:1])}, but it gave shape {tuple(levels.shape)} with least "
                f"value {float(torch.min(levels)):g}. Return x.flatten(1).abs().mean(1), say."
            )
        return levels
