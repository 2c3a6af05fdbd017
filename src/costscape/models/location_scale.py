"""Outcomes that x moves and spreads, with weights of their own.

    v_s(x) = m(x) + r(x) (v_s + U_s x),    m linear in x,    r = exp(linear in q(x)),

w_s the same for all x. With lines U_s of their own, outcomes are a mixture of linear regressions.
"""

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from costscape.models.inputs import Units
from costscape.models.outcomes import Values
from costscape.scenarios import Scenarios

RIDGE = 1e-3  # of the squares of standardised features


class LocationScaleNetwork(nn.Module):
    """x in the user's units -> scenarios in the user's units.

    m starts at ridge regression, the v_s at its residuals in the training rows ``start``, U_s at
    0, r at 1 and the weights equal. Without ``lines`` U_s stays 0.
    """

    def __init__(
        self,
        encoder: nn.Module,
        units: Units,
        x: Float[Tensor, "n ..."],
        y: Float[Tensor, "n ..."],
        start: Int64[Tensor, "S"],
        learn: bool,
        lines: bool = False,
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.units = units
        self.y_shape, self.points = y.shape[1:], len(start)
        z, t = units.inputs(x).flatten(1), units.standard(x, y).flatten(1)
        self.location = nn.Linear(z.shape[1], t.shape[1])
        self.log_scale = nn.Linear(int(encoder.out_features), t.shape[1])  # type: ignore[arg-type]
        self.logits = nn.Parameter(torch.zeros(len(start)))
        size = (len(start), t.shape[1], z.shape[1])
        self.lines = nn.Parameter(torch.zeros(size)) if lines else None
        nn.init.zeros_(self.log_scale.weight)
        nn.init.zeros_(self.log_scale.bias)
        with torch.no_grad():
            slope, level = _ridge(z, t)
            self.location.weight.copy_(slope.T)
            self.location.bias.copy_(level)
            residuals = (t - z @ slope - level)[start]
        self.values = Values(residuals.unflatten(-1, self.y_shape), learn)

    def forward(self, x: Float[Tensor, "B ..."]) -> Scenarios:
        seen = self.units.inputs(x)
        z = seen.flatten(1)
        m = self.location(z).unflatten(-1, self.y_shape)
        code = self.encoder(seen)
        r = self.log_scale(code).exp().unflatten(-1, self.y_shape)
        v = self.values(code)
        if self.lines is not None:
            v = v + (z @ self.lines.flatten(0, 1).T).unflatten(-1, (self.points, *self.y_shape))
        v = m.unsqueeze(1) + r.unsqueeze(1) * v
        w = self.logits.softmax(0).expand(len(x), -1)
        return Scenarios(w, self.units.undo(x, v), own=True)


def _ridge(z: Tensor, t: Tensor) -> tuple[Tensor, Tensor]:
    """The slope (k, m) and the level (m,) of t over z."""
    dtype = t.dtype
    mean_z, mean_t = z.double().mean(0), t.double().mean(0)
    z, t = z.double() - mean_z, t.double() - mean_t
    penalty = RIDGE * len(z) * torch.eye(z.shape[1], dtype=z.dtype, device=z.device)
    slope = torch.linalg.solve(z.T @ z + penalty, z.T @ t)
    return slope.to(dtype), (mean_t - mean_z @ slope).to(dtype)
