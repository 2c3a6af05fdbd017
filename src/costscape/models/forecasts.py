"""Forecasts of y given x: one point, or a mixture of k diagonal Gaussians.

    p(y | x) = sum_c w_c(x) prod_i N(y_i; m_ci(x), s_ci(x)^2),   c = 1..k

Weights, means and log deviations come from a head on the encoder, see ``mixture_heads``. A
forecast such as Mixture(3)
holds settings and builds a network; Quantiles and Flow are in files of their own.
"""

from dataclasses import dataclass
from math import log, pi, prod
from typing import Any

import torch
from jaxtyping import Float
from torch import Generator, Tensor, nn

from costscape.models.forecast_contract import Forecast as Forecast
from costscape.models.forecast_contract import ForecastNetwork
from costscape.models.last_layer import last_layer
from costscape.models.mixture_heads import mixture_head
from costscape.models.scaling import Units
from costscape.scenarios import ExpectedCost, Scenarios
from costscape.task import Task
from costscape.training.settings import Count

# the least deviation, in standard deviations of the labels: the likelihood of a component at a
# repeated label, such as no wind at all, would have no bound
LEAST = 0.01
SHOWN = 1000  # draws of scenarios() where deciding needs none


@dataclass(frozen=True)
class Point(Forecast):
    """Forecasts one outcome, the conditional mean, by least squares. It has no arguments.

    >>> import costscape as cs
    >>> import torch
    >>> task = cs.SeparableTask(lambda y, a: (y - a).abs(), cs.Box(0.0, 9.0, dim=1), convex=True)
    >>> x, y = torch.rand(50, 2), 3 + torch.rand(50, 1)
    >>> training = cs.Training(epochs=1, progress=False)
    >>> model = cs.TwoStage(task, cs.Point(), training=training).fit(x, y)
    >>> model.scenarios(x[:2]).values.shape
    torch.Size([2, 1, 1])
    """

    def network(
        self,
        encoder: nn.Module,
        units: Units,
        x: Float[Tensor, "n ..."],
        y: Float[Tensor, "n ..."],
        draws: int | None,
    ) -> "PointForecast":
        return PointForecast(encoder, units, tuple(y.shape[1:]))

    def check(self, task: Task, draws: int | None) -> None:
        """A point has no draws."""


@dataclass(frozen=True)
class Mixture(Forecast):
    """Forecasts a mixture of diagonal Gaussians, by maximum likelihood.

    Args:
        components: int, default 1. Number of Gaussians k; 1 is a single Gaussian.

    >>> import costscape as cs
    >>> import torch
    >>> task = cs.SeparableTask(lambda y, a: (y - a).abs(), cs.Box(0.0, 9.0, dim=1), convex=True)
    >>> x, y = torch.rand(50, 2), 3 + torch.rand(50, 1)
    >>> training = cs.Training(epochs=1, progress=False)
    >>> model = cs.TwoStage(task, cs.Mixture(3), draws=20, training=training).fit(x, y)
    >>> model.scenarios(x[:2]).values.shape
    torch.Size([2, 20, 1])
    """

    components: Count = 1

    def network(
        self,
        encoder: nn.Module,
        units: Units,
        x: Float[Tensor, "n ..."],
        y: Float[Tensor, "n ..."],
        draws: int | None,
    ) -> "MixtureForecast":
        rows = torch.randint(len(x), (self.components,)).to(x.device)
        return MixtureForecast(encoder, units, units.standard(x[rows], y[rows]), draws or SHOWN)

    def check(self, task: Task, draws: int | None) -> None:
        if draws is None:
            task.of_normals()  # raises where the task has no closed form


class PointForecast(ForecastNetwork):
    """x -> one scenario of weight 1."""

    def __init__(self, encoder: nn.Module, units: Units, y_shape: tuple[int, ...]) -> None:
        super().__init__()
        self.encoder = encoder
        self.units = units
        self.y_shape = y_shape
        self.location = last_layer(encoder, prod(y_shape))

    def forward(self, x: Float[Tensor, "B ..."]) -> Scenarios:
        y = self.mean(x).unsqueeze(1)
        return Scenarios(torch.ones_like(y.flatten(1)[:, :1]), y, own=True)

    def mean(self, x: Float[Tensor, "B ..."]) -> Float[Tensor, "B ..."]:
        """The outcome forecast, in the user's units."""
        return self.units.undo(x, self._standard(x))

    def loss(
        self, x: Float[Tensor, "B ..."], y: Float[Tensor, "B ..."], rng: Generator | None = None
    ) -> Float[Tensor, "B"]:
        """Squared error of each pair, in standard deviations of the labels."""
        residual = self._standard(x) - self.units.standard(x, y)
        return residual.flatten(1).square().mean(1)

    def samples(
        self, x: Float[Tensor, "B ..."], draws: int, rng: Generator
    ) -> Float[Tensor, "B 1 ..."]:
        """The point itself, whatever ``draws``."""
        return self.mean(x).unsqueeze(1)

    def _standard(self, x: Tensor) -> Tensor:
        z: Tensor = self.location(self.encoder(self.units.inputs(x))).unflatten(-1, self.y_shape)
        return z


