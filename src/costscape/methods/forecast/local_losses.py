"""Local losses: what a forecast that is off by e will cost once it has been decided upon.

    WeightedMSE           phi(e) = mean_i w_i e_i^2
    DirectedWeightedMSE   phi(e) = mean_i w+_i (e_i)+^2 + w-_i (-e_i)+^2
    Quadratic             phi(e) = |L^T e|^2 + alpha mean_i e_i^2
    DirectedQuadratic     phi(e) = |L^T (e+, e-)|^2 + alpha mean_i e_i^2
    LossNetwork           phi(e) = |net(e+, e-) - net(0, 0)| + 0.001 mean_i e_i^2

with w, alpha >= 0.001. Each is 0 at e = 0 and nowhere less. Shah, Wang, Wilder, Perrault and
Tambe, Decision-Focused Learning without Decision-Making: Learning Locally Optimized Decision
Losses, NeurIPS 2022. There the factor L of the directed quadratic is chosen by the signs of e,
which makes phi jump where one changes; here it acts on the parts e+ and e- of e: the coupling of
e_i and e_j still depends on both signs, and phi is continuous.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import pairwise
from math import cos, pi, prod
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from costscape.training.progress import progress
from costscape.training.settings import Checked, Count

FLOOR = 1e-3
HELD = 2**22  # numbers of one step of the fit held at once


Parameters = Float[Tensor, "n p"]
Errors = Float[Tensor, "n K d"]
Losses = Float[Tensor, "n K"]


class LocalLoss(Checked, ABC):
    """A family of losses phi(e); one row of ``parameters`` is one member of it.

    ``rate`` is Adam's, in a fit of the parameters.
    """

    rate: ClassVar[float] = 0.1

    @abstractmethod
    def start(self, d: int, rng: Generator) -> Float[Tensor, "p"]:
        """The parameters a fit begins from, for errors of d numbers about 1 in size."""

    @abstractmethod
    def value(self, parameters: Parameters, e: Errors) -> Losses:
        """phi_n(e_nk)."""


@dataclass(frozen=True)
class WeightedMSE(LocalLoss):
    """A weight for each coordinate.

    >>> WeightedMSE()
    WeightedMSE()
    """

    def start(self, d: int, rng: Generator) -> Float[Tensor, "p"]:
        return torch.ones(d)

    def value(self, parameters: Parameters, e: Errors) -> Losses:
        return _weighted(parameters, e.square())


@dataclass(frozen=True)
class DirectedWeightedMSE(LocalLoss):
    """A weight for each coordinate and direction: too high may cost more than too low.

    >>> DirectedWeightedMSE()
    DirectedWeightedMSE()
    """

    def start(self, d: int, rng: Generator) -> Float[Tensor, "p"]:
        return torch.ones(2 * d)

    def value(self, parameters: Parameters, e: Errors) -> Losses:
        return 2 * _weighted(parameters, _parts(e).square())  # a mean over d, not 2 d


@dataclass(frozen=True)
class Quadratic(LocalLoss):
    """Quadratic form of e: a matrix of low rank, and a multiple of the identity.

        phi(e) = |L^T e|^2 + alpha mean_i e_i^2

    Args:
        rank: int, default 20. Rank of the matrix L L^T, at most the number d of coordinates.

    >>> import costscape as cs
    >>> cs.LODL(cs.problems.inventory(), loss=cs.Quadratic(rank=5)).loss
    Quadratic(rank=5)
    """

    rank: Count = 20

    def start(self, d: int, rng: Generator) -> Float[Tensor, "p"]:
        r = min(self.rank, d)
        factor = torch.eye(d, r) + 0.1 * torch.randn(d, r, generator=rng)
        return _with_alpha(factor / d**0.5)

    def value(self, parameters: Parameters, e: Errors) -> Losses:
        return _quadratic(parameters, e, e)


@dataclass(frozen=True)
class DirectedQuadratic(LocalLoss):
    """Quadratic form of the parts e+ and e- of e, so each pair of signs has its matrix.

        phi(e) = |L^T (e+, e-)|^2 + alpha mean_i e_i^2

    Args:
        rank: int, default 20. Rank of the matrix L L^T, at most 2 d for d coordinates.

    >>> import costscape as cs
    >>> cs.LODL(cs.problems.inventory(), loss=cs.DirectedQuadratic(rank=5)).loss
    DirectedQuadratic(rank=5)
    """

    rank: Count = 20

    def start(self, d: int, rng: Generator) -> Float[Tensor, "p"]:
        r = min(self.rank, 2 * d)
        factor = torch.cat([torch.eye(d, r), -torch.eye(d, r)])
        factor += 0.1 * torch.randn(2 * d, r, generator=rng)
        return _with_alpha(factor / d**0.5)

    def value(self, parameters: Parameters, e: Errors) -> Losses:
        return _quadratic(parameters, _parts(e), e)


@dataclass(frozen=True)
class LossNetwork(LocalLoss):
    """Network of ReLU units for each pair.

        phi(e) = |net(e+, e-) - net(0, 0)| + 0.001 mean_i e_i^2

    The inputs are the parts e+ and e- of e, so the network needs no unit for a kink at 0. The
    paper's network has 4 layers of 100.

    Args:
        hidden: int, default 16. Units in each hidden layer.
        layers: int, default 2. Number of hidden layers.

    >>> import costscape as cs
    >>> cs.LODL(cs.problems.inventory(), loss=cs.LossNetwork(hidden=8)).loss
    LossNetwork(hidden=8, layers=2)
    """

    hidden: Count = 16
    layers: Count = 2
    rate: ClassVar[float] = 0.01

    def start(self, d: int, rng: Generator) -> Float[Tensor, "p"]:
        parts = []
        for i, o in self._widths(d):
            parts += [torch.randn(i, o, generator=rng) * (2 / i) ** 0.5, torch.zeros(o)]
        return torch.cat([part.flatten() for part in parts])

    def value(self, parameters: Parameters, e: Errors) -> Losses:
        widths = self._widths(e.shape[-1])
        shapes = [shape for i, o in widths for shape in ((i, o), (1, o))]
        parts = parameters.split([prod(shape) for shape in shapes], -1)
        layers = [part.unflatten(-1, shape) for part, shape in zip(parts, shapes, strict=True)]
        h = _parts(torch.cat([torch.zeros_like(e[:, :1]), e], 1))
        for i in range(0, len(layers), 2):
            h = torch.baddbmm(layers[i + 1], h.relu() if i else h, layers[i])
        away = (h[:, 1:] - h[:, :1]).squeeze(-1).abs()
        return away + FLOOR * e.square().mean(-1)

    def _widths(self, d: int) -> list[tuple[int, int]]:
        return list(pairwise([2 * d, *self.layers * [self.hidden], 1]))


def fit_losses(
    loss: LocalLoss,
    e: Float[Tensor, "n K d"],
    t: Float[Tensor, "n K"],
    *,
    steps: int = 300,
    seed: int = 0,
    title: str = "local losses",
    shown: bool = False,
) -> Float[Tensor, "n p"]:
    """For each n the parameters that minimise mean_k (phi_n(e_nk) - t_nk)^2, by Adam.

    All pairs take their steps together, and none sees another: a pair fitted alone ends at the
    same parameters. e and t should be about 1 in size.
    """
    start = loss.start(e.shape[-1], Generator().manual_seed(seed)).to(e)
    rows = max(64, HELD // (e.shape[1] * len(start)))
    blocks = list(zip(e.split(rows), t.split(rows), strict=True))
    fitted = []
    with progress(title, len(blocks) * steps, shown) as show:
        for b, (errors, costs) in enumerate(blocks):
            parameters = start.repeat(len(errors), 1).requires_grad_()
            optimiser = torch.optim.Adam([parameters], lr=loss.rate)
            for step in range(steps):
                for group in optimiser.param_groups:
                    group["lr"] = loss.rate * (1 + cos(pi * step / steps)) / 2
                with torch.enable_grad():
                    off = loss.value(parameters, errors) - costs
                    miss = off.square().mean(1).sum()
                    (parameters.grad,) = torch.autograd.grad(miss, parameters)
                optimiser.step()
                if step % 20 == 0:
                    show(b * steps + step, f"miss {float(miss.detach()) / len(errors):.4g}")
            fitted.append(parameters.detach())
    return torch.cat(fitted)


def _weighted(roots: Tensor, squares: Tensor) -> Tensor:
    """Weights are squares over a floor, so that Adam needs no constraint."""
    w = FLOOR + roots.square()
    return torch.matmul(squares, w.unsqueeze(-1)).squeeze(-1) / squares.shape[-1]


def _parts(e: Tensor) -> Tensor:
    return torch.cat([e.clamp(min=0), (-e).clamp(min=0)], -1)


def _with_alpha(factor: Tensor) -> Tensor:
    return torch.cat([factor.flatten(), factor.new_full((1,), 0.1)])


def _quadratic(parameters: Tensor, seen: Tensor, e: Tensor) -> Tensor:
    factor = parameters[:, :-1].unflatten(-1, (seen.shape[-1], -1))
    alpha = FLOOR + parameters[:, -1:].square()
    return torch.bmm(seen, factor).square().sum(-1) + alpha * e.square().mean(-1)
