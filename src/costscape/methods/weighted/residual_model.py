"""x -> y_hat(x) + sigma(x) e_i, the residuals e_i around a regression, with equal weights."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from costscape.methods.weighted.ridge_path import Line, RidgePath
from costscape.models import Units
from costscape.scenarios import Scenarios

LEAST = 0.01  # the least sigma, in root mean squares of the residuals


class Residuals(nn.Module):
    """y_hat(x) + sigma(x) noise_i with equal weights, for all rows i or the k nearest to x."""

    scenarios_are = "residuals"

    def __init__(
        self,
        units: Units,
        line: Line,
        noise: Float[Tensor, "m ..."],
        spread: "Spread | None",
        x: Float[Tensor, "m p"] | None,
        k: int | None,
        support: tuple[float, float] | None,
        ridge: float,
    ) -> None:
        super().__init__()
        self.units = units
        self.spread = spread
        self.k = k
        self.support = support
        self.ridge = ridge
        self.register_buffer("weight", line.weight)
        self.register_buffer("bias", line.bias)
        self.register_buffer("noise", noise)
        self.register_buffer("x", x)
        self.weight: Tensor
        self.bias: Tensor
        self.noise: Tensor
        self.x: Tensor | None

    def forward(self, x: Float[Tensor, "B ..."]) -> Scenarios:
        z = self.units.inputs(x).flatten(1)
        e = self.noise.flatten(1)
        e = e[None] if self.x is None else e[self._nearest(z, self.x)]  # (1 or B, S, q)
        if self.spread is not None:
            e = e * self.spread(z)[:, None]
        centre = (z @ self.weight + self.bias)[:, None]
        y = self.units.undo(x, (centre + e).unflatten(-1, self.noise.shape[1:]))
        if self.support is not None:
            y = y.clamp(*self.support)
        return Scenarios(y.new_full(y.shape[:2], 1 / y.shape[1]), y, own=True)

    def row_weights(self, x: Float[Tensor, "1 ..."], rows: int) -> tuple[Tensor, Tensor]:
        """The training rows, of so many, whose residuals are used at a single x; their weights."""
        if self.x is None:
            used = spread_rows(rows, len(self.noise))
        else:
            used = self._nearest(self.units.inputs(x).flatten(1), self.x)[0]
        return used, x.new_full(used.shape, 1 / len(used))

    def _nearest(self, z: Tensor, rows: Tensor) -> Tensor:
        # in double: in single precision cdist loses the distances of close rows
        near = [
            torch.cdist(part.double(), rows.double()).topk(self.k or 1, largest=False).indices
            for part in z.split(1024)
        ]
        return torch.cat(near)


def spread_rows(n: int, most: int | None) -> Int[Tensor, "m"]:
    """At most so many of n rows, evenly spread."""
    return torch.linspace(0, n - 1, min(n, most or n), dtype=torch.float64).round().long()


class Spread(nn.Module):
    """sigma(x) of each number of y: the exponential of a ridge regression of log |e|."""

    def __init__(self, e: Float[Tensor, "n q"], path: RidgePath, ridge: float) -> None:
        super().__init__()
        least = (LEAST * e.square().mean(0).sqrt()).clamp(min=1e-30)
        logs = e.abs().maximum(least).log()
        line = path.fit(logs, ridge)
        self.register_buffer("weight", line.weight)
        self.register_buffer("bias", line.bias)
        self.register_buffer("low", least.log())
        self.register_buffer("high", (logs - line.residuals).amax(0).maximum(least.log()))
        self.weight: Tensor
        self.bias: Tensor
        self.low: Tensor
        self.high: Tensor

    def forward(self, z: Float[Tensor, "B p"]) -> Float[Tensor, "B q"]:
        return (z @ self.weight + self.bias).maximum(self.low).minimum(self.high).exp()
