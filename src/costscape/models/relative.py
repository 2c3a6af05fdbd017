"""What outcomes are seen relative to: multiples of a level of x, or changes from a base."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

Level = Callable[[Tensor], Tensor]  # x (B, ...) -> a positive number for each x (B,)


@dataclass(frozen=True)
class Damped:
    """A base that counts by a number between 0 and 1.

    It is the slope in the regression of y on ``of(x)`` over all training pairs and numbers of y,
    each taken from its mean: what was far from the mean is expected to be nearer to it. What was
    further than ``within`` standard deviations, such as a holiday, counts as that far.
    """

    of: Callable[[Tensor], Tensor]
    within: float | None = None

    def __post_init__(self) -> None:
        check_limit("Damped", "within", self.within)


@dataclass(frozen=True)
class Base:
    """Outcomes are seen as changes from ``of(x)``, which has the shape of y.

    Something known beforehand and near y: what was last, or a forecast at hand. With ``seen`` the
    network sees x as if it were no further than so many standard deviations from its mean.
    """

    of: Callable[[Tensor], Tensor] | Damped
    seen: float | None = None

    def __post_init__(self) -> None:
        check_limit("Base", "seen", self.seen)

    @property
    def damped(self) -> bool:
        return isinstance(self.of, Damped)

    def __call__(self, x: Float[Tensor, "B ..."]) -> Float[Tensor, "B ..."]:
        """The base, undamped."""
        return self.of.of(x) if isinstance(self.of, Damped) else self.of(x)


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


class ByBase(nn.Module):
    """x -> base(x), damped and limited as the training pairs x, y say."""

    least: Tensor
    most: Tensor
    damping: Tensor

    def __init__(self, base: Base, x: Float[Tensor, "n ..."], y: Float[Tensor, "n ..."]) -> None:
        super().__init__()
        self.base = base
        b = _checked_base(base, x, y)
        within = base.of.within if isinstance(base.of, Damped) else None
        self.limited = within is not None
        if within is not None:
            far = within * b.std(0, correction=0)
            self.register_buffer("least", b.mean(0) - far)
            self.register_buffer("most", b.mean(0) + far)
        if base.damped:
            self.register_buffer("damping", _slope(self._near(b), y))

    def forward(self, x: Float[Tensor, "B ..."]) -> Float[Tensor, "B ..."]:
        b = self._near(self.base(x))
        return self.damping * b if self.base.damped else b

    def _near(self, b: Tensor) -> Tensor:
        return b.clamp(self.least, self.most) if self.limited else b


def check_limit(owner: str, name: str, limit: float | None) -> None:
    if limit is not None and not limit > 0:
        raise ValueError(
            f"{owner} needs {name} to be a positive number of standard deviations, or None for no "
            f"limit, but got {limit}."
        )


def _checked_base(base: Base, x: Tensor, y: Tensor) -> Tensor:
    b = base(x)
    if b.shape != y.shape or not b.isfinite().all():
        finite = "all finite" if b.isfinite().all() else "not all finite"
        raise ValueError(
            f"Changes need base(x) to give finite numbers of the shape of y, {tuple(y.shape)}, "
            f"but it gave shape {tuple(b.shape)}, {finite}. Return x[:, -y.shape[1]:], say, where "
            f"x holds the past of y."
        )
    return b


def _slope(b: Tensor, y: Tensor) -> Tensor:
    b, y = b - b.mean(0), y - y.mean(0)
    size = b.square().sum().clamp(min=torch.finfo(b.dtype).tiny)
    return ((b * y).sum() / size).clamp(0, 1)
