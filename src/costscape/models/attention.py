"""The DF2 network: attention from q(x) to S outcomes.

    w(x) = softmax( q(x) . k_s / sqrt(d) ),   g(x, a) = sum_s w_s(x) f(v_s(x), a)   (paper, Eq. 4)

with d the width of the keys.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from costscape.models.inputs import Units
from costscape.models.outcomes import AnchoredValues, Values
from costscape.scenarios import Scenarios


class Attention(nn.Module):
    """x in the user's units -> scenarios in the user's units.

    ``units`` say how the network sees x and y. Keys start as standard normals.
    """

    def __init__(
        self,
        encoder: nn.Module,
        values: Values | AnchoredValues,
        points: int,
        units: Units,
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.values = values
        self.keys = nn.Parameter(torch.randn(points, int(encoder.out_features)))  # type: ignore[arg-type]
        self.units, self.points = units, points

    def forward(self, x: Float[Tensor, "B ..."]) -> Scenarios:
        code = self.encoder(self.units.inputs(x))
        w = (code @ self.keys.T / self.keys.shape[1] ** 0.5).softmax(-1)
        own = isinstance(self.values, AnchoredValues) or self.units.own
        return Scenarios(w, self.units.undo(x, self.values(code)), own)

    def location(self, x: Float[Tensor, "B ..."]) -> Float[Tensor, "B ..."]:
        """m(x), standardised; only anchored outcomes have one."""
        assert isinstance(self.values, AnchoredValues)
        return self.values.anchor(self.encoder(self.units.inputs(x)))
