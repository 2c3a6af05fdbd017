"""Flow forecasts: noise is moved along a learned velocity until it is a draw of y given x.

    train    min  E | v(z_t, t, q(x)) - (z_1 - z_0) |^2,     z_t = (1 - t) z_0 + t z_1
             z_0 ~ N(0, I),   t ~ U(0, 1),   z_1 = y in standard deviations of the labels
    draw     dz / dt = v(z, t, q(x)) from z(0) ~ N(0, I);  z(1) is a draw of the law of z_1

with q(x) the encoder's code. The minimum is the mean of z_1 - z_0 given z_t, t and x, and the
differential equation then carries the normal law to the law of y given x, whatever its shape.
Lipman, Chen, Ben-Hamu, Nickel and Le, Flow Matching for Generative Modeling, ICLR 2023.

Decisions for the draws of such a model, also with gradients through the draws: Wang, Chen, Liang,
Fioretto and Zhu, Gen-DFL: Decision-Focused Generative Learning for Robust Decision Making, ICLR
2026; Zhao, Yeh, Kong and Wang, Diffusion-DFL: Decision-focused Diffusion Models for Stochastic
Optimization, 2025.
"""

from dataclasses import dataclass
from math import pi, prod

import torch
from jaxtyping import Float
from torch import Generator, Tensor, nn
from torch.nn.functional import silu
from torch.utils.checkpoint import checkpoint

from costscape.models.forecast_contract import Forecast, ForecastNetwork
from costscape.models.scaling import Units
from costscape.scenarios import Scenarios
from costscape.task import Refusal, Task
from costscape.training.settings import Count

PAIRS = 8  # (t, z_0) for each row of a training step: cheap beside the encoder, less noise
HELD = 2**22  # numbers of a hidden layer, over rows and draws, that are held at once


@dataclass(frozen=True)
class Flow(Forecast):
    """Draws of y given x by flow matching: any law, with dependent coordinates.

    Args:
        steps: int, default 8. Steps of the midpoint rule from noise to outcome, of two evaluations
            each. On a linear Gaussian law, 8 are within 0.002 standard deviations of 32.
        hidden: int, default 128. Units in each of the two hidden layers of the velocity.

    The ``draws`` of the method is the number of outcomes to decide for; there is no closed form,
    so ``draws`` cannot be None. A training step costs 8 evaluations of the velocity for each row;
    deciding costs 2 ``steps`` x ``draws`` evaluations for each row, and DFL needs as many in every
    step of its second stage, with their gradients.

    >>> import costscape as cs
    >>> task = cs.SeparableTask(lambda y, a: (y - a).abs(), cs.Box(0.0, 9.0, dim=1), convex=True)
    >>> x, y = torch.rand(200, 2), 3 + torch.rand(200, 1)
    >>> training = cs.Training(epochs=3, progress=False)
    >>> flow = cs.Flow(steps=4, hidden=16)
    >>> model = cs.TwoStage(task, flow, draws=50, training=training).fit(x, y)
    >>> model.scenarios(x[:2]).values.shape
    torch.Size([2, 50, 1])
    """

    steps: Count = 8
    hidden: Count = 128

    def network(
        self,
        encoder: nn.Module,
        units: Units,
        x: Float[Tensor, "n ..."],
        y: Float[Tensor, "n ..."],
        draws: int | None,
    ) -> "FlowForecast":
        assert draws is not None
        shape = tuple(y.shape[1:])
        return FlowForecast(encoder, units, shape, self.steps, self.hidden, draws)

    def check(self, task: Task, draws: int | None) -> None:
        if draws is None:
            raise Refusal(
                "Flow needs draws of at least 1, since its expected cost has no closed form, but "
                "got None. Pass draws=100."
            )