class MixtureForecast(ForecastNetwork):
    """x -> M draws of weight 1 / M.

    The uniforms and normals of the draws are buffers, the same for every x, so that a decision is
    repeatable and does not depend on other rows.
    """

    def __init__(
        self, encoder: nn.Module, units: Units, labels: Float[Tensor, "k ..."], draws: int
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.units = units
        self.y_shape = labels.shape[1:]
        self.head = mixture_head(encoder, labels)
        self.uniforms: Tensor
        self.register_buffer("uniforms", torch.rand(draws).to(labels))
        self.normals: Tensor
        self.register_buffer("normals", torch.randn(draws, *self.y_shape).to(labels))

    def forward(self, x: Float[Tensor, "B ..."]) -> Scenarios:
        logits, m, s = self._parts_in_user_units(x)
        edges = logits.softmax(-1).cumsum(-1)
        u = self.uniforms.expand(x.shape[0], -1).contiguous()
        c = torch.searchsorted(edges, u).clamp(max=logits.shape[1] - 1)
        c = c.reshape(*c.shape, *(1,) * len(self.y_shape)).expand(*c.shape, *self.y_shape)
        y = m.gather(1, c) + s.gather(1, c) * self.normals
        return Scenarios(y.new_full(y.shape[:2], 1 / y.shape[1]), y, own=True)

    def laws(self, x: Float[Tensor, "B ..."]) -> Scenarios:
        """The components: weights (B, k), values (B, k, 2 d), means beside deviations."""
        logits, m, s = self._parts_in_user_units(x)
        return Scenarios(logits.softmax(-1), torch.cat([m, s], -1), own=True)

    def expected_cost(
        self,
        task: Task,
        x: Float[Tensor, "B ..."],
        draws: int | None,
        rng: Generator | None = None,
    ) -> ExpectedCost:
        if draws is None:
            return ExpectedCost(task.of_normals(), self.laws(x))
        return super().expected_cost(task, x, draws, rng)

    def mean(self, x: Float[Tensor, "B ..."]) -> Float[Tensor, "B ..."]:
        """The mixture's mean, in the user's units."""
        logits, m, _ = self._parts_in_user_units(x)
        return torch.einsum("bk,bk...->b...", logits.softmax(-1), m)

    def log_deviation(self, x: Float[Tensor, "B ..."]) -> Float[Tensor, "B ..."]:
        """The logarithm of the mixture's standard deviations, in the user's units."""
        logits, m, s = self._parts_in_user_units(x)
        off = m - torch.einsum("bk,bk...->b...", logits.softmax(-1), m).unsqueeze(1)
        square = torch.einsum("bk,bk...->b...", logits.softmax(-1), s.square() + off.square())
        return square.log() / 2

    def loss(
        self, x: Float[Tensor, "B ..."], y: Float[Tensor, "B ..."], rng: Generator | None = None
    ) -> Float[Tensor, "B"]:
        """Minus the log likelihood of each pair, y in standard deviations of the labels."""
        logits, m, s = self._parts(x)
        z = (self.units.standard(x, y).unsqueeze(1) - m) / s
        each = -0.5 * z.square() - s.log() - 0.5 * log(2 * pi)
        each = (each * self.units.moves).flatten(2).sum(-1)  # a constant label has no likelihood
        return -(logits.log_softmax(-1) + each).logsumexp(-1)

    def samples(
        self, x: Float[Tensor, "B ..."], draws: int, rng: Generator
    ) -> Float[Tensor, "B M ..."]:
        """Draws through which gradients flow: m_c + s_c n, with a straight-through Gumbel c.

        The component is the argmax of logits plus Gumbel noise; its gradient is that of the
        softmax of the same numbers (Jang, Gu and Poole, 2017). Memory B x M x k.
        """
        logits, m, s = self._parts_in_user_units(x)
        like: dict[str, Any] = {"generator": rng, "device": m.device, "dtype": m.dtype}
        n = torch.randn(len(x), draws, *self.y_shape, **like)
        k = logits.shape[1]
        if k == 1:
            return m + s * n
        u = torch.rand(len(x), draws, k, **like)
        soft = (logits.unsqueeze(1) - (-u.clamp(1e-20, 1 - 1e-7).log()).log()).softmax(-1)
        hard = torch.zeros_like(soft).scatter(-1, soft.argmax(-1, keepdim=True), 1.0)
        choice = hard + soft - soft.detach()
        pick = "bmk,bk...->bm..."
        return torch.einsum(pick, choice, m) + torch.einsum(pick, choice, s) * n

    def _parts_in_user_units(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        logits, m, s = self._parts(x)
        return logits, self.units.undo(x, m), self.units.spread(x, s)

    def _parts(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Logits (B, k), means and deviations (B, k, ...), in the network's units."""
        logits, m, log_s = self.head(self.encoder, self.units.inputs(x))
        return logits, m, log_s.clamp(-12, 12).exp() + LEAST
