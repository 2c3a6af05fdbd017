"""Recalibrated levels: what a level of the scenarios' costs is worth on held-out rows.

The quantile function of one row is linear between its sorted scenarios,

    Q(u),  with Q(w_1 + ... + w_(k-1) + w_k / 2) = the k-th lowest cost,

and goes on outside with the slope of their spread, so that Q takes every real value. The rank of
an observed cost c is u with Q(u) = c. If a share tau of held-out rows has ranks up to m(tau), then
Q(m(tau)) is the recalibrated quantile of level tau: for exchangeable rows a new cost lies below it
with probability tau, up to 1 / (n + 1) (split conformal prediction, Vovk et al. 2005), whatever
the scenarios are.
"""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from costscape.chance import Chance
from costscape.risk.measures import along

FEWEST = 20  # held-out rows
NARROW = 0.1  # of the usual spread: the least slope outside the scenarios


@dataclass(frozen=True)
class Levels:
    """The ranks of observed values among the scenarios of their rows.

    Args:
        ranks: tuple of float, sorted. One for each held-out row.
        scale: float. The usual spread of the values of a row's scenarios.
    """

    ranks: tuple[float, ...]
    scale: float

    def to_scenarios(self, level: float) -> float:
        """The level of the scenarios that stands for a level of frequency."""
        at = min(max(level * (len(self.ranks) + 1) - 1, 0.0), len(self.ranks) - 1.0)
        k = min(int(at), len(self.ranks) - 2)
        return self.ranks[k] + (at - k) * (self.ranks[k + 1] - self.ranks[k])

    def to_frequency(self, level: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """The share of held-out rows up to a level of the scenarios."""
        ranks = level.new_tensor(self.ranks)
        left = torch.searchsorted(ranks, level.contiguous())
        right = torch.searchsorted(ranks, level.contiguous(), right=True)
        return (left + right).to(level) / 2 / len(self.ranks)


@dataclass(frozen=True)
class Calibration:
    """What ``calibrate`` learned from held-out rows.

    Args:
        cost: Levels. Those of the cost of the decisions.
        service: tuple of Levels. One for each constraint of ``chance``; empty without one.
        chance: Chance or None. The constraint that ``service`` belongs to.
    """

    cost: Levels
    service: tuple[Levels, ...] = ()
    chance: Chance | None = None

    def of(self, chance: Chance) -> tuple[Levels, ...]:
        """The levels of a constraint of this function h, of any level; empty if not known."""
        known = self.chance is not None and self.chance.h == chance.h
        return self.service if known else ()

    def to_json(self, chance: Chance | None) -> dict[str, Any]:
        """As JSON. A function is not in it, so only the service of the task's chance is."""
        service = () if chance is None else self.of(chance)
        return {"cost": vars(self.cost), "service": [vars(levels) for levels in service]}

    @staticmethod
    def from_json(stored: dict[str, Any], chance: Chance | None) -> "Calibration":
        """The calibration of a file, of a task with this chance."""
        cost, *service = (
            Levels(tuple(one["ranks"]), one["scale"])
            for one in (stored["cost"], *stored["service"])
        )
        known = bool(service) and chance is not None
        return Calibration(cost, tuple(service) if known else (), chance if known else None)


def learn_levels(
    values: Float[Tensor, "n S"], weights: Float[Tensor, "n S"], observed: Float[Tensor, "n"]
) -> Levels:
    """The ranks of n observed values among the scenarios' values of their rows."""
    spread = values.amax(-1) - values.amin(-1)
    middle = quantile(values[:, None], weights, 0.5, 0.0)[:, 0]
    scale = float(spread.double().mean() + (observed - middle).double().abs().mean())
    v, w, c = values.double(), weights.double(), observed.double()
    ranks = rank(v, w, c, scale or 1.0).sort().values
    return Levels(tuple(ranks.tolist()), scale or 1.0)


def quantile(
    values: Float[Tensor, "#B J S"], weights: Float[Tensor, "B S"], level: float, scale: float
) -> Float[Tensor, "B J"]:
    """Q(level) of each row and action; levels outside [0, 1] lie outside the scenarios."""
    v, p, slope = _knots(values, weights, scale)
    u = torch.full_like(p[..., :1], level)
    k = torch.searchsorted(p, u).clamp(1, max(v.shape[-1] - 1, 1))
    low, high = (k - 1), k.clamp(max=v.shape[-1] - 1)
    at, step = p.gather(-1, low), p.gather(-1, high) - p.gather(-1, low)
    t = ((u - at) / step.clamp(min=1e-12)).clamp(0, 1).to(v)
    v = v.expand(p.shape)
    inside = torch.lerp(v.gather(-1, low), v.gather(-1, high), t)[..., 0]
    beyond = (u - p[..., -1:]).clamp(min=0) + (u - p[..., :1]).clamp(max=0)
    return inside + beyond[..., 0].to(v) * slope


def rank(
    values: Float[Tensor, "*#batch S"],
    weights: Float[Tensor, "*#batch S"],
    observed: Float[Tensor, "*batch"] | float,
    scale: float,
    *,
    last: bool = False,
) -> Float[Tensor, "*batch"]:
    """The first u with Q(u) >= observed, or the last one with Q(u) <= observed.

    The two differ where several scenarios have the observed value. Q is linear between the
    neighbours of the observed value, which are found without sorting.
    """
    d = values - (observed[..., None] if isinstance(observed, Tensor) else observed)
    below = d <= 0 if last else d < 0
    w = (weights / weights.sum(-1, keepdim=True)).expand(d.shape)
    mass = (w * below).sum(-1)
    low, k_low = d.masked_fill(~below, -torch.inf).max(-1, keepdim=True)
    high, k_high = d.masked_fill(below, torch.inf).min(-1, keepdim=True)
    low, high = low[..., 0], high[..., 0]
    p_low = mass - w.gather(-1, k_low)[..., 0] / 2
    p_high = mass + w.gather(-1, k_high)[..., 0] / 2
    none, all_ = ~below.any(-1), below.all(-1)  # below, of the scenarios
    slope = (d.amax(-1) - d.amin(-1)).clamp(min=NARROW * scale)
    inside = torch.lerp(p_low, p_high, -low / (high - low))
    outside = torch.where(none, p_high - high / slope, p_low - low / slope)
    return torch.where(none | all_, outside, inside)


def _knots(values: Tensor, weights: Tensor, scale: float) -> tuple[Tensor, Tensor, Tensor]:
    """Sorted values, the levels at which Q has them, and the slope of Q outside."""
    v, order = values.sort(-1)
    w = along(weights, order).double()
    w = w / w.sum(-1, keepdim=True)
    slope = (v[..., -1] - v[..., 0]).clamp(min=NARROW * scale)
    return v, w.cumsum(-1) - w / 2, slope
