"""What a network sees of x and y, and the level of a window."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

STILL = 1e-6  # of the size of the others: what counts as no change
Level = Callable[[Tensor], Tensor]  # x (B, ...) -> a positive number for each x (B,)


def _check_limit(owner: str, name: str, limit: float | None) -> None:
    if limit is not None and not limit > 0:
        raise ValueError(
            f"{owner} needs {name} to be a positive number of standard deviations, or None for no "
            f"limit, but got {limit}."
        )


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
        _check_limit("Damped", "within", self.within)


@dataclass(frozen=True)
class Base:
    """Outcomes are seen as changes from ``of(x)``, which has the shape of y.

    Something known beforehand and near y: what was last, or a forecast at hand. With ``seen`` the
    network sees x as if it were no further than so many standard deviations from its mean.
    """

    of: Callable[[Tensor], Tensor] | Damped
    seen: float | None = None

    def __post_init__(self) -> None:
        _check_limit("Base", "seen", self.seen)

    @property
    def damped(self) -> bool:
        return isinstance(self.of, Damped)

    def __call__(self, x: Float[Tensor, "B ..."]) -> Float[Tensor, "B ..."]:
        """The base, undamped."""
        return self.of.of(x) if isinstance(self.of, Damped) else self.of(x)


def mean_level(x: Float[Tensor, "B ..."]) -> Float[Tensor, "B"]:
    """The mean absolute value of each window."""
    return x.flatten(1).abs().mean(1)


class Standardise(nn.Module):
    """x -> (x - mean) / sd with the statistics of the training part.

    A sequence (T, channels) is standardised channel by channel, not step by step, so that its
    shape in time stays. A feature that never changes is only centred.
    """

    def __init__(self, x: Float[Tensor, "n ..."]) -> None:
        super().__init__()
        axes = (0, 1) if x.ndim == 3 else (0,)
        self.register_buffer("mean", x.mean(axes))
        sd = x.std(axes, correction=0)
        still = sd <= STILL * x.abs().amax(axes)
        self.register_buffer("scale", sd.masked_fill(still, 1.0))
        self.register_buffer("still", still, persistent=False)
        self.mean: Tensor
        self.scale: Tensor
        self.still: Tensor

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


class Units(nn.Module):
    """Between the user's units and the network's: relative to something of x, then standardised.

    ``relative``: a Level divides windows and outcomes, a Base is taken off outcomes, None leaves
    both as they are. ``standardise`` False makes the second step the identity. Statistics are
    those of the training pairs given here.
    """

    damping: Tensor
    least: Tensor
    most: Tensor

    def __init__(
        self,
        x: Float[Tensor, "n ..."],
        y: Float[Tensor, "n ..."],
        relative: Level | Base | None = None,
        standardise: bool = True,
    ) -> None:
        super().__init__()
        self.base = relative if isinstance(relative, Base) else None
        level = None if isinstance(relative, Base) else relative
        self.level = None if level is None else ByLevel(level, x)
        if self.level is not None:
            levels = self.level(x)
            x, y = x / _column(levels, x), y / _column(levels, y)
        if self.base is not None:
            b = _checked_base(self.base, x, y)
            if isinstance(self.base.of, Damped):
                if (within := self.base.of.within) is not None:
                    far = within * b.std(0, correction=0)
                    self.register_buffer("least", b.mean(0) - far)
                    self.register_buffer("most", b.mean(0) + far)
                self.register_buffer("damping", _slope(self._limited(b), y))
            y = y - self._based(b)
        self.seen = self.base.seen if self.base is not None and standardise else None
        self.x_scaler = Standardise(x if standardise else _unit(x))
        self.y_scaler = Labels(y if standardise else _unit(y))

    @property
    def moves(self) -> Tensor:
        """1 for each number of y that changes, 0 for one that was the same in all pairs."""
        return (~self.y_scaler.still).to(self.y_scaler.mean)

    @property
    def own(self) -> bool:
        """Whether each x has outcomes of its own, whatever the network gives."""
        return self.level is not None or self.base is not None

    def inputs(self, x: Float[Tensor, "B ..."]) -> Float[Tensor, "B ..."]:
        """x as the network sees it."""
        if self.level is not None:
            x = x / _column(self.level(x), x)
        z: Tensor = self.x_scaler(x)
        return z if self.seen is None else z.clamp(-self.seen, self.seen)

    def standard(
        self, x: Float[Tensor, "B ..."], y: Float[Tensor, "B ..."]
    ) -> Float[Tensor, "B ..."]:
        """y as the network sees it."""
        if self.level is not None:
            y = y / _column(self.level(x), y)
        if self.base is not None:
            y = y - self._based(self.base(x))
        z: Tensor = self.y_scaler(y)
        return z

    def undo(self, x: Float[Tensor, "B ..."], z: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Outcomes z, (B or 1, S, ...) or one of each (B, ...), in the user's units."""
        y = self.y_scaler.undo(z)
        if self.base is not None:
            b = self._based(self.base(x))
            y = y + (b if y.ndim == b.ndim else b.unsqueeze(1))
        return y if self.level is None else y * _column(self.level(x), y)

    def _based(self, b: Tensor) -> Tensor:
        assert self.base is not None
        return self.damping * self._limited(b) if self.base.damped else b

    def _limited(self, b: Tensor) -> Tensor:
        assert self.base is not None
        limited = isinstance(self.base.of, Damped) and self.base.of.within is not None
        return b.clamp(self.least, self.most) if limited else b

    def spread(self, x: Float[Tensor, "B ..."], z: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Standard deviations z (B or 1, S, ...) of the network in the user's units."""
        s = self.y_scaler.spread * z
        return s if self.level is None else s * _column(self.level(x), s)


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


def _column(level: Tensor, like: Tensor) -> Tensor:
    return level.reshape(-1, *(1,) * (like.ndim - 1))


def _unit(like: Tensor) -> Tensor:
    """Two rows of mean 0 and standard deviation 1."""
    one = torch.ones_like(like[:1])
    return torch.cat([-one, one])