class FlowForecast(ForecastNetwork):
    """x -> M draws of weight 1 / M.

    Args:
        encoder: a module with ``out_features``.
        units: how the network sees x and y.
        y_shape: of one outcome.
        steps: int, as of Flow.
        hidden: int, as of Flow.
        draws: M.

    The normal numbers that the draws start from, ``normals`` (M, ...), are stored with the model
    and are the same for every x. Each coordinate has M evenly spread quantiles of the normal law,
    in random order (a Latin hypercube), so that few draws stand for the law.
    """

    def __init__(
        self,
        encoder: nn.Module,
        units: Units,
        y_shape: tuple[int, ...],
        steps: int,
        hidden: int,
        draws: int,
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.units = units
        self.y_shape, self.steps = y_shape, steps
        width = int(encoder.out_features)  # type: ignore[arg-type]
        self.velocity = Velocity(prod(y_shape), width, hidden)
        self.normals: Tensor
        levels = (torch.rand(draws, *y_shape).argsort(0) + 0.5) / draws
        self.register_buffer("normals", torch.special.ndtri(levels))

    def forward(self, x: Float[Tensor, "B ..."]) -> Scenarios:
        y = self._moved(x, self.normals.flatten(1).unsqueeze(0))
        return Scenarios(y.new_full(y.shape[:2], 1 / y.shape[1]), y, own=True)

    def mean(self, x: Float[Tensor, "B ..."]) -> Float[Tensor, "B ..."]:
        """The mean of the M draws."""
        return self.forward(x).values.mean(1)

    def loss(
        self, x: Float[Tensor, "B ..."], y: Float[Tensor, "B ..."], rng: Generator | None = None
    ) -> Float[Tensor, "B"]:
        """The squared error of the velocity at random (t, z_0), of each pair."""
        z1 = self.units.standard(x, y).flatten(1).unsqueeze(1)
        n = len(z1)
        t = torch.rand(n, 1, 1, generator=rng, device=z1.device, dtype=z1.dtype)
        t = (t + torch.arange(PAIRS, device=z1.device)[:, None] / PAIRS) % 1  # evenly spread
        shape = (n, PAIRS, z1.shape[-1])
        z0 = torch.randn(shape, generator=rng, device=z1.device, dtype=z1.dtype)
        v = self.velocity(torch.lerp(z0, z1.expand(shape), t), t, self._context(x))
        error: Tensor = (v - (z1 - z0)).square().mean(1)
        return (error * self.units.moves.expand(self.y_shape).flatten()).mean(1)

    def samples(
        self, x: Float[Tensor, "B ..."], draws: int, rng: Generator
    ) -> Float[Tensor, "B M ..."]:
        """Outcomes from fresh noise; gradients flow through all steps."""
        shape = (len(x), draws, prod(self.y_shape))
        like = self.normals
        return self._moved(
            x, torch.randn(shape, generator=rng, device=like.device, dtype=like.dtype)
        )

    def _context(self, x: Tensor) -> Tensor:
        c: Tensor = self.velocity.of_code(self.encoder(self.units.inputs(x)))
        return c.unsqueeze(1)

    def _moved(
        self, x: Float[Tensor, "B ..."], noise: Float[Tensor, "#B M d"]
    ) -> Float[Tensor, "B M ..."]:
        """The outcomes that the noise is moved to, in the user's units.

        Where a hidden layer of all rows would be large, rows are moved part by part, and gradients
        recompute each part.
        """
        context = self._context(x)
        noise = noise.expand(len(x), -1, -1)
        numbers = noise.shape[1] * max(context.shape[-1], noise.shape[-1])
        rows = max(1, HELD // numbers)
        if len(x) <= rows:
            z = self._integrate(noise, context)
        else:
            parts = zip(noise.split(rows), context.split(rows), strict=True)
            z = torch.cat(
                [
                    checkpoint(
                        self._integrate, *part, use_reentrant=False, preserve_rng_state=False
                    )
                    for part in parts
                ]
            )
        return self.units.undo(x, z.unflatten(-1, self.y_shape))

    def _integrate(
        self, z: Float[Tensor, "B M d"], context: Float[Tensor, "B 1 h"]
    ) -> Float[Tensor, "B M d"]:
        """z(1) by the midpoint rule."""
        h = 1 / self.steps
        for i in range(self.steps):
            t, middle = (z.new_full((1, 1, 1), (i + part) * h) for part in (0.0, 0.5))
            half = z + h / 2 * self.velocity(z, t, context)
            z = z + h * self.velocity(half, middle, context)
        return z


class Velocity(nn.Module):
    """v(z, t, q): two hidden layers; what depends on x alone is computed once for all draws.

    Args:
        size: numbers of z.
        code: numbers of q.
        hidden: units of each layer.
    """

    def __init__(self, size: int, code: int, hidden: int) -> None:
        super().__init__()
        self.of_code = nn.Linear(code, hidden)
        self.of_point = nn.Linear(size, hidden, bias=False)
        self.of_time = nn.Linear(3, hidden, bias=False)
        self.inner = nn.Linear(hidden, hidden)
        self.out = nn.Linear(hidden, size)
        nn.init.zeros_(self.out.weight)  # draws start as normals of the labels' mean and deviation
        nn.init.zeros_(self.out.bias)

    def forward(
        self,
        z: Float[Tensor, "B M d"],
        t: Float[Tensor, "#B #M 1"],
        context: Float[Tensor, "B 1 h"],
    ) -> Float[Tensor, "B M d"]:
        """Velocities at z and times t; ``context`` is of_code(q)."""
        clock = self.of_time(torch.cat([t, (pi * t).cos(), (pi * t).sin()], -1))
        hidden = silu(self.of_point(z) + clock + context)
        v: Tensor = self.out(silu(self.inner(hidden)))
        return v
