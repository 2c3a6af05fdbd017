"""The DF2 network: attention from q(x) to S outcomes.

    w(x) = softmax( q(x) . k_s / sqrt(d) ),   g(x, a) = sum_s w_s(x) f(v_s(x), a)   (paper, Eq. 4)

with d the width of the keys.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from costscape.models.inputs import ByLevel, Standardise
from costscape.models.outcomes import AnchoredValues, Values
from costscape.scenarios import Scenarios


class Attention(nn.Module):
    """x in the user's units -> scenarios in the user's units.

    Inside, x and y are standardised, and both are divided by the window's level where there is
    one. Keys start as standard normals.
    """

    def __init__(
        self,
        encoder: nn.Module,
        values: Values | AnchoredValues,
        points: int,
        x_scaler: Standardise,
        y_scaler: Standardise,
        level: ByLevel | None = None,
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.values = values
        self.keys = nn.Parameter(torch.randn(points, int(encoder.out_features)))  # type: ignore[arg-type]
        self.x_scaler = x_scaler
        self.y_scaler = y_scaler
        self.level = level

    def forward(self, x: Float[Tensor, "B ..."]) -> Scenarios:
        code, level = self._encode(x)
        w = (code @ self.keys.T / self.keys.shape[1] ** 0.5).softmax(-1)
        values = self.y_scaler.undo(self.values(code))
        if level is not None:
            values = values * _as_column(level, values)
        return Scenarios(w, values)

    def location(self, x: Float[Tensor, "B ..."]) -> Float[Tensor, "B ..."]:
        """m(x), standardised; only anchored outcomes have one."""
        assert isinstance(self.values, AnchoredValues)
        return self.values.anchor(self._encode(x)[0])

    def standard(self, x: Float[Tensor, "B ..."], y: Float[Tensor, "B ..."]) -> Tensor:
        """y as the network sees it: over the window's level, standardised."""
        if self.level is not None:
            y = y / _as_column(self.level(x), y)
        z: Tensor = self.y_scaler(y)
        return z

    def _encode(self, x: Tensor) -> tuple[Tensor, Tensor | None]:
        level = None if self.level is None else self.level(x)
        if level is not None:
            x = x / _as_column(level, x)
        return self.encoder(self.x_scaler(x)), level


def _as_column(level: Tensor, like: Tensor) -> Tensor:
    return level.reshape(-1, *(1,) * (like.ndim - 1))
